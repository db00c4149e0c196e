//! A closed load: each caller asks again as soon as it is answered. The more slowly it is answered, the less it asks, so
//! latencies are those of a full house and not of a given rate.

use std::{
    future::Future,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use kernel::Ticker;
use tokio::task::JoinSet;

use crate::{
    Result,
    client::{Connection, Request},
    series::Round,
};

/// Somebody who asks one thing after another.
pub trait Caller: Send + 'static {
    fn call(&mut self) -> impl Future<Output = Result<()>> + Send;
}

/// How long a candidate is driven before and while it is measured.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub warm_up: Duration,
    pub measured: Duration,
}

/// What a turn yields: its figures, and how many calls were answered in all, warm-up included.
pub struct Driven {
    pub round: Round,
    pub answered: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Phase {
    Measured = 1,
    Over,
}

#[derive(Default)]
struct Board {
    /// 0 while warming up.
    phase: AtomicU8,
    /// Answers that came while measuring.
    counted: AtomicU64,
}

impl Board {
    fn is(&self, phase: Phase) -> bool {
        self.phase.load(Ordering::Relaxed) == phase as u8
    }

    fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }
}

/// Drives all callers for one turn. `cpu` tells the processor time used so far by whoever does the work.
pub async fn drive<C: Caller>(callers: Vec<C>, turn: Turn, cpu: impl Fn() -> Result<Duration>) -> Result<Driven> {
    let board = Arc::new(Board::default());
    let mut tasks = JoinSet::new();
    for caller in callers {
        tasks.spawn(ask(caller, board.clone()));
    }
    tokio::time::sleep(turn.warm_up).await;

    let (cpu_before, started) = (cpu()?, Ticker.now());
    board.enter(Phase::Measured);
    tokio::time::sleep(turn.measured).await;
    board.enter(Phase::Over);
    let (elapsed, used) = (Ticker.since(started), cpu()?.saturating_sub(cpu_before));

    let (mut answered, mut latencies) = (0, Vec::new());
    while let Some(asked) = tasks.join_next().await {
        let asked = asked??;
        answered += asked.answered;
        latencies.extend(asked.latencies);
    }
    let counted = board.counted.load(Ordering::Relaxed);
    Ok(Driven { round: Round::new(counted, elapsed, used, latencies), answered })
}

struct Asked {
    answered: u64,
    latencies: Vec<Duration>,
}

async fn ask<C: Caller>(mut caller: C, board: Arc<Board>) -> Result<Asked> {
    let (mut answered, mut latencies) = (0, Vec::new());
    while !board.is(Phase::Over) {
        let (began_measured, began) = (board.is(Phase::Measured), Ticker.now());
        caller.call().await?;
        answered += 1;
        // A call that began in time counts for the worst latency however late its answer is; else a stall would be
        // missed.
        if began_measured {
            latencies.push(Ticker.since(began));
        }
        if board.is(Phase::Measured) {
            board.counted.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(Asked { answered, latencies })
}

/// Works a stock off that several connections take from, for what cannot be asked twice. All of it is measured, and nothing
/// else is: whoever makes the stock has done so before.
pub async fn work_off(
    address: SocketAddr,
    connections: usize,
    stock: Vec<Request>,
    cpu: impl Fn() -> Result<Duration>,
) -> Result<Round> {
    let count = stock.len() as u64;
    let stock = Arc::new(Mutex::new(stock.into_iter()));
    let next = |stock: &Mutex<std::vec::IntoIter<Request>>| stock.lock().unwrap_or_else(PoisonError::into_inner).next();
    let mut open = Vec::new();
    for _ in 0..connections {
        let Some(first) = next(&stock) else { break };
        open.push(Connection::open(address, first).await?);
    }
    let (cpu_before, started) = (cpu()?, Ticker.now());
    let mut tasks = JoinSet::new();
    for mut connection in open {
        let stock = Arc::clone(&stock);
        tasks.spawn(async move {
            let mut latencies = Vec::new();
            loop {
                let began = Ticker.now();
                connection.ask().await?;
                latencies.push(Ticker.since(began));
                match next(&stock) {
                    Some(request) => connection.ask_next(request),
                    None => return Result::<_>::Ok(latencies),
                }
            }
        });
    }
    let mut latencies = Vec::new();
    while let Some(asked) = tasks.join_next().await {
        latencies.extend(asked??);
    }
    Ok(Round::new(count, Ticker.since(started), cpu()?.saturating_sub(cpu_before), latencies))
}
