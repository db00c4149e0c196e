//! What usage and entitlements cost: an event against the in-memory route and against a service written by hand for Node.js and
//! PostgreSQL, a hot counter against cold ones, batches, and questions about many workspaces.

mod many;
mod subject;

use std::{cell::RefCell, net::SocketAddr, path::Path, process::Command, time::Duration};

use bench::{
    Flags, Result, Threads,
    child::Child,
    client::{Connection, Request},
    database::Database,
    load, process,
    report::{self, Aim, Bound, times},
    series::{Round, Series},
};
use clap::Args;
use serde_json::{Value, json};

/// Measures usage and entitlements.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    flags: Flags,
    /// Connections that are kept open, each with one request at a time.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Be the server that is measured, or the one with many workspaces.
    #[arg(long, hide = true)]
    act_as: Option<String>,
    #[arg(long, hide = true)]
    database: Option<String>,
}

/// Connections at which events per commit are counted.
const CROWD: usize = 256;
const BATCH: usize = 100;
/// Places in the list of candidates.
const IN_MEMORY: usize = 0;
const COLD: usize = 1;
const HOT: usize = 2;
const READ: usize = 3;
const BATCHES: usize = 4;
const CROWDED: usize = 5;

pub fn start(options: &Options) -> Result<()> {
    bench::block_on(Threads::for_part(options.act_as.is_some()), async {
        match options.act_as.as_deref() {
            Some("server") => Box::pin(subject::serve(options.database.as_deref())).await,
            Some(_) => Box::pin(many::run()).await,
            None => run(options).await,
        }
    })
}

async fn run(options: &Options) -> Result<()> {
    let mut aims = Vec::new();
    let mut sqlite = Subject::start("SQLite", options, None).await?;
    let mut all = Vec::new();
    match options.flags.postgres() {
        Some(server) => {
            let (database, theirs) =
                (Database::create(&server).await?, Database::create_another(&server, "peer").await?);
            println!("PostgreSQL runs with fsync = {}", database.fsync().await?);
            let measured = with_postgres(options, &mut sqlite, (&database, &theirs), &mut aims, &mut all).await;
            database.remove().await?;
            theirs.remove().await?;
            measured?;
        }
        None => {
            for _ in 0..options.flags.rounds() {
                sqlite.take_turns(options).await?;
            }
            sqlite.print(&mut aims);
        }
    }
    all.extend(sqlite.series.iter().cloned());
    let many = Child::start(&["--act-as", "many"])?;
    let number = |name: &str| many.told[name].as_f64().unwrap_or(f64::NAN);
    aims.push(Aim::new("dry run of a plan over 10,000 workspaces", number("dryRun"), Bound::Below(1.0), " s"));
    aims.push(Aim::new("explain", number("explain") * 1e3, Bound::Below(10.0), " ms"));
    report::print_aims(&aims);
    match &options.flags.json {
        Some(path) => report::write_json(path, &[&all], &aims),
        None => Ok(()),
    }
}

/// All three in turns, so that they share the machine's mood.
async fn with_postgres(
    options: &Options,
    sqlite: &mut Subject,
    (database, theirs): (&Database, &Database),
    aims: &mut Vec<Aim>,
    all: &mut Vec<Series>,
) -> Result<()> {
    let server = database.main_process().await?;
    let mut postgres = Subject::start("PostgreSQL", options, Some((database.url()?, server))).await?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/by-hand");
    let peer = Child::start_program(Command::new("node").arg("usage.mjs").arg(theirs.url()?).current_dir(folder))?;
    let requests = ingest(&callers(&peer)?, &event());
    let mut by_hand = Series::new("Node.js + PostgreSQL, by hand", options.connections);
    for round in 1..=options.flags.rounds() {
        eprintln!("round {round} of {}", options.flags.rounds());
        sqlite.take_turns(options).await?;
        postgres.take_turns(options).await?;
        let callers = connect(peer.text("address").parse()?, &requests, options.connections).await?;
        let cpu = || Ok(process::cpu_time(peer.id())? + process::cpu_time_of_family(server)?);
        by_hand.rounds.push(load::drive(callers, options.flags.turn(), cpu).await?.round);
    }
    sqlite.print(aims);
    postgres.print(aims);
    let cpu = |round: &Round| round.cpu_micros + round.database_micros.unwrap_or_default();
    println!("\n{}", report::table(std::slice::from_ref(&by_hand), None, &[vec!["–".into()]], "compared"));
    for (subject, most) in [(&*sqlite, 1.0 / 8.0), (&postgres, 1.0 / 3.0)] {
        let what = format!("CPU of all processes per event over a service by hand, ours on {}", subject.engine);
        aims.push(Aim::new(what, subject.series[COLD].ratio(&by_hand, cpu).median, Bound::AtMost(most), "x"));
    }
    all.extend(postgres.series);
    all.push(by_hand);
    Ok(())
}

fn event() -> Value {
    json!({ "metric": "calls", "value": 1 })
}

/// The header lines of each caller.
fn callers(server: &Child) -> Result<Vec<String>> {
    let tokens: Vec<String> = serde_json::from_value(server.told["tokens"].clone())?;
    let app = server.text("app");
    let app = if app.is_empty() { app } else { format!("\r\nx-app-id: {app}") };
    Ok(tokens.iter().map(|token| format!("authorization: Bearer {token}{app}")).collect())
}

/// One for each caller.
fn ingest(callers: &[String], event: &Value) -> Vec<Request> {
    callers.iter().map(|caller| Request::post("/usage/ingest", caller, &event.to_string())).collect()
}

/// Connections share the requests out among themselves.
async fn connect(address: SocketAddr, requests: &[Request], count: usize) -> Result<Vec<Connection>> {
    let mut callers = Vec::with_capacity(count);
    for request in requests.iter().cycle().take(count) {
        callers.push(Connection::open(address, request.clone()).await?);
    }
    Ok(callers)
}

/// A server on one engine, with what it is asked.
struct Subject {
    engine: &'static str,
    server: Child,
    /// PostgreSQL's main process, whose processor time is told beside the server's.
    database: Option<u32>,
    requests: Vec<Vec<Request>>,
    series: Vec<Series>,
}

impl Subject {
    async fn start(engine: &'static str, options: &Options, database: Option<(String, u32)>) -> Result<Self> {
        let mut arguments = vec!["--act-as", "server"];
        if let Some((url, _)) = &database {
            arguments.extend(["--database", url]);
        }
        let server = Child::start(&arguments)?;
        let callers = callers(&server)?;
        let (hot, cold) = callers.split_first().ok_or("no workspaces")?;
        let batch = json!({ "events": vec![event(); BATCH] });
        let batches = |caller: &String| Request::post("/usage/ingest/batch", caller, &batch.to_string());
        let candidates: [(&str, usize, Vec<Request>); 6] = [
            ("GET /healthz (in memory)", options.connections, vec![Request::get("/healthz", "")]),
            ("POST /usage/ingest, 20 workspaces", options.connections, ingest(cold, &event())),
            ("POST /usage/ingest, one workspace", options.connections, ingest(std::slice::from_ref(hot), &event())),
            (
                "GET /entitlements",
                options.connections,
                cold.iter().map(|caller| Request::get("/entitlements", caller)).collect(),
            ),
            ("POST /usage/ingest/batch of 100", options.connections, cold.iter().map(batches).collect()),
            ("POST /usage/ingest, a crowd", CROWD, ingest(cold, &event())),
        ];
        let series = candidates.iter().map(|(name, callers, _)| Series::new(format!("{engine}: {name}"), *callers));
        let series = series.collect();
        let requests = candidates.into_iter().map(|(_, _, requests)| requests).collect();
        Ok(Self { engine, server, database: database.map(|(_, process)| process), requests, series })
    }

    fn database_cpu(&self) -> Result<Option<Duration>> {
        self.database.map(process::cpu_time_of_family).transpose()
    }

    async fn commits(&self) -> Result<f64> {
        let mut connection = Connection::open(self.server.text("commits").parse()?, Request::get("/", "")).await?;
        let told: Value = serde_json::from_slice(connection.ask().await?)?;
        Ok(told["commits"].as_f64().unwrap_or_default())
    }

    async fn take_turns(&mut self, options: &Options) -> Result<()> {
        let address: SocketAddr = self.server.text("address").parse()?;
        for place in 0..self.series.len() {
            let callers = connect(address, &self.requests[place], self.series[place].callers).await?;
            let before = self.commits().await?;
            let database = RefCell::new(Vec::new());
            let cpu = || {
                database.borrow_mut().extend(self.database_cpu()?);
                process::cpu_time(self.server.id())
            };
            let driven = load::drive(callers, options.flags.turn(), cpu).await?;
            let mut round = driven.round;
            if let [before, after] = database.into_inner()[..] {
                let micros = after.saturating_sub(before).as_secs_f64() * 1e6;
                round.database_micros = Some(micros / driven.answered.max(1) as f64);
            }
            if place == CROWDED {
                round.shared_by = Some(driven.answered as f64 / (self.commits().await? - before).max(1.0));
            }
            self.series[place].rounds.push(round);
        }
        Ok(())
    }

    fn print(&self, aims: &mut Vec<Aim>) {
        let (cpu, rate) = (|round: &Round| round.cpu_micros, |round: &Round| round.per_second);
        let over = |place: usize, other: usize, figure: fn(&Round) -> f64| {
            self.series[place].ratio(&self.series[other], figure)
        };
        let compared: Vec<Vec<String>> =
            (0..self.series.len()).map(|place| vec![times(over(place, IN_MEMORY, cpu))]).collect();
        println!("\n{}", report::table(&self.series, Some("events per commit"), &compared, "CPU over in memory"));
        let sqlite = self.database.is_none();
        let mut aim = |what: &str, found: f64, bound: Bound| {
            aims.push(Aim::new(format!("{}: {what}", self.engine), found, bound, "x"));
        };
        if sqlite {
            aim("CPU of an event over the in-memory route", over(COLD, IN_MEMORY, cpu).median, Bound::AtMost(3.5));
            let shared = self.series[CROWDED].shared_by().map_or(0.0, |spread| spread.median);
            aim("events per commit at 256 connections", shared, Bound::AtLeast(32.0));
        }
        aim("one hot workspace over twenty cold ones, rate", over(HOT, COLD, rate).median, Bound::AtLeast(0.7));
        let most = if sqlite { 2.5 } else { 4.0 };
        aim(
            "CPU of GET /entitlements over the in-memory route",
            over(READ, IN_MEMORY, cpu).median,
            Bound::AtMost(most),
        );
        let batches = over(BATCHES, COLD, rate).median * BATCH as f64;
        aim("events in batches of 100 over single ones, rate", batches, Bound::AtLeast(5.0));
    }
}
