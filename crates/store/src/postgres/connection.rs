//! One connection of a thread, with its translated and prepared statements.

use std::collections::HashMap;

use ::postgres::{Client, SimpleQueryMessage, Statement, fallible_iterator::FallibleIterator as _, types::ToSql};
use kernel::{Error, Result};

use super::{
    connector::Greeting,
    errors,
    values::{self, PgArg},
};
use crate::{
    Arg, ColumnType, Row, dialect,
    fault::{Fate, Fault},
    row::RowSource,
    tx::Fill,
};

pub(crate) struct PgConnection {
    client: Client,
    greeting: Greeting,
    /// Prepared statements by the address of their text, which is `'static`: cheaper than hashing the text.
    statements: HashMap<(usize, usize), Statement>,
    lost: bool,
}

/// The server's number for a transaction, unique over its whole life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TransactionId(pub(super) u64);

const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT pg_current_xact_id()";
const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const LOCK: &str = "SELECT CAST(pg_advisory_xact_lock(hashtextextended($1, 0)) AS TEXT)";

impl PgConnection {
    pub(super) fn new(client: Client, greeting: Greeting) -> Self {
        Self { client, greeting, statements: HashMap::new(), lost: false }
    }

    pub(super) fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// Whether it is of no further use.
    pub(super) fn is_lost(&self) -> bool {
        self.lost || self.client.is_closed()
    }

    /// Begins a transaction that may write. Its number is asked for in the same round trip, so that its fate can be
    /// looked up should the connection break while it commits.
    pub(super) fn begin_write(&mut self) -> Result<TransactionId, Fault> {
        let answer = self.ask(BEGIN_WRITE)?;
        let id = answer.as_deref().and_then(|id| id.parse().ok());
        id.map(TransactionId).ok_or_else(|| Fault::doomed(Error::internal("the transaction has no number")))
    }

    pub(super) fn begin_snapshot(&mut self) -> Result<(), Fault> {
        self.script(BEGIN_SNAPSHOT)
    }

    /// Never for a transaction in which a statement failed: PostgreSQL would roll it back and call that a success.
    pub(super) fn commit(&mut self) -> Result<(), Fault> {
        self.script("COMMIT")
    }

    pub(super) fn rollback(&mut self) {
        if !self.lost && self.script("ROLLBACK").is_err() {
            // Whatever state it is in, nobody else should find it so.
            self.lost = true;
        }
    }

    /// The first column of the last row of a script.
    pub(super) fn ask(&mut self, sql: &str) -> Result<Option<String>, Fault> {
        let answers = self.client.simple_query(sql).map_err(|error| self.failed(&error))?;
        Ok(answers.iter().rev().find_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => row.try_get(0).ok().flatten().map(str::to_owned),
            _ => None,
        }))
    }

    pub(crate) fn exec(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<u64, Fault> {
        let statement = self.prepare(sql, |sql| dialect::postgres(sql).into_owned())?;
        check_count(&statement, args.len())?;
        let bound: Vec<PgArg<'_>> = args.iter().map(PgArg).collect();
        let bound: Vec<&(dyn ToSql + Sync)> = bound.iter().map(|arg| arg as _).collect();
        self.client.execute(&statement, &bound).map_err(|error| self.failed(&error))
    }

    pub(crate) fn query(
        &mut self,
        sql: &'static str,
        args: &[Arg<'_>],
        visit: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<(), Fault> {
        let statement = self.prepare(sql, |sql| dialect::postgres(sql).into_owned())?;
        check_count(&statement, args.len())?;
        self.visit_rows(&statement, args.iter().map(PgArg), visit)
    }

    pub(crate) fn insert_all(
        &mut self,
        sql: &'static str,
        columns: &[(&'static str, ColumnType)],
        rows: &[Vec<Arg<'_>>],
        visit: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<(), Fault> {
        if rows.is_empty() {
            return Ok(());
        }
        let arrays = values::arrays(columns, rows).map_err(Fault::doomed)?;
        let statement = self.prepare(sql, |sql| dialect::postgres_rows(sql, columns))?;
        check_count(&statement, arrays.len())?;
        self.visit_rows(&statement, arrays, visit)
    }

    pub(crate) fn copy_in(&mut self, sql: &str, fill: &mut Fill<'_>) -> Result<(), Fault> {
        let outcome = match self.client.copy_in(sql) {
            Ok(mut writer) => {
                fill(&mut writer).map_err(Fault::doomed)?;
                writer.finish().map(|_| ())
            }
            Err(error) => Err(error),
        };
        outcome.map_err(|error| self.failed(&error))
    }

    pub(crate) fn lock(&mut self, root: &str) -> Result<(), Fault> {
        self.query(LOCK, &[Arg::Text(root.into())], &mut |_| Ok(()))
    }

    pub(crate) fn script(&mut self, sql: &str) -> Result<(), Fault> {
        self.client.batch_execute(sql).map_err(|error| self.failed(&error))
    }

    /// Rows are visited as they arrive, so that a long scan does not fill the memory.
    fn visit_rows<P, I>(
        &mut self,
        statement: &Statement,
        params: I,
        visit: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<(), Fault>
    where
        P: ::postgres::types::BorrowToSql,
        I: IntoIterator<Item = P>,
        I::IntoIter: ExactSizeIterator,
    {
        let outcome = match self.client.query_raw(statement, params) {
            Ok(mut rows) => loop {
                match rows.next() {
                    Ok(Some(row)) => visit(&Row::new(RowSource::Postgres(&row))).map_err(Fault::doomed)?,
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            },
            Err(error) => Err(error),
        };
        outcome.map_err(|error| self.failed(&error))
    }

    fn prepare(&mut self, sql: &'static str, translate: impl FnOnce(&str) -> String) -> Result<Statement, Fault> {
        let key = (sql.as_ptr().addr(), sql.len());
        if let Some(statement) = self.statements.get(&key) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(&translate(sql)).map_err(|error| self.failed(&error))?;
        self.statements.insert(key, statement.clone());
        Ok(statement)
    }

    fn failed(&mut self, error: &::postgres::Error) -> Fault {
        let mut fault = errors::fault(error);
        if errors::is_stale_plan(error) {
            self.statements.clear();
            fault.fate = Fate::Rerun;
        }
        self.lost |= fault.fate == Fate::ConnectionLost;
        fault
    }
}

pub(super) fn check_count(statement: &Statement, given: usize) -> Result<(), Fault> {
    let wanted = statement.params().len();
    if wanted == given {
        return Ok(());
    }
    Err(Fault::doomed(Error::internal(format!("{wanted} parameters but {given} arguments"))))
}
