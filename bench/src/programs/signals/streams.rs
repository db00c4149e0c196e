//! Streams: what an idle one weighs, and how soon all of them have heard of a change.

use std::{net::SocketAddr, time::Duration};

use bench::{
    Result,
    child::Child,
    client::Connection,
    process,
    report::{Aim, Bound, figure},
};
use kernel::Ticker;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
};

use super::server::Server;

/// How long the allocator has to settle.
const REST: Duration = Duration::from_secs(2);

/// A stream that was opened and has said so.
pub struct Listening(TcpStream);

impl Listening {
    pub async fn open(address: SocketAddr, path: &str) -> Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: bench\r\n\r\n").as_bytes()).await?;
        let mut listening = Self(stream);
        listening.hear(":\n\n").await?;
        Ok(listening)
    }

    /// Reads until this was said.
    async fn hear(&mut self, what: &str) -> Result<()> {
        let mut heard = Vec::with_capacity(512);
        while !heard.windows(what.len()).any(|said| said == what.as_bytes()) {
            if self.0.read_buf(&mut heard).await? == 0 {
                return Err(format!("a stream ended: {}", String::from_utf8_lossy(&heard)).into());
            }
        }
        Ok(())
    }
}

/// Opens streams in turn for these paths.
pub async fn open_many(address: SocketAddr, paths: &[String], count: usize) -> Result<Vec<Listening>> {
    let mut streams = Vec::with_capacity(count);
    for path in paths.iter().cycle().take(count) {
        streams.push(Listening::open(address, path).await?);
    }
    Ok(streams)
}

pub fn paths(tokens: &[String]) -> Vec<String> {
    tokens.iter().map(|token| format!("/realtime/stream?token={token}")).collect()
}

pub async fn run(engine: &str, server: &Server, count: usize, aims: &mut Vec<Aim>) -> Result<()> {
    eprintln!("{engine}: {count} streams");
    let bare = Child::start(&["--act-as", "bare-streams"])?;
    let before = process::resident_megabytes(bare.id())?;
    let held = open_many(bare.text("address").parse()?, &["/".to_owned()], count).await?;
    tokio::time::sleep(REST).await;
    let each = |before: f64, after: f64| (after - before) * 1024.0 / count as f64;
    let bare_each = each(before, process::resident_megabytes(bare.id())?);
    drop(held);

    let paths = paths(&server.stream_tokens().await?);
    let before = server.megabytes()?;
    let opening = Ticker.now();
    let streams = open_many(server.address, &paths, count).await?;
    let opened = Ticker.since(opening).as_secs_f64();
    tokio::time::sleep(REST).await;
    let own_each = each(before, server.megabytes()?);

    let mut tasks = JoinSet::new();
    for mut stream in streams {
        tasks.spawn(async move {
            stream.hear("flags.changed").await?;
            Result::<Listening>::Ok(stream)
        });
    }
    tokio::task::yield_now().await;
    let started = Ticker.now();
    Connection::open(server.address, server.new_flag("told-to-all")).await?.ask().await?;
    let mut streams = Vec::with_capacity(count);
    while let Some(heard) = tasks.join_next().await {
        streams.push(heard??);
    }
    let told = Ticker.since(started).as_secs_f64();
    drop(streams);

    println!("\n{engine}: {count} streams, opened in {} s, one after the other", figure(opened));
    println!("  KiB each: {}, bare {}", figure(own_each), figure(bare_each));
    aims.push(Aim::new(format!("{engine}: memory of an idle stream"), own_each, Bound::Below(24.0), " KiB"));
    let what = format!("{engine}: memory of an idle stream over a bare one");
    aims.push(Aim::new(what, own_each / bare_each, Bound::AtMost(1.5), "x"));
    let what = format!("{engine}: a changed flag told to {count} streams, the last of them");
    aims.push(Aim::new(what, told, Bound::Below(1.0), " s"));
    Ok(())
}
