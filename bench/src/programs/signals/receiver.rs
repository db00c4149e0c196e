//! A receiver of webhooks that costs as little as possible, on a thread of its own: it notes when each request came.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use bench::Result;
use kernel::{Tick, Ticker};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// What a receiver does with a request that it has read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Acknowledges,
    /// Never answers.
    Hangs,
}

pub struct Receiver {
    pub address: SocketAddr,
    count: Arc<AtomicUsize>,
    arrived: mpsc::Receiver<(Vec<u8>, Tick)>,
}

#[derive(Clone)]
struct Noted {
    manner: Manner,
    count: Arc<AtomicUsize>,
    arrived: mpsc::Sender<(Vec<u8>, Tick)>,
}

impl Receiver {
    pub fn start(manner: Manner) -> Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (sender, arrived) = mpsc::channel();
        let count = Arc::new(AtomicUsize::new(0));
        let noted = Noted { manner, count: Arc::clone(&count), arrived: sender };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::spawn(move || {
            runtime.block_on(async move {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(receive(stream, noted.clone()));
                }
            });
        });
        Ok(Self { address, count, arrived })
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Waits until so many have come.
    pub async fn wait_for(&self, count: usize) -> Result<()> {
        let started = Ticker.now();
        while self.count() < count {
            if Ticker.since(started) > Duration::from_secs(120) {
                return Err(format!("only {} of {count} deliveries arrived", self.count()).into());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// Everything that came since it was last asked: the body, and when.
    pub fn taken(&self) -> Vec<(Vec<u8>, Tick)> {
        self.arrived.try_iter().collect()
    }
}

/// Reads one request after the other from a connection.
async fn receive(mut stream: TcpStream, noted: Noted) {
    let mut read = Vec::with_capacity(4096);
    loop {
        while let Some(end) = whole(&read) {
            let _ = noted.arrived.send((read[..end].to_vec(), Ticker.now()));
            noted.count.fetch_add(1, Ordering::Relaxed);
            read.drain(..end);
            if noted.manner == Manner::Hangs {
                std::future::pending::<()>().await;
            }
            if stream.write_all(ANSWER).await.is_err() {
                return;
            }
        }
        if !matches!(stream.read_buf(&mut read).await, Ok(1..)) {
            return;
        }
    }
}

/// Where the first request ends, once all of it is there.
fn whole(read: &[u8]) -> Option<usize> {
    let head = read.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = str::from_utf8(&read[..head]).ok()?;
    let length = text
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    let end = head + length.unwrap_or(0);
    (read.len() >= end).then_some(end)
}
