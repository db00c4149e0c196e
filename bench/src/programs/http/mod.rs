//! Starts the real server in release mode and drives it over loopback HTTP.
//!
//! A route that touches no storage is the baseline; what the others cost is told as processor time of the server's own
//! process per request, the steadiest figure on a noisy machine.

mod server;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use bench::{
    Flags, Result, Threads,
    client::{Connection, Request},
    database::Database,
    load, process,
    report::{self, Aim, Bound, Table, figure, times},
    series::{Round, Series, Spread},
};
use clap::Args;
use serde_json::Value;
use server::{Installation, Server};

/// Measures the tenantry server over HTTP.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    flags: Flags,
    /// Connections that are kept open, each with one request at a time; several numbers are measured in turns.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256])]
    connections: Vec<usize>,
    /// A server to measure; otherwise one is built from this workspace in release mode.
    #[arg(long, value_name = "PROGRAM")]
    server: Option<PathBuf>,
    /// What the server logs, to nowhere. The default is the server's own: a line per request.
    #[arg(long, default_value = "info")]
    log: String,
}

/// So many that no lock on an app is what is measured.
const APPS: usize = 64;
/// What a server has to itself before its idle memory is read: long enough for the allocator to give back what it can.
const REST: Duration = Duration::from_secs(6);

pub fn start(options: &Options) -> Result<()> {
    bench::block_on(Threads::One, run(options))
}

async fn run(options: &Options) -> Result<()> {
    let program = match &options.server {
        Some(program) => program.canonicalize()?,
        None => build_server()?,
    };
    let database = match options.flags.postgres() {
        Some(server) => Some(Database::create(&server).await?),
        None => None,
    };
    let outcome = measure(options, &program, database.as_ref()).await;
    if let Some(database) = database {
        database.remove().await?;
    }
    outcome
}

/// Built on its own: cargo would give it the features that the benchmarks' dependencies ask for otherwise.
fn build_server() -> Result<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo).args(["build", "--release", "-p", "tenantry"]).current_dir(&workspace).status()?;
    if !built.success() {
        return Err("the server could not be built".into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
    Ok(target.join("release/tenantry"))
}

async fn measure(options: &Options, program: &Path, database: Option<&Database>) -> Result<()> {
    let mut aims = Vec::new();
    let mut subjects = vec![Subject::start("SQLite", program, None, options, &mut aims).await?];
    if let Some(database) = database {
        println!("PostgreSQL runs with fsync = {}", database.fsync().await?);
        subjects.push(Subject::start("PostgreSQL", program, Some(database.url()?), options, &mut aims).await?);
    }
    let rounds = options.flags.rounds();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for subject in &mut subjects {
            subject.take_turns(options).await?;
        }
    }
    for subject in &subjects {
        subject.print(&mut aims);
    }
    tokio::time::sleep(REST).await;
    for subject in &subjects {
        let what = format!("{}: idle memory after the load", subject.engine);
        aims.push(Aim::new(what, process::resident_megabytes(subject.server.process())?, Bound::Below(50.0), " MB"));
    }
    report::print_aims(&aims);
    if let Some(path) = &options.flags.json {
        let all: Vec<&[Series]> = subjects.iter().map(|subject| subject.series.as_slice()).collect();
        report::write_json(path, &all, &aims)?;
    }
    subjects.into_iter().try_for_each(|subject| subject.server.stop())
}

/// A server on one engine, with what it is asked.
struct Subject {
    engine: &'static str,
    server: Server,
    routes: Vec<Route>,
    /// Per number of connections, in the order of the routes.
    series: Vec<Series>,
    // Dropped after the server.
    _installation: Installation,
}

/// The first route is the baseline.
struct Route {
    name: &'static str,
    is_point_read: bool,
    /// Connections share them out among themselves.
    requests: Vec<Request>,
}

impl Subject {
    async fn start(
        engine: &'static str,
        program: &Path,
        url: Option<String>,
        options: &Options,
        aims: &mut Vec<Aim>,
    ) -> Result<Self> {
        let installation = Installation::new(program, url, &options.log)?;
        let first = installation.start().await?;
        println!("\n{engine}: first start to first answer {} s", figure(first.first_answer.as_secs_f64()));
        first.stop()?;

        let mut starts = Vec::new();
        for _ in 1..options.flags.rounds() {
            let server = installation.start().await?;
            starts.push(server.first_answer.as_secs_f64());
            server.stop()?;
        }
        let server = installation.start().await?;
        starts.push(server.first_answer.as_secs_f64());
        let starts = Spread::of(starts);
        println!(
            "{engine}: later starts to first answer {} s",
            report::with_ends(starts, |value| format!("{value:.3}"))
        );
        aims.push(Aim::new(
            format!("{engine}: second start to first answer, worst"),
            starts.max,
            Bound::Below(0.5),
            " s",
        ));

        tokio::time::sleep(REST).await;
        let resident = process::resident_megabytes(server.process())?;
        aims.push(Aim::new(format!("{engine}: idle memory after start"), resident, Bound::Below(50.0), " MB"));

        let routes = routes(server.address, &installation.operator()?).await?;
        let series = options
            .connections
            .iter()
            .flat_map(|&connections| routes.iter().map(move |route| Series::new(route.name, connections)))
            .collect();
        Ok(Self { engine, server, routes, series, _installation: installation })
    }

    async fn take_turns(&mut self, options: &Options) -> Result<()> {
        for (place, series) in self.series.iter_mut().enumerate() {
            let route = &self.routes[place % self.routes.len()];
            let mut callers = Vec::with_capacity(series.callers);
            for request in route.requests.iter().cycle().take(series.callers) {
                callers.push(Connection::open(self.server.address, request.clone()).await?);
            }
            let process = self.server.process();
            let driven = load::drive(callers, options.flags.turn(), || process::cpu_time(process)).await?;
            series.rounds.push(driven.round);
        }
        Ok(())
    }

    fn print(&self, aims: &mut Vec<Aim>) {
        let cpu = |round: &Round| round.cpu_micros;
        let mut compared = Vec::new();
        for group in self.series.chunks(self.routes.len()) {
            let baseline = &group[0];
            for (series, route) in group.iter().zip(&self.routes) {
                let ratio = series.ratio(baseline, cpu);
                compared.push(vec![times(ratio)]);
                if route.is_point_read {
                    let what = format!(
                        "{}: CPU of {} over in memory, {} connections",
                        self.engine, route.name, series.callers
                    );
                    aims.push(Aim::new(what, ratio.median, Bound::AtMost(2.5), "x"));
                }
            }
        }
        let table: Table = report::table(&self.series, None, &compared, "CPU over in memory");
        println!("\n{} over HTTP\n\n{table}", self.engine);
    }
}

/// Sends one request and returns the texts at JSON pointers of its answer.
async fn made<const N: usize>(address: SocketAddr, request: Request, pointers: [&str; N]) -> Result<[String; N]> {
    let answer: Value = serde_json::from_slice(Connection::open(address, request).await?.ask().await?)?;
    let text = |pointer| answer.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let texts: Option<Vec<String>> = pointers.into_iter().map(text).collect();
    let texts = texts.and_then(|texts| texts.try_into().ok());
    texts.ok_or_else(|| format!("an answer in an unknown form: {answer}").into())
}

/// Makes apps to ask for, each with a key and an API token.
async fn routes(address: SocketAddr, operator: &str) -> Result<Vec<Route>> {
    let (mut ids, mut keys, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..APPS {
        let body = format!(
            r#"{{"name":"Bench {number}","domain":"bench-{number}.example","uiUrl":"https://bench-{number}.example"}}"#
        );
        let request = Request::post("/admin/apps", operator, &body);
        let [id, key] = made(address, request, ["/app/id", "/apiKey"]).await?;
        let key = format!("x-api-key: {key}");
        let body = r#"{"name":"Bench","privileges":["APP_READ"]}"#;
        let [token] = made(address, Request::post("/account/api-token/app", &key, body), ["/token"]).await?;
        ids.push(id);
        keys.push(key);
        tokens.push(token);
    }
    let each = |make: &dyn Fn(&String) -> Request, of: &[String]| of.iter().map(make).collect::<Vec<_>>();
    Ok(vec![
        Route { name: "GET /healthz (in memory)", is_point_read: false, requests: vec![Request::get("/healthz", "")] },
        Route {
            name: "GET /admin/apps/{id}",
            is_point_read: true,
            requests: each(&|id| Request::get(&format!("/admin/apps/{id}"), operator), &ids),
        },
        Route {
            name: "GET /account/app",
            is_point_read: true,
            requests: each(&|key| Request::get("/account/app", key), &keys),
        },
        Route {
            name: "GET /account/app (API token)",
            is_point_read: true,
            requests: each(&|token| Request::get("/account/app", &format!("x-api-key: {token}")), &tokens),
        },
        Route {
            name: "POST /account/api-token/introspect",
            is_point_read: true,
            requests: each(
                &|token| Request::post("/account/api-token/introspect", "", &format!(r#"{{"token":"{token}"}}"#)),
                &tokens,
            ),
        },
        Route {
            name: "POST /admin/apps/{id}/keys",
            is_point_read: false,
            requests: each(
                &|id| Request::post(&format!("/admin/apps/{id}/keys"), operator, r#"{"name":"bench"}"#),
                &ids,
            ),
        },
    ])
}
