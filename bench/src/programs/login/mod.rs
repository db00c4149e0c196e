//! What signing in costs: token exchange and refresh against the three signatures that they consist of, calls with an
//! access token against a route without one, and what a point read notices of many people signing in at once.

mod callers;
mod subject;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bench::{
    Flags, Result, Threads,
    child::Child,
    client::{Connection, Request},
    database::Database,
    leisure::read_at_leisure,
    load::{self, Caller, Driven},
    process,
    report::{self, Aim, Bound, times},
    series::{Round, Series},
    subject::PASSWORD,
};
use callers::{Exchanger, Held, Refresher, Stock, exchange};
use clap::Args;
use serde_json::{Value, json};

/// Measures sign-in and tokens.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    flags: Flags,
    /// Connections that are kept open, each with one request at a time.
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// People who sign in with a password at the same time.
    #[arg(long, default_value_t = 16)]
    logins: usize,
    /// Only the point read beside logins, which needs a quiet machine.
    #[arg(long)]
    latency_only: bool,
    /// Be the server that is measured.
    #[arg(long, hide = true)]
    serve: bool,
    #[arg(long, hide = true)]
    database: Option<String>,
}

/// Readers of the point read; each makes up to a hundred reads a second.
const READERS: usize = 8;
/// Enough to keep every core signing.
const SIGNERS: usize = 4;

pub fn start(options: &Options) -> Result<()> {
    bench::block_on(Threads::for_part(options.serve), async {
        if options.serve { subject::serve(options.database.as_deref()).await } else { run(options).await }
    })
}

async fn run(options: &Options) -> Result<()> {
    let mut aims = Vec::new();
    let mut all = measure("SQLite", options, None, &mut aims).await?;
    if let Some(server) = options.flags.postgres() {
        let database = Database::create(&server).await?;
        println!("\nPostgreSQL runs with fsync = {}", database.fsync().await?);
        let measured = measure("PostgreSQL", options, Some(database.url()?), &mut aims).await;
        database.remove().await?;
        all.extend(measured?);
    }
    report::print_aims(&aims);
    match &options.flags.json {
        Some(path) => report::write_json(path, &[&all], &aims),
        None => Ok(()),
    }
}

async fn measure(
    engine: &str,
    options: &Options,
    database: Option<String>,
    aims: &mut Vec<Aim>,
) -> Result<Vec<Series>> {
    let server = Server::start(database.as_deref())?;
    let mut all = Vec::new();
    if !options.latency_only {
        all.extend(cpu(engine, options, &server, aims).await?);
    }
    all.extend(latency(engine, options, &server, aims).await?);
    Ok(all)
}

/// The server that is measured, and what it told.
struct Server {
    child: Child,
    address: SocketAddr,
    signing: SocketAddr,
    app: String,
    key: String,
    people: Vec<Value>,
}

impl Server {
    fn start(database: Option<&str>) -> Result<Self> {
        let mut arguments = vec!["--serve"];
        arguments.extend(database.into_iter().flat_map(|url| ["--database", url]));
        let child = Child::start(&arguments)?;
        Ok(Self {
            address: child.text("address").parse()?,
            signing: child.text("signing").parse()?,
            app: child.text("app"),
            key: child.text("key"),
            people: child.told["people"].as_array().cloned().unwrap_or_default(),
            child,
        })
    }

    /// Everybody's login sessions.
    fn stocks(&self) -> Vec<Arc<Mutex<Stock>>> {
        self.people.iter().map(|person| Stock::new(&person["sessions"])).collect()
    }

    fn logins(&self) -> Vec<Request> {
        let login = |person: &Value| {
            let app = &self.app;
            let body = json!({ "username": person["email"], "password": PASSWORD, "appId": app, "mode": "sdk" });
            let origin = "origin: http://localhost:3000";
            Request::post("/auth/auth/authenticate", origin, &body.to_string()).expecting(200)
        };
        self.people.iter().map(login).collect()
    }

    async fn connect(&self, requests: &[Request], count: usize) -> Result<Vec<Connection>> {
        let mut connections = Vec::with_capacity(count);
        for request in requests.iter().cycle().take(count) {
            connections.push(Connection::open(self.address, request.clone()).await?);
        }
        Ok(connections)
    }

    async fn drive<C: Caller>(&self, callers: Vec<C>, options: &Options) -> Result<Round> {
        let process = self.child.id();
        let Driven { round, .. } = load::drive(callers, options.flags.turn(), || process::cpu_time(process)).await?;
        Ok(round)
    }
}

/// What everybody holds after an exchange: header lines with access tokens, and refresh tokens.
async fn sign_everybody_in(server: &Server, stocks: &[Arc<Mutex<Stock>>]) -> Result<(Vec<String>, Vec<Held>)> {
    let (mut bearers, mut refresh_tokens) = (Vec::new(), Vec::new());
    for stock in stocks {
        let mut connection = Connection::open(server.address, exchange(&server.app, stock)?).await?;
        let tokens: Value = serde_json::from_slice(connection.ask().await?)?;
        let text = |name: &str| tokens[name].as_str().unwrap_or_default().to_owned();
        bearers.push(format!("authorization: Bearer {}\r\nx-app-id: {}", text("access_token"), server.app));
        refresh_tokens.push(Arc::new(Mutex::new(text("refresh_token"))));
    }
    Ok((bearers, refresh_tokens))
}

async fn cpu(engine: &str, options: &Options, server: &Server, aims: &mut Vec<Aim>) -> Result<Vec<Series>> {
    let stocks = server.stocks();
    let (bearers, held) = sign_everybody_in(server, &stocks).await?;
    let get = |path: &str| bearers.iter().map(|bearer| Request::get(path, bearer)).collect::<Vec<_>>();
    let bearer_calls = [
        ("GET /auth/userinfo", get("/auth/userinfo")),
        ("GET /account/subscription/plans (USER)", get("/account/subscription/plans")),
    ];
    let callers = options.connections;
    let mut series = vec![
        Series::new("three PS256 signatures", SIGNERS),
        Series::new("POST /auth/token/direct", callers),
        Series::new("POST /auth/token, refresh", callers),
        Series::new("GET /healthz (in memory)", callers),
    ];
    series.extend(bearer_calls.iter().map(|(name, _)| Series::new(*name, callers)));
    for round in 1..=options.flags.rounds() {
        eprintln!("{engine}: round {round}");
        let signatures = Request::post("/", "", "{}").expecting(200);
        let mut signers = Vec::new();
        for _ in 0..SIGNERS {
            signers.push(Connection::open(server.signing, signatures.clone()).await?);
        }
        let mut signed = server.drive(signers, options).await?;
        signed.cpu_micros /= subject::THREES as f64;
        signed.per_second *= subject::THREES as f64;
        series[0].rounds.push(signed);
        let mut exchangers = Vec::new();
        for stock in stocks.iter().take(callers) {
            exchangers.push(Exchanger::open(server.address, &server.app, Arc::clone(stock)).await?);
        }
        series[1].rounds.push(server.drive(exchangers, options).await?);
        let mut refreshers = Vec::new();
        for held in held.iter().take(callers) {
            refreshers.push(Refresher::open(server.address, &server.app, Arc::clone(held)).await?);
        }
        series[2].rounds.push(server.drive(refreshers, options).await?);
        let healthz = [Request::get("/healthz", "")];
        for (place, requests) in
            std::iter::once(healthz.as_slice()).chain(bearer_calls.iter().map(|(_, all)| all.as_slice())).enumerate()
        {
            series[3 + place].rounds.push(server.drive(server.connect(requests, callers).await?, options).await?);
        }
    }
    let cpu = |round: &Round| round.cpu_micros;
    let mut compared = Vec::new();
    for (place, one) in series.iter().enumerate() {
        let ratio = one.ratio(&series[if place < 3 { 0 } else { 3 }], cpu);
        compared.push(vec![times(ratio)]);
        if let 1 | 2 = place {
            let what = format!("{engine}: CPU of {} over three signatures", one.name);
            aims.push(Aim::new(what, ratio.median, Bound::AtMost(1.18), "x"));
        }
        if place > 3 {
            let what = format!("{engine}: CPU of {} over in memory", one.name);
            let most = if engine == "SQLite" { 2.5 } else { 4.0 };
            aims.push(Aim::new(what, ratio.median, Bound::AtMost(most), "x"));
        }
    }
    println!("\n{engine}\n\n{}", report::table(&series, None, &compared, "CPU over signatures, or in memory"));
    Ok(series)
}

async fn latency(engine: &str, options: &Options, server: &Server, aims: &mut Vec<Aim>) -> Result<Vec<Series>> {
    let read = Request::get("/account/app", &format!("x-api-key: {}", server.key));
    let mut series = [
        Series::new("GET /account/app, now and then", READERS),
        Series::new("GET /account/app beside logins", READERS),
        Series::new("POST /auth/auth/authenticate", options.logins),
    ];
    for _ in 0..options.flags.rounds() {
        let turn = options.flags.turn();
        series[0].rounds.push(read_at_leisure(server.address, &read, READERS, turn).await?);
        let logins = server.connect(&server.logins(), options.logins).await?;
        let (logins, beside) =
            tokio::try_join!(server.drive(logins, options), read_at_leisure(server.address, &read, READERS, turn))?;
        series[1].rounds.push(beside);
        series[2].rounds.push(logins);
    }
    let p99 = |round: &Round| round.p99_millis;
    let ratio = series[1].ratio(&series[0], p99);
    let compared = [vec!["1.00x".into()], vec![times(ratio)], vec!["–".into()]];
    println!("\n{engine}\n\n{}", report::table(&series, None, &compared, "p99 over idle"));
    let what = format!("{engine}: p99 of a point read under saturated logins over idle");
    aims.push(Aim::new(what, ratio.median, Bound::AtMost(3.0), "x"));
    Ok(series.into())
}
