//! Streams that come and go for a long time beside deliveries: the memory has to end where it began.

use std::{collections::VecDeque, time::Duration};

use bench::{
    Result,
    client::Connection,
    report::{Aim, Bound, figure},
};
use kernel::Ticker;

use super::{
    receiver::{Manner, Receiver},
    server::Server,
    streams::{Listening, open_many, paths},
};

/// Streams that are replaced, and events, in a second.
const REPLACED: usize = 100;
const EVENTS: usize = 100;
/// What the first figure is taken after: caches are full by then.
const SETTLED: u64 = 60;

pub async fn run(engine: &str, server: &Server, count: usize, seconds: u64, aims: &mut Vec<Aim>) -> Result<()> {
    let (receiver, workspace) = (Receiver::start(Manner::Acknowledges)?, server.workspace().await?);
    server.point(&server.app, receiver.address, "tenant.updated").await?;
    let paths = paths(&server.stream_tokens().await?);
    let mut streams: VecDeque<Listening> = open_many(server.address, &paths, count).await?.into();
    let mut next = paths.iter().cycle().skip(count % paths.len());
    let mut writer = Connection::open(server.address, workspace.rename("soak")).await?;
    let (started, mut settled) = (Ticker.now(), None);
    for second in 0..seconds {
        for number in 0..REPLACED.max(EVENTS) {
            if number < REPLACED
                && let Some(path) = next.next()
            {
                streams.pop_front();
                streams.push_back(Listening::open(server.address, path).await?);
            }
            if number < EVENTS {
                writer.ask_next(workspace.rename(&format!("soak-{second}-{number}")));
                writer.ask().await?;
            }
        }
        tokio::time::sleep(Duration::from_secs(second + 1).saturating_sub(Ticker.since(started))).await;
        let megabytes = server.megabytes()?;
        if second == SETTLED.min(seconds / 2) {
            settled = Some(megabytes);
        }
        if second % 30 == 0 {
            println!("{engine}: {second} s, {} MB, {} delivered", figure(megabytes), receiver.count());
        }
    }
    let events = usize::try_from(seconds)? * EVENTS;
    receiver.wait_for(events).await?;
    let ended = server.megabytes()?;
    println!("{engine}: {seconds} s, {} MB, {} of {events} delivered", figure(ended), receiver.count());
    let what = format!("{engine}: memory after {seconds} s over memory after the first");
    aims.push(Aim::new(what, ended / settled.unwrap_or(ended), Bound::AtMost(1.05), "x"));
    Ok(())
}
