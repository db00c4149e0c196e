//! PostgreSQL 15 and later: closures on a fixed set of threads with a connection each, long scans on threads of their
//! own, single statements over a few shared connections, wake-ups between nodes over one more.

mod connection;
mod connector;
mod errors;
pub(crate) mod estimates;
mod signals;
mod singles;
mod target;
mod tls;
mod values;
mod verdict;
mod workers;

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
};

pub(crate) use connection::PgConnection;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use kernel::{Error, Result, Secret};
pub(crate) use values::value;

use crate::{
    Arg, FromRow,
    db::{Context, Lane, Limits},
    fault,
    job::Job,
    spawn_unhurried,
};
use connector::{ConnectionPurpose, Connector};
use signals::Signals;
use singles::Singles;
use workers::{Work, Worker};

/// Threads for long scans.
const SCANNERS: usize = 2;

pub(crate) struct PgEngine {
    lanes: Mutex<Option<PgLanes>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    singles: Singles,
    signals: Signals,
}

struct PgLanes {
    closures: Sender<Work>,
    scans: Sender<Work>,
}

impl PgEngine {
    /// Connects once, so that a wrong URL or an old server is told at the start. The threads connect when they first
    /// have something to do.
    pub(crate) async fn open(url: Secret<String>, context: &Arc<Context>, limits: &Limits) -> Result<Self> {
        let connector = Arc::new(Connector::new(url.expose(), limits.patience)?);
        let signals = Signals::start(connector.clone(), context.clone()).await?;
        let singles = Singles::new(connector.clone(), context.clone());
        let (closures, closure_queue) = bounded(limits.queue);
        let (scans, scan_queue) = bounded(limits.queue);
        let mut threads = Vec::new();
        let mut start = |count: usize, purpose, queue: &Receiver<Work>| -> Result<()> {
            for number in 0..count.max(1) {
                let number = u32::try_from(number).map_err(Error::internal)?;
                let worker = Worker::new(connector.clone(), context.clone(), purpose, number);
                threads.push(spawn(worker, queue.clone(), purpose, number)?);
            }
            Ok(())
        };
        start(limits.connections, ConnectionPurpose::Closures, &closure_queue)?;
        start(SCANNERS, ConnectionPurpose::Scans, &scan_queue)?;
        Ok(Self {
            lanes: Mutex::new(Some(PgLanes { closures, scans })),
            threads: Mutex::new(threads),
            singles,
            signals,
        })
    }

    /// How many closures wait, by lane.
    pub(crate) fn queued(&self) -> Vec<(&'static str, usize)> {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let lanes = lanes.as_ref().map(|lanes| [("closures", &lanes.closures), ("scan", &lanes.scans)]);
        lanes.into_iter().flatten().map(|(name, queue)| (name, queue.len())).collect()
    }

    pub(crate) fn submit(&self, lane: Lane, job: Box<dyn Job>) -> Result<()> {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lanes) = &*lanes else { return Err(fault::closed()) };
        let queue = match lane {
            Lane::Write | Lane::Read | Lane::Snapshot => &lanes.closures,
            Lane::Scan => &lanes.scans,
        };
        queue.try_send((lane, job)).map_err(|refused| match refused {
            TrySendError::Full(_) => fault::overloaded(),
            TrySendError::Disconnected(_) => fault::closed(),
        })
    }

    pub(crate) async fn get_one<T: FromRow>(&self, sql: &'static str, args: &[Arg<'_>]) -> Result<Option<T>> {
        self.singles.get_one(sql, args).await
    }

    pub(crate) async fn exec_one(&self, sql: &'static str, args: &[Arg<'_>]) -> Result<u64> {
        self.singles.exec_one(sql, args).await
    }

    /// Wakes the other nodes. Never waits.
    pub(crate) fn notify(&self) {
        self.signals.notify();
    }

    /// Never waits; `false` when too many are on their way.
    pub(crate) fn send_note(&self, note: String) -> bool {
        self.signals.send_note(note)
    }

    /// Closes the queues; the threads finish what is in them and end. Dropping the engine does the same without
    /// waiting for it.
    pub(crate) async fn close(&self) {
        drop(self.lanes.lock().unwrap_or_else(PoisonError::into_inner).take());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let joined = tokio::task::spawn_blocking(move || threads.into_iter().for_each(|thread| drop(thread.join())));
        drop(joined.await);
        self.singles.close().await;
        self.signals.close().await;
    }
}

fn spawn(worker: Worker, queue: Receiver<Work>, purpose: ConnectionPurpose, number: u32) -> Result<JoinHandle<()>> {
    let name = format!("pg-{purpose:?}-{number}").to_lowercase();
    let body = move || worker.run(&queue);
    match purpose {
        ConnectionPurpose::Scans => spawn_unhurried(&name, body),
        _ => std::thread::Builder::new().name(name).spawn(body).map_err(Error::internal),
    }
}
