//! Single statements: one round trip each over a few shared connections, many under way at a time on each, no thread.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use kernel::Result;
use tokio_postgres::{Row as PgRow, Statement, types::ToSql};

use super::{
    connection::check_count,
    connector::{ConnectionPurpose, Connector, Line},
    errors,
    values::PgArg,
    workers::{RUNS, backoff, gave_up},
};
use crate::{
    Arg, FromRow, Row,
    counters::Cells,
    db::Context,
    dialect,
    fault::{self, Fate, Fault},
    row::RowSource,
};

const LINES: usize = 2;

pub(super) struct Singles {
    connector: Arc<Connector>,
    context: Arc<Context>,
    lines: [tokio::sync::Mutex<Option<Arc<Session>>>; LINES],
    turn: AtomicU32,
    closed: AtomicBool,
}

struct Session {
    line: Line,
    /// Prepared statements by the address of their text, which is `'static`.
    statements: Mutex<HashMap<(usize, usize), Statement>>,
}

/// A failed statement, and whether it may have done its work all the same.
struct Failed {
    fault: Fault,
    was_sent: bool,
}

impl Singles {
    pub(super) fn new(connector: Arc<Connector>, context: Arc<Context>) -> Self {
        let lines = [const { tokio::sync::Mutex::const_new(None) }; LINES];
        Self { connector, context, lines, turn: AtomicU32::new(0), closed: AtomicBool::new(false) }
    }

    pub(super) async fn get_one<T: FromRow>(&self, sql: &'static str, args: &[Arg<'_>]) -> Result<Option<T>> {
        let mut runs = 1;
        let rows = loop {
            match self.session().await?.query(sql, args).await {
                Ok(rows) => break rows,
                Err(failed) => self.before_next_run(failed.fault, &mut runs).await?,
            }
        };
        Cells::add(&self.context.cells.reads, 1);
        rows.first().map(|row| T::from_row(&Row::new(RowSource::Postgres(row)))).transpose()
    }

    pub(super) async fn exec_one(&self, sql: &'static str, args: &[Arg<'_>]) -> Result<u64> {
        let mut runs = 1;
        let changed = loop {
            match self.session().await?.execute(sql, args).await {
                Ok(changed) => break changed,
                Err(Failed { fault, was_sent: true }) if fault.fate == Fate::ConnectionLost => {
                    return Err(fault::commit_unknown(fault.error));
                }
                Err(failed) => self.before_next_run(failed.fault, &mut runs).await?,
            }
        };
        Cells::add(&self.context.cells.writes, 1);
        Cells::add(&self.context.cells.commits, 1);
        Ok(changed)
    }

    /// Ends the connections once the statements under way are through.
    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for line in &self.lines {
            line.lock().await.take();
        }
    }

    /// Returns when another run makes sense.
    async fn before_next_run(&self, fault: Fault, runs: &mut u32) -> Result<()> {
        if fault.fate == Fate::Doomed {
            return Err(fault.error);
        }
        if *runs == RUNS {
            return Err(gave_up(fault.fate));
        }
        Cells::add(&self.context.cells.reruns, 1);
        tokio::time::sleep(backoff(*runs, self.turn.load(Ordering::Relaxed))).await;
        *runs += 1;
        Ok(())
    }

    /// The next connection in turn, made again if it broke. While it is being made, its users wait for it.
    async fn session(&self) -> Result<Arc<Session>> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) as usize;
        let mut current = self.lines[turn % LINES].lock().await;
        if self.closed.load(Ordering::Acquire) {
            return Err(fault::closed());
        }
        if let Some(session) = &*current
            && !session.line.client.is_closed()
        {
            return Ok(session.clone());
        }
        let line = self.connector.connect_async(ConnectionPurpose::SingleStatements).await?;
        let session = Arc::new(Session { line, statements: Mutex::new(HashMap::new()) });
        *current = Some(session.clone());
        Ok(session)
    }
}

impl Session {
    async fn query(&self, sql: &'static str, args: &[Arg<'_>]) -> Result<Vec<PgRow>, Failed> {
        let statement = self.prepare(sql, args.len()).await?;
        let bound: Vec<PgArg<'_>> = args.iter().map(PgArg).collect();
        let bound: Vec<&(dyn ToSql + Sync)> = bound.iter().map(|arg| arg as _).collect();
        self.line.client.query(&statement, &bound).await.map_err(|error| self.failed(&error, true))
    }

    async fn execute(&self, sql: &'static str, args: &[Arg<'_>]) -> Result<u64, Failed> {
        let statement = self.prepare(sql, args.len()).await?;
        let bound: Vec<PgArg<'_>> = args.iter().map(PgArg).collect();
        let bound: Vec<&(dyn ToSql + Sync)> = bound.iter().map(|arg| arg as _).collect();
        self.line.client.execute(&statement, &bound).await.map_err(|error| self.failed(&error, true))
    }

    /// Two callers may prepare the same text at once; both statements work and one is kept.
    async fn prepare(&self, sql: &'static str, given: usize) -> Result<Statement, Failed> {
        let key = (sql.as_ptr().addr(), sql.len());
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let statement = match known {
            Some(statement) => statement,
            None => {
                let text = dialect::postgres(sql);
                let prepared = self.line.client.prepare(&text).await;
                let prepared = prepared.map_err(|error| self.failed(&error, false))?;
                self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(key, prepared.clone());
                prepared
            }
        };
        check_count(&statement, given).map_err(|fault| Failed { fault, was_sent: false })?;
        Ok(statement)
    }

    fn failed(&self, error: &tokio_postgres::Error, was_sent: bool) -> Failed {
        let mut fault = errors::fault(error);
        if errors::is_stale_plan(error) {
            self.statements.lock().unwrap_or_else(PoisonError::into_inner).clear();
            fault.fate = Fate::Rerun;
        }
        Failed { fault, was_sent }
    }
}
