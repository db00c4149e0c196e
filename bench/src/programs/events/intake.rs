//! Taking events in, one by one and in batches.

use std::{net::SocketAddr, path::Path, process::Command};

use bench::{
    Result,
    child::Child,
    client::{Connection, Request},
    database::Database,
    load, process,
    report::{self, Aim, Bound, count, times},
    series::{Round, Series, Spread},
    server::Server,
};
use serde_json::{Value, json};

use super::{Options, bare, sample};

/// Events of a round that are sent one by one, and as batches.
const SINGLE: usize = 20_000;
const BATCHES: usize = 400;
const BATCH: usize = 100;

pub async fn measure(options: &Options, aims: &mut Vec<Aim>) -> Result<Vec<Series>> {
    let mut sqlite = Subject::start("SQLite", None, options).await?;
    let Some(server) = options.flags.postgres() else {
        for round in 0..options.flags.rounds() {
            sqlite.take_turns(round, options, None).await?;
        }
        sqlite.print(aims);
        return Ok(sqlite.series());
    };
    let (database, theirs) = (Database::create(&server).await?, Database::create_another(&server, "peer").await?);
    println!("PostgreSQL runs with fsync = {}", database.fsync().await?);
    let measured = with_postgres(options, &mut sqlite, (&database, &theirs), aims).await;
    database.remove().await?;
    theirs.remove().await?;
    measured
}

/// All three in turns, so that they share the machine's mood.
async fn with_postgres(
    options: &Options,
    sqlite: &mut Subject,
    (database, theirs): (&Database, &Database),
    aims: &mut Vec<Aim>,
) -> Result<Vec<Series>> {
    let mut postgres = Subject::start("PostgreSQL", Some(database), options).await?;
    let mut peer = Peer::start(theirs, options).await?;
    for round in 0..options.flags.rounds() {
        eprintln!("round {} of {}", round + 1, options.flags.rounds());
        sqlite.take_turns(round, options, None).await?;
        postgres.take_turns(round, options, Some(database)).await?;
        peer.take_turn(round, options).await?;
    }
    sqlite.print(aims);
    postgres.print(aims);
    println!("\n{}", report::table(std::slice::from_ref(&peer.series), None, &[vec!["–".into()]], "compared"));
    let over = |subject: &Subject| subject.single.ratio(&peer.series, cpu).median;
    let what = "CPU of all processes per event over a service by hand, ours on SQLite";
    aims.push(Aim::new(what, over(sqlite), Bound::AtMost(1.0 / 8.0), "x"));
    println!("ours on PostgreSQL over a service by hand: {:.2}x", over(&postgres));
    Ok([sqlite.series(), postgres.series(), vec![peer.series]].concat())
}

fn cpu(round: &Round) -> f64 {
    round.cpu_micros
}

/// The numbers of a round's events: none of them was sent before.
fn numbers(round: usize, count: usize) -> std::ops::Range<usize> {
    round * count..(round + 1) * count
}

/// One by one, each in a request of its own.
fn single(round: usize, app: &str, key: &str) -> Vec<Request> {
    let events = sample::events(app, numbers(round, SINGLE));
    events.iter().map(|event| Request::post("/event-log", key, &event.to_string())).collect()
}

/// A server on one engine.
struct Subject {
    engine: &'static str,
    server: Server,
    in_memory: Series,
    single: Series,
    batches: Series,
    /// Events a second of bare inserts.
    bare: Vec<f64>,
}

impl Subject {
    async fn start(engine: &'static str, database: Option<&Database>, options: &Options) -> Result<Self> {
        let series = |what: &str| Series::new(format!("{engine}: {what}"), options.connections);
        Ok(Self {
            engine,
            server: Server::start(database).await?,
            in_memory: series("GET /healthz (in memory)"),
            single: series("POST /event-log"),
            batches: series("POST /event-log/batch of 100"),
            bare: Vec::new(),
        })
    }

    async fn take_turns(&mut self, round: usize, options: &Options, database: Option<&Database>) -> Result<()> {
        let mut callers = Vec::new();
        for _ in 0..options.connections {
            callers.push(Connection::open(self.server.address, Request::get("/healthz", "")).await?);
        }
        let process = self.server.process();
        let driven = load::drive(callers, options.flags.turn(), || process::cpu_time(process)).await?;
        self.in_memory.rounds.push(driven.round);

        let app = self.server.app();
        let stock = single(round, &app, &self.server.key);
        self.single.rounds.push(self.work_off(stock, options).await?);
        // Numbers that the single ones do not reach.
        let batches = numbers(1_000 + round, BATCHES)
            .map(|batch| sample::events(&app, numbers(batch, BATCH)))
            .collect::<Vec<Vec<Value>>>();
        let stock = batches
            .iter()
            .map(|events| Request::post("/event-log/batch", &self.server.key, &json!(events).to_string()));
        let stock = stock.collect();
        self.batches.rounds.push(self.work_off(stock, options).await?);
        self.bare.push(match database {
            Some(database) => bare::on_postgres(database, &batches).await?,
            None => bare::on_sqlite(&batches)?,
        });
        Ok(())
    }

    /// The processor time is counted until all of it is folded.
    async fn work_off(&self, stock: Vec<Request>, options: &Options) -> Result<Round> {
        let (before, calls) = (self.server.cpu()?, stock.len() as f64);
        let uncounted = || Ok(std::time::Duration::ZERO);
        let mut round = load::work_off(self.server.address, options.connections, stock, uncounted).await?;
        settle(&self.server).await?;
        round.cpu_micros = (self.server.cpu()? - before) * 1e6 / calls;
        Ok(round)
    }

    fn print(&self, aims: &mut Vec<Aim>) {
        let series = self.series();
        let compared: Vec<Vec<String>> =
            series.iter().map(|one| vec![times(one.ratio(&self.in_memory, cpu))]).collect();
        println!("\n{}", report::table(&series, None, &compared, "CPU over in memory"));
        let ratios =
            self.batches.rounds.iter().zip(&self.bare).map(|(ours, bare)| ours.per_second * BATCH as f64 / bare);
        let (bare, over) = (Spread::of(self.bare.iter().copied()), Spread::of(ratios));
        println!(
            "bare inserts of 100 rows: {} events a second; batches over them: {}",
            count(bare.median),
            times(over)
        );
        let mut aim = |what: &str, found: f64, bound: Bound| {
            aims.push(Aim::new(format!("{}: {what}", self.engine), found, bound, "x"));
        };
        if self.engine == "SQLite" {
            let found = self.single.ratio(&self.in_memory, cpu).median;
            aim("CPU of an event, folding included, over the in-memory route", found, Bound::AtMost(3.5));
        }
        aim("events in batches of 100 over bare inserts, rate", over.median, Bound::AtLeast(1.0));
    }

    fn series(&self) -> Vec<Series> {
        vec![self.in_memory.clone(), self.single.clone(), self.batches.clone()]
    }
}

/// An event that is answered once it counts, and with it everything that came before.
pub fn waiting_event(server: &Server) -> Request {
    let event = json!({ "appId": server.app(), "eventName": "settled", "timestamp": sample::FROM, "parameters": {} })
        .to_string();
    Request::post("/event-log", &format!("{}\r\nprefer: wait", server.key), &event)
}

/// Waits until everything that was sent counts.
pub async fn settle(server: &Server) -> Result<()> {
    let waiting = waiting_event(server);
    while server.ask(waiting.clone()).await?["queued"] != false {}
    Ok(())
}

/// A service by hand.
struct Peer {
    child: Child,
    address: SocketAddr,
    /// PostgreSQL's main process.
    database: u32,
    series: Series,
}

impl Peer {
    async fn start(database: &Database, options: &Options) -> Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/by-hand");
        let mut command = Command::new("node");
        let child = Child::start_program(command.arg("events.mjs").arg(database.url()?).current_dir(folder))?;
        let address = child.text("address").parse()?;
        let series = Series::new("Node.js + PostgreSQL, by hand", options.connections);
        Ok(Self { child, address, database: database.main_process().await?, series })
    }

    async fn take_turn(&mut self, round: usize, options: &Options) -> Result<()> {
        let stock = single(round, "app", &format!("x-api-key: {}", self.child.text("key")));
        let cpu = || Ok(process::cpu_time(self.child.id())? + process::cpu_time_of_family(self.database)?);
        self.series.rounds.push(load::work_off(self.address, options.connections, stock, cpu).await?);
        Ok(())
    }
}
