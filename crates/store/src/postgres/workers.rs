//! The threads on which closures run, each with a connection of its own that it makes when it first needs it and again
//! when it broke. A closure is run again after a deadlock and after a lost connection, as long as nothing was committed.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use crossbeam_channel::Receiver;
use kernel::{Code, Error, Result};

use super::{
    connection::{PgConnection, TransactionId},
    connector::{ConnectionPurpose, Connector, pause},
    verdict::{self, CommitVerdict},
};
use crate::{
    counters::Cells,
    db::{Context, Lane},
    fault::{self, Fate, Fault},
    job::Job,
    tx::{self, Access, Hook, Tx},
};

/// A closure and how it wants to be run.
pub(super) type Work = (Lane, Box<dyn Job>);

/// Often enough for any conflict that ends by itself.
pub(super) const RUNS: u32 = 8;

pub(super) struct Worker {
    connector: Arc<Connector>,
    context: Arc<Context>,
    purpose: ConnectionPurpose,
    /// Spreads the threads' waits, so that those who met in a deadlock do not meet again.
    number: u32,
    connection: Option<PgConnection>,
}

/// How one run of a closure ended.
enum Ended {
    /// The outcome is in the job. There are hooks only for what was committed.
    Settled(Vec<Hook>),
    /// Nothing was committed and it was not the closure's fault: once more.
    Again(Fate),
}

impl Worker {
    pub(super) fn new(
        connector: Arc<Connector>,
        context: Arc<Context>,
        purpose: ConnectionPurpose,
        number: u32,
    ) -> Self {
        Self { connector, context, purpose, number, connection: None }
    }

    pub(super) fn run(mut self, queue: &Receiver<Work>) {
        while let Ok((lane, job)) = queue.recv() {
            // Closures and hooks have nets of their own; this one is for mistakes of the engine itself.
            if catch_unwind(AssertUnwindSafe(|| self.serve(lane, job))).is_err() {
                tracing::error!("panic in a connection thread");
                self.connection = None;
            }
        }
    }

    fn serve(&mut self, lane: Lane, mut job: Box<dyn Job>) {
        let hooks = self.run_until_settled(lane, &mut *job).unwrap_or_else(|error| {
            job.fail(error);
            Vec::new()
        });
        if lane != Lane::Write {
            Cells::add(&self.context.cells.reads, 1);
        }
        job.answer(hooks);
    }

    fn run_until_settled(&mut self, lane: Lane, job: &mut dyn Job) -> Result<Vec<Hook>> {
        let mut runs = 1;
        loop {
            match self.run_once(lane, job)? {
                Ended::Settled(hooks) => return Ok(hooks),
                Ended::Again(fate) if runs == RUNS => return Err(gave_up(fate)),
                Ended::Again(_) => {
                    Cells::add(&self.context.cells.reruns, 1);
                    pause(backoff(runs, self.number));
                    runs += 1;
                }
            }
        }
    }

    /// One run on a working connection. An error is the closure's answer.
    fn run_once(&mut self, lane: Lane, job: &mut dyn Job) -> Result<Ended> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connector.connect(self.purpose)?,
        };
        let ended = match lane {
            Lane::Write => self.write(&mut connection, job),
            Lane::Read => Ok(self.read(&mut connection, job)),
            Lane::Snapshot | Lane::Scan => self.read_snapshot(&mut connection, job),
        };
        if !connection.is_lost() {
            self.connection = Some(connection);
        }
        ended
    }

    fn write(&self, connection: &mut PgConnection, job: &mut dyn Job) -> Result<Ended> {
        let id = match connection.begin_write() {
            Ok(id) => id,
            Err(fault) => return again_or_fail(connection, fault),
        };
        let mut tx = Tx::new(tx::EngineConnection::Postgres(connection), &self.context, Access::ReadWrite);
        let keep = job.run(&mut tx);
        match tx.finish(keep) {
            Ok(hooks) if keep => self.commit(connection, id, hooks),
            finished => {
                connection.rollback();
                Ok(without_commit(job, keep, finished.err()))
            }
        }
    }

    fn commit(&self, connection: &mut PgConnection, id: TransactionId, hooks: Vec<Hook>) -> Result<Ended> {
        match connection.commit() {
            Ok(()) => {}
            Err(Fault { error, fate: Fate::ConnectionLost }) => match self.look_up(connection, id) {
                Ok(CommitVerdict::Committed) => {}
                Ok(CommitVerdict::Aborted) => return Ok(Ended::Again(Fate::ConnectionLost)),
                Ok(CommitVerdict::Unknown) => return Err(fault::commit_unknown(error)),
                Err(no_connection) => return Err(fault::commit_unknown(no_connection)),
            },
            // The server refused, as it does for a deferred constraint: the transaction is over and undone.
            Err(fault) => return again_or_fail(connection, fault),
        }
        Cells::add(&self.context.cells.writes, 1);
        Cells::add(&self.context.cells.commits, 1);
        Ok(Ended::Settled(hooks))
    }

    /// Replaces the broken connection by a working one and asks there.
    fn look_up(&self, broken: &mut PgConnection, id: TransactionId) -> Result<CommitVerdict> {
        let before = broken.greeting().clone();
        for _ in 0..RUNS {
            *broken = self.connector.connect(self.purpose)?;
            match verdict::look_up(broken, id, &before) {
                Err(Fault { fate: Fate::ConnectionLost, .. }) => {}
                outcome => return outcome.map_err(|fault| fault.error),
            }
        }
        Err(gave_up(Fate::ConnectionLost))
    }

    fn read(&self, connection: &mut PgConnection, job: &mut dyn Job) -> Ended {
        let mut tx = Tx::new(tx::EngineConnection::Postgres(connection), &self.context, Access::ReadOnly);
        let keep = job.run(&mut tx);
        without_commit(job, keep, tx.finish(keep).err())
    }

    fn read_snapshot(&self, connection: &mut PgConnection, job: &mut dyn Job) -> Result<Ended> {
        if let Err(fault) = connection.begin_snapshot() {
            return again_or_fail(connection, fault);
        }
        let ended = self.read(connection, job);
        connection.rollback();
        Ok(ended)
    }
}

/// The end of a run that has nothing to commit.
fn without_commit(job: &mut dyn Job, keep: bool, doom: Option<Fate>) -> Ended {
    match doom {
        Some(fate @ (Fate::Rerun | Fate::ConnectionLost)) => return Ended::Again(fate),
        // The closure ignored the error of a statement; if it failed by itself, it has an error of its own.
        Some(Fate::Doomed) if keep => job.fail(tx::doomed_error()),
        _ => {}
    }
    Ended::Settled(Vec::new())
}

fn again_or_fail(connection: &mut PgConnection, fault: Fault) -> Result<Ended> {
    connection.rollback();
    match fault.fate {
        Fate::Doomed => Err(fault.error),
        fate => Ok(Ended::Again(fate)),
    }
}

pub(super) fn gave_up(fate: Fate) -> Error {
    if fate == Fate::ConnectionLost {
        return fault::unavailable(format!("the connection broke {RUNS} times in a row"));
    }
    Error::new(Code::Overloaded, "Too many changes to the same data at once. Try again in a moment.")
        .with_retry_after(Duration::from_secs(1))
        .with_source(format!("gave up after {RUNS} deadlocks or serialization failures"))
}

/// Doubles with each run; `number` sets apart those who run at the same time.
pub(super) fn backoff(runs: u32, number: u32) -> Duration {
    Duration::from_millis(u64::from((1 << runs.min(6)) + (number % 16) * runs))
}
