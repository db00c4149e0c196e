//! Deliveries: what one costs beyond the change that causes it, how many there are in a second, and how soon they come.

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
    Options,
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
pub async fn run(engine: &str, server: &Server, options: &Options, aims: &mut Vec<Aim>) -> Result<f64> {
    let (receiver, workspace) = (Receiver::start(Manner::Acknowledges)?, server.workspace().await?);
    let (target, count) = (receiver.address.to_string(), options.events);
    let (mut cost, mut rate, mut whole, mut alone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..options.flags.rounds() {
        eprintln!("{engine}: deliveries, round {round}");
        let bare = Child::start(&["--act-as", "bare-client", "--target", &target, "--events", &count.to_string()])?;
        let told = |name: &str| bare.told[name].as_f64().unwrap_or(f64::NAN);
        let (bare_cpu, bare_rate) = (told("cpu") / told("sent"), told("sent") / told("seconds"));

        server.point(&server.app, receiver.address, "tenant.deleted").await?;
        let (before, started) = (server.cpu()?, Ticker.now());
        rename_often(server, &workspace, &format!("untold{round}"), count).await?;
        alone.push(count as f64 / Ticker.since(started).as_secs_f64());
        tokio::time::sleep(REST).await;
        let untold = server.cpu()?.saturating_sub(before);

        server.point(&server.app, receiver.address, "tenant.updated").await?;
        let (before, arrived, started) = (server.cpu()?, receiver.count(), Ticker.now());
        rename_often(server, &workspace, &format!("told{round}"), count).await?;
        receiver.wait_for(arrived + count).await?;
        let seconds = Ticker.since(started).as_secs_f64();
        tokio::time::sleep(REST).await;
        let told = server.cpu()?.saturating_sub(before);

        let each = told.saturating_sub(untold).as_secs_f64() / count as f64;
        cost.push((each * 1e6, bare_cpu * 1e6));
        rate.push((count as f64 / seconds, bare_rate));
        whole.push(told.as_secs_f64() * 1e6 / count as f64);
    }
    let own = |of: &[(f64, f64)]| Spread::of(of.iter().map(|(own, _)| *own));
    let bare = |of: &[(f64, f64)]| Spread::of(of.iter().map(|(_, bare)| *bare));
    let ratio = |of: &[(f64, f64)]| Spread::of(of.iter().map(|(own, bare)| own / bare));
    println!("\n{engine}: deliveries of {count} events");
    println!(
        "  CPU µs each {} over a bare request's {}",
        with_ends(own(&cost), figure),
        with_ends(bare(&cost), figure)
    );
    println!("  per second {} over {}", with_ends(own(&rate), figure), with_ends(bare(&rate), figure));
    println!("  the changes alone, per second {}", with_ends(Spread::of(alone), figure));
    println!("  ratios: CPU {}, rate {}", times(ratio(&cost)), times(ratio(&rate)));
    let most = if engine == "SQLite" { 2.0 } else { 3.0 };
    let what = format!("{engine}: CPU from committed fact to recorded answer over a bare request");
    aims.push(Aim::new(what, ratio(&cost).median, Bound::AtMost(most), "x"));
    let what = format!("{engine}: deliveries per second, with the changes that cause them, over bare requests");
    aims.push(Aim::new(what, ratio(&rate).median, Bound::AtLeast(0.3), "x"));
    Ok(Spread::of(whole).median)
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
