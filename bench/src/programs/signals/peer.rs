//! The same events through a job queue on PostgreSQL, as a team without such a service would send them.

use std::{path::Path, process::Command};

use bench::{
    Result,
    database::Database,
    process,
    report::{Aim, Bound, figure},
};
use serde_json::Value;

use super::receiver::{Manner, Receiver};

/// `ours` is what a change and its delivery cost the service on SQLite, in microseconds.
pub async fn compare(postgres: &str, events: usize, ours: f64, aims: &mut Vec<Aim>) -> Result<()> {
    eprintln!("graphile-worker: {events} events");
    let database = Database::create(postgres).await?;
    let measured = deliver(&database, events).await;
    database.remove().await?;
    let theirs = measured? * 1e6 / events as f64;
    println!("\ngraphile-worker on PostgreSQL: {} µs of CPU an event, all processes", figure(theirs));
    println!("  a change and its delivery here, on SQLite: {} µs", figure(ours));
    let what = "CPU of all processes for an event over graphile-worker, ours on SQLite and with the change itself";
    aims.push(Aim::new(what, ours / theirs, Bound::AtMost(0.2), "x"));
    Ok(())
}

/// Seconds of processor time, of Node and of PostgreSQL together.
async fn deliver(database: &Database, events: usize) -> Result<f64> {
    let receiver = Receiver::start(Manner::Acknowledges)?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/graphile-worker");
    let server = database.main_process().await?;
    let before = process::cpu_time_of_family(server)?;
    let mut command = Command::new("node");
    command.arg("deliver.mjs").arg(database.url()?).arg(format!("http://{}/hooks", receiver.address));
    let output = command.arg(events.to_string()).current_dir(folder).output()?;
    if !output.status.success() {
        return Err(format!("graphile-worker failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let database_cpu = process::cpu_time_of_family(server)?.saturating_sub(before);
    let last = String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned();
    let node_cpu = serde_json::from_str::<Value>(&last)?["cpu"].as_f64().ok_or("no figure")?;
    Ok(node_cpu + database_cpu.as_secs_f64())
}
