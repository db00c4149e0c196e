//! Reads that come now and then, to see what they notice of whatever else the server does.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kernel::Ticker;
use tokio::task::JoinSet;

use crate::{
    Result,
    client::{Connection, Request},
    load::Turn,
    series::Round,
};

/// Between two reads of one reader: far from filling the machine.
const PAUSE: Duration = Duration::from_millis(10);

/// How long reads take that come now and then from several connections.
pub async fn read_at_leisure(address: SocketAddr, request: &Request, readers: usize, turn: Turn) -> Result<Round> {
    let pass = async |time| {
        tokio::time::sleep(time).await;
        Ok(())
    };
    read_beside(address, request, readers, pass(turn.warm_up)).await?;
    Ok(read_beside(address, request, readers, pass(turn.measured)).await?.0)
}

/// The same for as long as some work takes, with what the work came to.
pub async fn read_beside<T>(
    address: SocketAddr,
    request: &Request,
    readers: usize,
    work: impl Future<Output = Result<T>>,
) -> Result<(Round, T)> {
    let over = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for _ in 0..readers {
        tasks.spawn(read(Connection::open(address, request.clone()).await?, Arc::clone(&over)));
    }
    let started = Ticker.now();
    let done = work.await?;
    let elapsed = Ticker.since(started);
    over.store(true, Ordering::Relaxed);
    let mut latencies = Vec::new();
    while let Some(read) = tasks.join_next().await {
        latencies.extend(read??);
    }
    Ok((Round::new(latencies.len() as u64, elapsed, Duration::ZERO, latencies), done))
}

async fn read(mut connection: Connection, over: Arc<AtomicBool>) -> Result<Vec<Duration>> {
    let mut latencies = Vec::new();
    while !over.load(Ordering::Relaxed) {
        tokio::time::sleep(PAUSE).await;
        let asked = Ticker.now();
        connection.ask().await?;
        latencies.push(Ticker.since(asked));
    }
    Ok(latencies)
}
