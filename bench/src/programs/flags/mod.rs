//! What evaluating flags costs: over HTTP against static JSON of the same size behind the same middleware, in process,
//! and the loading of very many.

mod in_process;
mod many;
mod sample;
mod subject;

use std::net::SocketAddr;

use bench::{
    Flags, Result, Threads,
    child::Child,
    client::{Connection, Request},
    load, process,
    report::{self, Aim, Bound, times},
    series::{Round, Series},
};
use clap::Args;
use serde_json::Value;

/// Measures the evaluation of feature flags.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    flags: Flags,
    /// Connections that are kept open, each with one request at a time.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Be the server that is measured, or the loader of many flags.
    #[arg(long, hide = true)]
    act_as: Option<String>,
}

pub fn start(options: &Options) -> Result<()> {
    bench::block_on(Threads::for_part(options.act_as.is_some()), async {
        match options.act_as.as_deref() {
            Some("server") => Box::pin(subject::serve()).await,
            Some(_) => many::run().await,
            None => run(options).await,
        }
    })
}

async fn run(options: &Options) -> Result<()> {
    let mut aims = Vec::new();
    in_process::run(&mut aims)?;
    let loader = Child::start(&["--act-as", "loader"])?;
    let number = |name: &str| loader.told[name].as_f64().unwrap_or(f64::NAN);
    println!(
        "\n{} flags over {} apps: {:.0} bytes of memory per flag, {:.0} with what loading left behind",
        number("flags"),
        number("apps"),
        number("bytesPerFlag"),
        number("peakBytesPerFlag")
    );
    aims.push(Aim::new("100,000 flags over 1,000 apps loaded", number("seconds"), Bound::Below(2.0), " s"));
    over_http(options, &mut aims).await?;
    report::print_aims(&aims);
    Ok(())
}

async fn over_http(options: &Options, aims: &mut Vec<Aim>) -> Result<()> {
    let server = Child::start(&["--act-as", "server"])?;
    let text = |name: &str| server.text(name);
    let address: SocketAddr = text("address").parse()?;
    let (app, context) = (text("app"), sample::context());
    let with_token =
        serde_json::json!({ "context": serde_json::from_str::<Value>(&context)?, "accessToken": text("token") });
    let one = format!("/cloud-views/flags/evaluate/{app}/flag-25");
    let all = format!("/cloud-views/flags/bulkEvaluate/{app}");
    let post = |path: &str, body: &str| Request::post(path, "", body).expecting(200);
    let open_feature = format!("/cloud-views/ofrep/{app}/ofrep/v1/evaluate/flags");
    // Each with the candidate that it is compared to, which runs shortly before it.
    let candidates = [
        ("static, one's size", post("/static/one", &context), 0),
        ("one flag", post(&one, &context), 0),
        ("one flag, access token", post(&one, &with_token.to_string()), 0),
        ("static, one's size, GET", Request::get("/static/one", ""), 0),
        ("one flag, GET", Request::get(&one, ""), 3),
        ("static, bulk's size", post("/static/all", &context), 5),
        ("bulk of 50", post(&all, &context), 5),
        ("bulk of 50, OFREP", post(&open_feature, &format!("{{\"context\":{context}}}")), 5),
        ("static, bulk's size, GET", Request::get("/static/all", ""), 5),
    ];
    let mut series: Vec<Series> = candidates.iter().map(|(name, ..)| Series::new(*name, options.connections)).collect();
    for _ in 0..options.flags.rounds() {
        for ((_, request, _), series) in candidates.iter().zip(&mut series) {
            let mut callers = Vec::with_capacity(options.connections);
            for _ in 0..options.connections {
                callers.push(Connection::open(address, request.clone()).await?);
            }
            let process = server.id();
            let driven = load::drive(callers, options.flags.turn(), || process::cpu_time(process)).await?;
            series.rounds.push(driven.round);
        }
    }
    let cpu = |round: &Round| round.cpu_micros;
    let mut compared = Vec::new();
    for (place, (name, _, baseline)) in candidates.iter().enumerate() {
        let ratio = series[place].ratio(&series[*baseline], cpu);
        compared.push(vec![times(ratio)]);
        let most = match place {
            1 | 4 => 1.25,
            6 => 2.5,
            _ => continue,
        };
        let what = format!("CPU of {name} over static JSON of its size, asked alike");
        aims.push(Aim::new(what, ratio.median, Bound::AtMost(most), "x"));
    }
    let over_get = |place: usize, get: usize| times(series[place].ratio(&series[get], cpu));
    println!(
        "\nA POST with a context over static JSON to a GET without a body: one {}, bulk {}",
        over_get(1, 3),
        over_get(6, 8)
    );
    println!(
        "\nOver HTTP (SQLite); answers of {} and {} bytes\n\n{}",
        server.told["one"],
        server.told["all"],
        report::table(&series, None, &compared, "CPU over static")
    );
    let token = series[2].cpu_micros().median - series[1].cpu_micros().median;
    println!("An access token in the context costs {token:.1} µs of CPU more (signature remembered, membership read).");
    if let Some(path) = &options.flags.json {
        report::write_json(path, &[&series], aims)?;
    }
    Ok(())
}
