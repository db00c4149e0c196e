//! Deliveries: what one costs, how many there are in a second, and how soon they come.

use std::{collections::HashMap, time::Duration};

use bench::{
    Result,
    child::Child,
    client::Connection,
    report::{Aim, Bound, figure, times, with_ends},
    series::Spread,
};
use kernel::{Tick, Ticker};
use tokio::task::JoinSet;

use super::{
    Options, backlog,
    receiver::{Manner, Receiver},
    server::{Server, Workspace},
};

const WRITERS: usize = 16;
/// What a server needs to write down the last outcomes.
const REST: Duration = Duration::from_millis(700);

/// So many events, from several connections as fast as they are answered.
pub async fn rename_often(server: &Server, workspace: &Workspace, prefix: &str, count: usize) -> Result<()> {
    let mut tasks = JoinSet::new();
    for writer in 0..WRITERS {
        let (workspace, prefix) = (workspace.clone(), prefix.to_owned());
        let mut connection = Connection::open(server.address, workspace.rename("warm")).await?;
        tasks.spawn(async move {
            for number in (writer..count).step_by(WRITERS) {
                connection.ask_next(workspace.rename(&format!("{prefix}-{number}")));
                connection.ask().await?;
            }
            Result::<()>::Ok(())
        });
    }
    while let Some(written) = tasks.join_next().await {
        written??;
    }
    Ok(())
}

/// Returns the CPU of a change and its delivery together, in microseconds.
pub async fn run(
    engine: &str,
    postgres: Option<&str>,
    server: &Server,
    options: &Options,
    aims: &mut Vec<Aim>,
) -> Result<f64> {
    let (receiver, workspace) = (Receiver::start(Manner::Acknowledges)?, server.workspace().await?);
    let (target, count) = (receiver.address, options.events);
    server.point(&server.app, target, backlog::CAUSED).await?;
    let (mut cost, mut rate, mut live, mut whole) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..options.flags.rounds() {
        eprintln!("{engine}: deliveries, round {round}");
        let arguments = ["--act-as", "bare-client", "--target", &target.to_string(), "--events", &count.to_string()];
        let bare = Child::start(&arguments)?;
        let told = |name: &str| bare.told[name].as_f64().unwrap_or(f64::NAN);
        let (bare_cpu, bare_rate) = (told("cpu") / told("sent"), told("sent") / told("seconds"));

        // Whoever reads facts reads these, also where nobody is told of them.
        let untold = backlog::handle(postgres, target, count, "tenant.deleted").await?;
        let told = backlog::handle(postgres, target, count, backlog::CAUSED).await?;
        cost.push((told.cpu_micros - untold.cpu_micros, bare_cpu * 1e6));
        rate.push((told.per_second, bare_rate));

        let (before, arrived, started) = (server.cpu()?, receiver.count(), Ticker.now());
        rename_often(server, &workspace, &format!("told{round}"), count).await?;
        receiver.wait_for(arrived + count).await?;
        live.push(count as f64 / Ticker.since(started).as_secs_f64());
        tokio::time::sleep(REST).await;
        whole.push(server.cpu()?.saturating_sub(before).as_secs_f64() * 1e6 / count as f64);
    }
    let own = |of: &[(f64, f64)]| with_ends(Spread::of(of.iter().map(|(own, _)| *own)), figure);
    let bare = |of: &[(f64, f64)]| with_ends(Spread::of(of.iter().map(|(_, bare)| *bare)), figure);
    let ratio = |of: &[(f64, f64)]| Spread::of(of.iter().map(|(own, bare)| own / bare));
    let whole = Spread::of(whole);
    println!("\n{engine}: deliveries of {count} events");
    println!("  CPU µs each {} over a bare request's {}", own(&cost), bare(&cost));
    println!("  per second {} over {}", own(&rate), bare(&rate));
    println!("  ratios: CPU {}, rate {}", times(ratio(&cost)), times(ratio(&rate)));
    println!("  with the changes that cause them: per second {}", with_ends(Spread::of(live), figure));
    println!("  and CPU µs each {}", with_ends(whole, figure));
    let most = if engine == "SQLite" { 2.0 } else { 3.0 };
    let what = format!("{engine}: CPU from committed fact to recorded answer over a bare request");
    aims.push(Aim::new(what, ratio(&cost).median, Bound::AtMost(most), "x"));
    let what = format!("{engine}: deliveries of committed facts per second over bare requests");
    aims.push(Aim::new(what, ratio(&rate).median, Bound::AtLeast(0.3), "x"));
    Ok(whole.median)
}

/// Between the changes of one writer, so that all of them make 500 a second.
const PACE: Duration = Duration::from_millis(2 * WRITERS as u64);
const PACED: usize = 5_000;

/// From the answer to a change until its event arrives, at 500 a second.
pub async fn latency(engine: &str, server: &Server, aims: &mut Vec<Aim>) -> Result<()> {
    let (receiver, workspace) = (Receiver::start(Manner::Acknowledges)?, server.workspace().await?);
    server.point(&server.app, receiver.address, "tenant.updated").await?;
    let mut tasks = JoinSet::new();
    let started = Ticker.now();
    for writer in 0..WRITERS {
        let workspace = workspace.clone();
        let mut connection = Connection::open(server.address, workspace.rename("warm")).await?;
        tasks.spawn(async move {
            let mut answered = Vec::new();
            for number in (writer..PACED).step_by(WRITERS) {
                let due = PACE * u32::try_from(number / WRITERS)? + Duration::from_millis(2 * writer as u64);
                tokio::time::sleep(due.saturating_sub(Ticker.since(started))).await;
                connection.ask_next(workspace.rename(&format!("paced-{number}-")));
                connection.ask().await?;
                answered.push((number, Ticker.now()));
            }
            Result::<Vec<(usize, Tick)>>::Ok(answered)
        });
    }
    let mut answered = HashMap::new();
    while let Some(written) = tasks.join_next().await {
        answered.extend(written??);
    }
    receiver.wait_for(PACED).await?;
    let mut millis: Vec<f64> = Vec::new();
    for (request, at) in receiver.taken() {
        let number = String::from_utf8_lossy(&request)
            .split_once("paced-")
            .and_then(|(_, rest)| rest.split_once('-')?.0.parse::<usize>().ok());
        if let Some(committed) = number.and_then(|number| answered.get(&number)) {
            millis.push(at.since(*committed).as_secs_f64() * 1e3);
        }
    }
    millis.sort_by(f64::total_cmp);
    let at = |share: f64| millis.get((millis.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN);
    println!("\n{engine}: {} deliveries at 500 a second, worst {} ms", millis.len(), figure(at(0.9999)));
    let (median, most) = if engine == "SQLite" { (5.0, 50.0) } else { (20.0, 150.0) };
    aims.push(Aim::new(
        format!("{engine}: change to arrival at 500 a second, median"),
        at(0.5),
        Bound::AtMost(median),
        " ms",
    ));
    aims.push(Aim::new(
        format!("{engine}: change to arrival at 500 a second, 99 %"),
        at(0.99),
        Bound::AtMost(most),
        " ms",
    ));
    Ok(())
}
