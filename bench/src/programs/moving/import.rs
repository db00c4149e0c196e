//! An import from its first byte to its last person.

use std::{path::Path, time::Duration};

use bench::{
    Result,
    client::{Connection, Request},
    database::Database,
    leisure::{read_at_leisure, read_beside},
    process,
    report::{Aim, Bound, figure},
    server::Server,
    subject::OPERATOR,
};
use kernel::Ticker;
use serde_json::Value;

use super::{Options, batch, raw};

/// Readers of the point read; each makes up to a hundred reads a second.
const READERS: usize = 8;
const LOOK_AGAIN: Duration = Duration::from_millis(100);
const PASSPHRASE: &str = r#"{"passphrase":"violet harbour lamp"}"#;

/// Sends the batch and waits until everybody is in.
async fn import_all(server: &Server, body: &str) -> Result<()> {
    let taken = server.ask(Request::post("/account/import/tenants", &server.key, body).expecting(200)).await?;
    let reference = taken["reference"].as_str().ok_or_else(|| format!("the batch was refused: {taken}"))?;
    let path = format!("/account/import/status/{reference}");
    loop {
        let status = server.ask(Request::get(&path, &server.key)).await?;
        match status["status"].as_str() {
            Some("COMPLETED") => return Ok(()),
            Some("ERROR") => return Err(format!("the import failed: {status}").into()),
            _ => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }
}

/// The clock of processor time is coarse.
const PARSED: u32 = 5;

/// What parsing a body into a tree costs this process.
fn parsing(body: &str) -> Result<f64> {
    let before = process::cpu_time(std::process::id())?;
    let trees = (0..PARSED).map(|_| serde_json::from_str(body)).collect::<Result<Vec<Value>, _>>()?;
    let spent = process::cpu_time(std::process::id())?.saturating_sub(before);
    // To take them apart is no part of it.
    drop(trees);
    Ok((spent / PARSED).as_secs_f64())
}

pub async fn measure(engine: &str, options: &Options, database: Option<&Database>, aims: &mut Vec<Aim>) -> Result<()> {
    let server = Server::start(database).await?;
    let people = (options.workspaces * options.people) as f64;
    let body = batch::body(options.workspaces, options.people);
    let mut aim = |what: &str, found: f64, bound: Bound, unit: &'static str| {
        aims.push(Aim::new(format!("{engine}: {what}"), found, bound, unit));
    };
    eprintln!("{engine}: {people} people, {} MB", body.len() / 1_000_000);

    let (parsed, before) = (parsing(&body)?, server.cpu()?);
    let judged =
        server.ask(Request::post("/account/import/validateTenants", &server.key, &body).expecting(200)).await?;
    if judged["approved"] != true {
        return Err(format!("the batch was refused: {judged}").into());
    }
    let cpu = server.cpu()? - before;
    println!("\n{engine}: judging took {} s of CPU, parsing {} s", figure(cpu), figure(parsed));
    aim("CPU of judging the batch over parsing it", cpu / parsed, Bound::AtMost(3.0), "x");
    if options.judge {
        return Ok(());
    }

    let read = Request::get("/account/app", &server.key);
    let (before, turn) = (server.cpu()?, options.flags.turn());
    let idle = read_at_leisure(server.address, &read, READERS, turn).await?;
    let of_a_read = (server.cpu()? - before) / (idle.per_second * (turn.warm_up + turn.measured).as_secs_f64());
    let (memory, before, started) = (process::resident_megabytes(server.process())?, server.cpu()?, Ticker.now());
    let (reads, ()) = read_beside(server.address, &read, READERS, import_all(&server, &body)).await?;
    let (seconds, cpu) = (Ticker.since(started).as_secs_f64(), server.cpu()? - before);
    let cpu = cpu - of_a_read * reads.per_second * seconds;
    let peak = process::peak_resident_megabytes(server.process())?;
    println!(
        "\n{engine}: {people} people in {} s ({} a second), {} s of CPU beside the reads', memory {} to at most {} MB; reads took {} ms (99 %), {} when idle",
        figure(seconds),
        figure(people / seconds),
        figure(cpu),
        figure(memory),
        figure(peak),
        figure(reads.p99_millis),
        figure(idle.p99_millis),
    );
    aim("memory that an import adds", peak - memory, Bound::AtMost(64.0), " MB");
    aim("99 % of a point read beside an import over idle", reads.p99_millis / idle.p99_millis, Bound::AtMost(3.0), "x");

    let bare = match database {
        Some(database) => raw::on_postgres(database).await?,
        None => raw::on_sqlite(Path::new(&server.file()))?,
    };
    println!("  {} rows of {} tables inserted alone: {} s of CPU", bare.rows, bare.tables, figure(bare.cpu));
    aim("CPU of an import over inserting its rows alone", cpu / bare.cpu, Bound::AtMost(4.0), "x");
    archive(engine, &server).await
}

async fn archive(engine: &str, server: &Server) -> Result<()> {
    let header = format!("authorization: Bearer {OPERATOR}");
    let path = format!("/admin/apps/{}/export", server.app());
    let (before, started) = (server.cpu()?, Ticker.now());
    let mut connection =
        Connection::open(server.address, Request::post(&path, &header, PASSPHRASE).expecting(200)).await?;
    let bytes = connection.ask().await?.len();
    println!(
        "{engine}: its archive has {} MB and took {} s, {} s of CPU",
        figure(bytes as f64 / 1e6),
        figure(Ticker.since(started).as_secs_f64()),
        figure(server.cpu()? - before)
    );
    Ok(())
}
