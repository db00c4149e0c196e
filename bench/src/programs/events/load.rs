//! Events at a steady rate: how soon they count, and what a point read notices.

use std::time::Duration;

use bench::{
    Result,
    client::{Connection, Request},
    database::Database,
    leisure::{read_at_leisure, read_beside},
    report::{Aim, Bound, count, figure},
    server::Server,
};
use kernel::Ticker;
use serde_json::json;
use tokio::task::JoinSet;

use super::{
    Options,
    intake::{settle, waiting_event},
    sample::{self, MAIN_NAME},
};

/// Events a second, for so many seconds.
const PER_SECOND: usize = 10_000;
const SECONDS: usize = 10;
const BATCH: usize = 100;
const BATCHES: usize = PER_SECOND * SECONDS / BATCH;
/// Connections that send in turn.
const SENDERS: usize = 8;
/// Between two batches of one of them.
const PAUSE: Duration = Duration::from_millis((1_000 * SENDERS * BATCH / PER_SECOND) as u64);
/// Callers that wait until their events count.
const WAITING: usize = 2;
/// Readers of the point read; each makes up to a hundred reads a second.
const READERS: usize = 8;

pub async fn measure(engine: &str, database: Option<&Database>, options: &Options, aims: &mut Vec<Aim>) -> Result<()> {
    let server = Server::start(database).await?;
    let mut aim = |what: &str, found: f64, bound: Bound, unit: &'static str| {
        aims.push(Aim::new(format!("{engine}: {what}"), found, bound, unit));
    };
    let (lag, rate) = read_beside(server.address, &waiting_event(&server), WAITING, feed(&server, 0)).await?;
    println!(
        "\n{engine}: at {} events a second an event counts after {} ms (median), {} ms (99 %)",
        count(rate),
        figure(lag.p50_millis),
        figure(lag.p99_millis)
    );
    aim("until an event counts at 10,000 a second, 99 %", lag.p99_millis, Bound::Below(1_000.0), " ms");
    settle(&server).await?;

    let read = Request::get("/account/app", &server.key);
    let idle = read_at_leisure(server.address, &read, READERS, options.flags.turn()).await?;
    let (busy, (rate, scans)) = read_beside(server.address, &read, READERS, feed_and_scan(&server)).await?;
    println!(
        "{engine}: a point read takes {} ms (99 %) when idle, {} ms beside {} events a second and {scans} scans",
        figure(idle.p99_millis),
        figure(busy.p99_millis),
        count(rate)
    );
    let over = busy.p99_millis / idle.p99_millis;
    aim("99 % of a point read while folding and scanning, over idle", over, Bound::AtMost(3.0), "x");
    Ok(())
}

/// Sends events, whether or not the ones before are answered in time; how many a second it came to.
async fn feed(server: &Server, pass: usize) -> Result<f64> {
    let (app, path) = (server.app(), "/event-log/batch");
    let batch = |number: usize| {
        let first = (pass * BATCHES + number) * BATCH;
        Request::post(path, &server.key, &json!(sample::events(&app, first..first + BATCH)).to_string())
    };
    let stock: Vec<Request> = (0..BATCHES).map(batch).collect();
    let (began, mut senders) = (Ticker.now(), JoinSet::new());
    for sender in 0..SENDERS {
        let own: Vec<Request> = stock.iter().skip(sender).step_by(SENDERS).cloned().collect();
        senders.spawn(send(server.address, own));
    }
    while let Some(sent) = senders.join_next().await {
        sent??;
    }
    Ok((BATCHES * BATCH) as f64 / Ticker.since(began).as_secs_f64())
}

/// One at each tick; late ones follow at once.
async fn send(address: std::net::SocketAddr, stock: Vec<Request>) -> Result<()> {
    let mut ticks = tokio::time::interval(PAUSE);
    let mut connection = None;
    for request in stock {
        ticks.tick().await;
        let connection = match &mut connection {
            None => connection.insert(Connection::open(address, request).await?),
            Some(connection) => {
                connection.ask_next(request);
                connection
            }
        };
        connection.ask().await?;
    }
    Ok(())
}

/// Besides, one question after the other that reads every event of a name.
async fn feed_and_scan(server: &Server) -> Result<(f64, usize)> {
    let question = json!({
        "appId": server.app(), "eventName": MAIN_NAME, "from": sample::FROM, "to": sample::TO,
        "filters": { "plan": "pro" }, "sumField": "amount",
    });
    let question = Request::post("/event-log/query", &server.key, &question.to_string()).expecting(200);
    let mut connection = Connection::open(server.address, question).await?;
    let fed = feed(server, 1);
    tokio::pin!(fed);
    let mut scans = 0;
    loop {
        tokio::select! {
            rate = &mut fed => return Ok((rate?, scans)),
            asked = connection.ask() => {
                asked?;
                scans += 1;
            }
        }
    }
}
