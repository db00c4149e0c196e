//! Readers: connections on which one read closure runs after another, each on one snapshot. Each has a thread that takes closures
//! from a queue. A point read takes less time than waking up a thread, and another one for the answer: it runs where it is
//! asked for, on whichever reader has nothing to do.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, atomic::Ordering},
};

use crossbeam_channel::Receiver;
use kernel::Result;

use super::SqliteConnection;
use crate::{
    counters::Cells,
    db::Context,
    fault::Fault,
    job::Job,
    tx::{self, Access, Tx},
};

#[derive(Clone)]
pub(super) struct Readers(Arc<[Mutex<SqliteConnection>]>);

impl Readers {
    pub(super) fn open(path: &Path, count: usize) -> Result<Self> {
        (0..count).map(|_| SqliteConnection::open_reader(path).map(Mutex::new)).collect::<Result<_>>().map(Self)
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Works off the queue with one of the connections until it is closed.
    pub(super) fn run(&self, number: usize, context: &Arc<Context>, queue: &Receiver<Box<dyn Job>>) {
        while let Ok(mut job) = queue.recv() {
            read(&mut lock(&self.0[number]), context, &mut *job);
            Cells::add(&context.cells.reads, 1);
            job.answer(Vec::new());
        }
    }

    /// Runs one statement, which needs no transaction around it; `None` while all connections are in use.
    pub(super) fn read_at_once<T>(
        &self,
        context: &Arc<Context>,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Option<Result<T>> {
        let mut connection = self.0.iter().find_map(try_lock)?;
        let running = &context.cells.running;
        running.fetch_add(1, Ordering::Relaxed);
        let mut tx = Tx::new(tx::EngineConnection::Sqlite(&mut connection), context, Access::ReadOnly);
        let outcome = work(&mut tx);
        running.fetch_sub(1, Ordering::Relaxed);
        Cells::add(&context.cells.reads, 1);
        Some(outcome)
    }
}

// A panic while a connection is held leaves it as it was: its statements are reset as they are dropped.
fn lock(connection: &Mutex<SqliteConnection>) -> MutexGuard<'_, SqliteConnection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock(connection: &Mutex<SqliteConnection>) -> Option<MutexGuard<'_, SqliteConnection>> {
    match connection.try_lock() {
        Ok(connection) => Some(connection),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn read(connection: &mut SqliteConnection, context: &Arc<Context>, job: &mut dyn Job) {
    if let Err(Fault { error, .. }) = connection.control("BEGIN") {
        return job.fail(error);
    }
    let mut tx = Tx::new(tx::EngineConnection::Sqlite(connection), context, Access::ReadOnly);
    let keep = job.run(&mut tx);
    if tx.finish(keep).is_err() && keep {
        job.fail(tx::doomed_error());
    }
    if let Err(fault) = connection.control("COMMIT") {
        tracing::error!(error = ?fault.error, "a read transaction could not be ended");
    }
}
