//! The one writer: one commit per batch of closures, answers only after the commit. The first closure has the transaction to
//! itself, so that its failure can take all of it back; each that joins it has a savepoint, for which SQLite keeps a copy of every
//! page that it changes.

use std::{sync::Arc, time::Duration};

use crossbeam_channel::Receiver;
use kernel::{Error, Ticker};

use super::SqliteConnection;
use crate::{
    counters::Cells,
    db::Context,
    fault::same_answer,
    job::Job,
    tx::{self, Access, Hook, Tx},
};

/// A batch takes in no further closure after this long, so that the first caller is not kept waiting.
const BATCH_TIME: Duration = Duration::from_millis(20);

pub(crate) struct Writer {
    connection: SqliteConnection,
    context: Arc<Context>,
    batch_size: usize,
}

/// A closure that has run in the open transaction and waits for its commit.
struct Ran {
    job: Box<dyn Job>,
    /// `None` when it failed and nothing of it remains.
    hooks: Option<Vec<Hook>>,
}

impl Writer {
    pub(crate) fn new(connection: SqliteConnection, context: Arc<Context>, batch_size: usize) -> Self {
        Self { connection, context, batch_size: batch_size.max(1) }
    }

    pub(crate) fn run(mut self, queue: &Receiver<Box<dyn Job>>) {
        while let Ok(first) = queue.recv() {
            self.write_batch(first, queue);
        }
        if let Err(fault) = self.connection.control("PRAGMA wal_checkpoint(TRUNCATE)") {
            tracing::warn!(error = ?fault.error, "the write-ahead log could not be folded in at close");
        }
    }

    fn write_batch(&mut self, first: Box<dyn Job>, queue: &Receiver<Box<dyn Job>>) {
        let started = Ticker.now();
        let Some(first) = self.begin_with(first) else { return };
        let mut batch = vec![first];
        while batch.len() < self.batch_size && Ticker.since(started) < BATCH_TIME && self.connection.in_transaction() {
            let Ok(next) = queue.try_recv() else { break };
            batch.push(self.run_in_savepoint(next));
        }
        match self.commit() {
            Ok(()) => self.answer(batch),
            Err(_) if batch.len() > 1 => self.rerun_one_by_one(batch),
            Err(error) => self.answer_failed(batch, &error),
        }
    }

    /// A transaction with its first closure. `None` when one or the other failed: then there is no transaction, and the closure's
    /// caller has been answered.
    fn begin_with(&mut self, mut job: Box<dyn Job>) -> Option<Ran> {
        if let Err(fault) = self.connection.begin_immediate() {
            job.fail(fault.error);
            job.answer(Vec::new());
            return None;
        }
        let ran = self.run_closure(job);
        if ran.hooks.is_some() {
            return Some(ran);
        }
        self.connection.rollback();
        ran.job.answer(Vec::new());
        None
    }

    fn run_in_savepoint(&mut self, mut job: Box<dyn Job>) -> Ran {
        if let Err(fault) = self.connection.control("SAVEPOINT closure") {
            job.fail(fault.error);
            return Ran { job, hooks: None };
        }
        let ran = self.run_closure(job);
        // Some failures (disk full, an engine-level ROLLBACK) end the whole transaction; then the savepoint is gone
        // too and `commit` finds out.
        if self.connection.in_transaction() {
            let ended = if ran.hooks.is_none() { self.connection.control("ROLLBACK TO closure") } else { Ok(()) };
            if let Err(fault) = ended.and_then(|()| self.connection.control("RELEASE closure")) {
                tracing::error!(error = ?fault.error, "a savepoint could not be ended; the batch is given up");
                self.connection.rollback();
            }
        }
        ran
    }

    fn run_closure(&mut self, mut job: Box<dyn Job>) -> Ran {
        let mut tx = Tx::new(tx::EngineConnection::Sqlite(&mut self.connection), &self.context, Access::ReadWrite);
        let keep = job.run(&mut tx);
        let hooks = match tx.finish(keep) {
            Ok(hooks) if keep => Some(hooks),
            Ok(_) => None,
            Err(_) => {
                if keep {
                    job.fail(tx::doomed_error());
                }
                None
            }
        };
        Ran { job, hooks }
    }

    fn commit(&mut self) -> Result<(), Error> {
        if !self.connection.in_transaction() {
            return Err(Error::internal("the engine rolled the whole batch back"));
        }
        self.connection.control("COMMIT").map_err(|fault| {
            self.connection.rollback();
            fault.error
        })
    }

    fn answer(&self, batch: Vec<Ran>) {
        let kept = batch.iter().filter(|ran| ran.hooks.is_some()).count() as u64;
        Cells::add(&self.context.cells.writes, kept);
        Cells::add(&self.context.cells.commits, 1);
        for Ran { job, hooks } in batch {
            job.answer(hooks.unwrap_or_default());
        }
    }

    /// The batch as a whole did not commit. Closures that had failed by themselves keep their own error.
    fn answer_failed(&self, batch: Vec<Ran>, error: &Error) {
        for Ran { mut job, hooks } in batch {
            if hooks.is_some() {
                job.fail(same_answer(error));
            }
            job.answer(Vec::new());
        }
    }

    /// One closure spoiled the commit for all: each gets a transaction of its own, so that it fails alone.
    fn rerun_one_by_one(&mut self, batch: Vec<Ran>) {
        Cells::add(&self.context.cells.reruns, batch.len() as u64);
        for Ran { job, .. } in batch {
            let Some(ran) = self.begin_with(job) else { continue };
            match self.commit() {
                Ok(()) => self.answer(vec![ran]),
                Err(error) => self.answer_failed(vec![ran], &error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Code, Error};

    use crate::{EngineName, Migration, args, is_unique_violation, testing};

    const MIGRATIONS: &[Migration] = &[Migration::shared(
        1,
        "names",
        "CREATE TABLE names (name {key} PRIMARY KEY, n {int} NOT NULL) {strict}; INSERT INTO names VALUES ('taken', 0);",
    )];

    // Texts that other tests run on PostgreSQL too, except for the script, which is not recorded.
    const INSERT: &str = "INSERT INTO names (name, n) VALUES ($1, 0)";
    const LIST: &str = "SELECT name FROM names ORDER BY name";
    const ROLL_BACK: &str = "INSERT OR ROLLBACK INTO names VALUES ('taken', 0)";

    /// Some failures end the whole transaction below us, and with it the work of everybody in the batch.
    #[test]
    fn an_engine_level_rollback_takes_nobody_along() {
        testing::run(EngineName::Sqlite, MIGRATIONS, async |test| {
            let callers: Vec<_> = (0..2_000_u32)
                .map(|id| {
                    let answer = test.db.write(move |tx| {
                        tx.exec(INSERT, &args![id.to_string()])?;
                        match id % 25 {
                            7 => tx.script(ROLL_BACK),
                            // Even when the error is ignored, and a savepoint was open.
                            9 => {
                                let _ = tx.savepoint(|tx| tx.script(ROLL_BACK));
                                let late = tx.exec(INSERT, &args![format!("late {id}")]);
                                assert!(late.is_err(), "a statement after the rollback would commit on its own");
                                Ok(())
                            }
                            11 => Err(Error::new(Code::Conflict, "no")),
                            _ => Ok(()),
                        }
                    });
                    (id, tokio::spawn(answer))
                })
                .collect();
            let mut expected = vec!["taken".to_owned()];
            for (id, caller) in callers {
                match (id % 25, caller.await.expect("the caller lives")) {
                    (7, Err(error)) => assert!(is_unique_violation(&error), "{error:?}"),
                    (9, Err(error)) => assert_eq!(error.code(), Code::Internal),
                    (11, Err(error)) => assert_eq!(error.code(), Code::Conflict),
                    (_, Ok(())) => expected.push(id.to_string()),
                    (_, outcome) => panic!("{id} was answered {outcome:?}"),
                }
            }
            assert_eq!(expected.len(), 1 + 2_000 - 3 * 80);
            expected.sort_unstable();
            let found = test.db.read(|tx| tx.all::<(String,)>(LIST, &[])).await;
            assert_eq!(found.expect("readable").into_iter().map(|(name,)| name).collect::<Vec<_>>(), expected);
            assert!(test.db.counters().reruns > 0, "no batch was rolled back as a whole");
        });
    }
}
