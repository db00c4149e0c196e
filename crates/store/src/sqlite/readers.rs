//! Reader threads: each has a connection of its own and runs one read closure after another, each on one snapshot.

use std::sync::Arc;

use crossbeam_channel::Receiver;

use super::SqliteConnection;
use crate::{
    counters::Cells,
    db::Context,
    fault::Fault,
    job::Job,
    tx::{self, Access, Tx},
};

pub(crate) fn run(mut connection: SqliteConnection, context: &Arc<Context>, queue: &Receiver<Box<dyn Job>>) {
    while let Ok(mut job) = queue.recv() {
        read(&mut connection, context, &mut *job);
        Cells::add(&context.cells.reads, 1);
        job.answer(Vec::new());
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
