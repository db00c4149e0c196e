//! The transaction that domain code writes against, whichever engine is below.

use std::{io::Write, sync::Arc};

use kernel::{Actor, Author, Code, Entropy, Error, Id, IdKind, Result, Timestamp};

use crate::{
    Arg, ColumnType, EngineName, FromRow, Lock, Row, Tuple,
    db::Context,
    fault::{Fate, Fault},
    postgres, sqlite,
};

/// Runs after the commit, before the caller is answered.
pub(crate) type Hook = Box<dyn FnOnce() + Send>;

/// Writes the rows of a `COPY`.
pub(crate) type Fill<'a> = dyn FnMut(&mut dyn Write) -> Result<()> + 'a;

/// One transaction. Statements are `&'static str` in the portable subset described in `docs/conventions.md`.
///
/// A failed statement dooms the transaction on both engines, even if the closure ignores the error, unless it ran
/// inside [`Tx::savepoint`].
pub struct Tx<'a> {
    connection: EngineConnection<'a>,
    context: &'a Arc<Context>,
    now: Timestamp,
    /// `None` for the system.
    author: Option<Arc<Author>>,
    quiet: bool,
    access: Access,
    hooks: Vec<Hook>,
    doom: Option<Fate>,
    depth: u32,
    locks: Vec<(u8, String)>,
}

pub(crate) enum EngineConnection<'a> {
    Sqlite(&'a mut sqlite::SqliteConnection),
    Postgres(&'a mut postgres::PgConnection),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    ReadWrite,
    ReadOnly,
}

impl<'a> Tx<'a> {
    pub(crate) fn context(&self) -> &'a Context {
        self.context
    }

    pub(crate) fn new(connection: EngineConnection<'a>, context: &'a Arc<Context>, access: Access) -> Self {
        let (now, hooks, locks) = (context.clock.now(), Vec::new(), Vec::new());
        Self { connection, context, now, author: None, quiet: false, access, hooks, doom: None, depth: 0, locks }
    }

    /// Runs a statement that returns no rows; the number of rows it changed.
    pub fn exec(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<u64> {
        self.refuse_when_doomed()?;
        self.refuse_when_reading(sql)?;
        self.context.saw(sql);
        let outcome = match &mut self.connection {
            EngineConnection::Sqlite(connection) => connection.exec(sql, args),
            EngineConnection::Postgres(connection) => connection.exec(sql, args),
        };
        self.judge(sql, outcome)
    }

    /// Runs a statement whose number of changed rows does not matter.
    pub fn run(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<()> {
        self.exec(sql, args).map(|_| ())
    }

    /// Runs a statement that changes one row or none: whether it did.
    pub fn changes_one(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<bool> {
        match self.exec(sql, args)? {
            0 => Ok(false),
            1 => Ok(true),
            // Kept by no caller's rule: better to fail than to have changed what was not meant.
            many => Err(Error::internal(format!("{many} rows instead of one were changed by: {sql}"))),
        }
    }

    /// Whether a query has a row.
    pub fn exists(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<bool> {
        let mut found = false;
        self.each(sql, args, &mut |_| {
            found = true;
            Ok(())
        })?;
        Ok(found)
    }

    /// All rows of a query.
    pub fn all<T: FromRow>(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<Vec<T>> {
        let mut rows = Vec::new();
        self.each(sql, args, &mut |row| {
            rows.push(T::from_row(row)?);
            Ok(())
        })?;
        Ok(rows)
    }

    /// The first row, if there is one.
    pub fn opt<T: FromRow>(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<Option<T>> {
        let mut first = None;
        self.each(sql, args, &mut |row| {
            if first.is_none() {
                first = Some(T::from_row(row)?);
            }
            Ok(())
        })?;
        Ok(first)
    }

    /// The one row of a query that always has one.
    pub fn one<T: FromRow>(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<T> {
        self.opt(sql, args)?.ok_or_else(|| Error::internal(format!("no row from: {sql}")))
    }

    /// Calls `visit` for each row: for results too large to collect.
    pub fn each(
        &mut self,
        sql: &'static str,
        args: &[Arg<'_>],
        visit: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        self.refuse_when_doomed()?;
        self.context.saw(sql);
        self.each_unrecorded(sql, args, visit)
    }

    /// For texts made per table and engine at run time (backups), which no other engine ever sees.
    pub(crate) fn each_unrecorded(
        &mut self,
        sql: &'static str,
        args: &[Arg<'_>],
        visit: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        self.refuse_when_doomed()?;
        let outcome = match &mut self.connection {
            EngineConnection::Sqlite(connection) => connection.query(sql, args, visit),
            EngineConnection::Postgres(connection) => connection.query(sql, args, visit),
        };
        self.judge(sql, outcome)
    }

    /// Runs `sql` once for many rows. The text reads its input from the token `{rows}`, a table whose columns have
    /// these `names`: `INSERT INTO t (a, b) SELECT a, b FROM {rows} WHERE true ON CONFLICT …`, or
    /// `UPDATE t SET b = rows.b FROM {rows} WHERE t.a = rows.a`.
    /// One statement on PostgreSQL, a cached one per row on SQLite, where a statement costs next to nothing.
    pub fn insert_all<R: Tuple>(&mut self, sql: &'static str, names: R::Names, rows: &[R]) -> Result<()> {
        self.insert_each(sql, &names, rows, &mut |_| Ok(()))
    }

    /// As [`Tx::insert_all`], for a text that ends in `RETURNING`. Of an `UPDATE` these are the rows' columns: which table row
    /// was changed by them.
    pub fn insert_all_returning<T: FromRow, R: Tuple>(
        &mut self,
        sql: &'static str,
        names: R::Names,
        rows: &[R],
    ) -> Result<Vec<T>> {
        let mut returned = Vec::new();
        self.insert_each(sql, &names, rows, &mut |row| {
            returned.push(T::from_row(row)?);
            Ok(())
        })?;
        Ok(returned)
    }

    fn insert_each<R: Tuple>(
        &mut self,
        sql: &'static str,
        names: &R::Names,
        rows: &[R],
        visit: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        self.refuse_when_doomed()?;
        let columns: Vec<_> = names.as_ref().iter().copied().zip(R::TYPES.iter().copied()).collect();
        self.context.saw_rows(sql, &columns);
        let rows: Vec<_> = rows.iter().map(Tuple::to_args).collect();
        self.insert_all_unrecorded(sql, &columns, &rows, visit)
    }

    pub(crate) fn insert_all_unrecorded(
        &mut self,
        sql: &'static str,
        columns: &[(&'static str, ColumnType)],
        rows: &[Vec<Arg<'_>>],
        visit: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        self.refuse_when_doomed()?;
        self.refuse_when_reading(sql)?;
        let outcome = match &mut self.connection {
            EngineConnection::Sqlite(connection) => connection.insert_all(sql, columns, rows, visit),
            EngineConnection::Postgres(connection) => connection.insert_all(sql, columns, rows, visit),
        };
        self.judge(sql, outcome)
    }

    /// Streams what `fill` writes into a table: `COPY … FROM STDIN`, on PostgreSQL only.
    pub(crate) fn copy_in(&mut self, sql: &str, fill: &mut Fill<'_>) -> Result<()> {
        self.refuse_when_doomed()?;
        let outcome = match &mut self.connection {
            EngineConnection::Sqlite(_) => return Err(Error::internal("SQLite has no COPY")),
            EngineConnection::Postgres(connection) => connection.copy_in(sql, fill),
        };
        self.judge("COPY", outcome)
    }

    /// Runs `work` so that its failure undoes only what it did.
    pub fn savepoint<T>(&mut self, work: impl FnOnce(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        self.refuse_when_doomed()?;
        let (hooks_before, author_before) = (self.hooks.len(), self.author.clone());
        self.depth += 1;
        let depth = self.depth;
        self.control(&format!("SAVEPOINT inner_{depth}"))?;
        let outcome = work(self);
        self.depth -= 1;
        // A deadlock or a lost connection cannot be undone by a savepoint: the whole closure runs again.
        if matches!(self.doom, Some(Fate::Rerun | Fate::ConnectionLost)) {
            return outcome;
        }
        let failed = self.doom.take().is_some();
        if outcome.is_ok() && !failed {
            self.control(&format!("RELEASE SAVEPOINT inner_{depth}"))?;
            return outcome;
        }
        self.hooks.truncate(hooks_before);
        self.author = author_before;
        self.control(&format!("ROLLBACK TO SAVEPOINT inner_{depth}"))?;
        self.control(&format!("RELEASE SAVEPOINT inner_{depth}"))?;
        outcome.and_then(|_| Err(doomed_error()))
    }

    /// Serialises rules that read before they write: until this transaction ends, nobody else takes the same lock. SQLite
    /// has one writer, so there it costs nothing.
    pub fn lock(&mut self, lock: &impl Lock) -> Result<()> {
        self.refuse_when_doomed()?;
        let (rank, name) = (lock.rank(), lock.name());
        debug_assert!(
            self.locks.iter().any(|(_, held)| *held == name) || self.locks.iter().all(|(held, _)| *held <= rank),
            "{name} has to be taken before {:?}",
            self.locks
        );
        match &mut self.connection {
            EngineConnection::Sqlite(_) => {}
            EngineConnection::Postgres(connection) => {
                let outcome = connection.lock(&name);
                self.judge("lock", outcome)?;
            }
        }
        self.locks.push((rank, name));
        Ok(())
    }

    /// Does something in memory once this transaction has committed and before its caller is answered, such as
    /// swapping a cached snapshot. It must be quick and must not block.
    pub fn on_commit(&mut self, hook: impl FnOnce() + Send + 'static) {
        self.hooks.push(Box::new(hook));
    }

    /// Lets [`crate::Db::wakeups`] of this node ring once this transaction has committed: it wrote something that a
    /// background job waits for. Other nodes are told by whoever acts on it.
    pub fn wake_on_commit(&mut self) {
        let wake = self.context.wake.clone();
        self.on_commit(move || wake.ring());
    }

    /// In whose name this transaction runs.
    pub fn author(&self) -> &Author {
        self.author.as_deref().unwrap_or(Author::system())
    }

    /// Somebody has just proven who they are: what follows in this transaction is theirs. Address and request stay.
    pub fn acting_as(&mut self, actor: Actor) {
        self.author = Some(Arc::new(Author { actor, ..self.author().clone() }));
    }

    /// What follows in this transaction is written down like everything else, but servers outside are not told of it.
    pub fn tell_nobody_outside(&mut self) {
        self.quiet = true;
    }

    pub fn tells_nobody_outside(&self) -> bool {
        self.quiet
    }

    pub(crate) fn begin_as(&mut self, author: Option<Arc<Author>>) {
        self.author = author;
    }

    /// Business time, the same for the whole transaction.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    pub fn new_id<K: IdKind>(&self) -> Id<K> {
        self.context.ids.next()
    }

    pub fn entropy(&self) -> &Entropy {
        &self.context.entropy
    }

    /// Several statements at once, for migrations only: not prepared, not recorded.
    pub(crate) fn script(&mut self, sql: &str) -> Result<()> {
        let outcome = match &mut self.connection {
            EngineConnection::Sqlite(connection) => connection.script(sql),
            EngineConnection::Postgres(connection) => connection.script(sql),
        };
        self.judge("script", outcome)
    }

    pub(crate) fn engine(&self) -> EngineName {
        match &self.connection {
            EngineConnection::Sqlite(_) => EngineName::Sqlite,
            EngineConnection::Postgres(_) => EngineName::Postgres,
        }
    }

    /// Lifts the limit on how long statements may take in this transaction: for long reads of whole tables.
    pub(crate) fn read_as_long_as_needed(&mut self) -> Result<()> {
        match &self.connection {
            EngineConnection::Sqlite(_) => Ok(()),
            EngineConnection::Postgres(_) => self.script("SET LOCAL statement_timeout = 0"),
        }
    }

    /// Lifts the limits on how long statements and locks may take in this transaction: for migrations only.
    pub(crate) fn take_as_long_as_needed(&mut self) -> Result<()> {
        match &self.connection {
            EngineConnection::Sqlite(_) => Ok(()),
            EngineConnection::Postgres(_) => self.script("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0"),
        }
    }

    /// The outcome of the whole closure for the engine: hooks to run after the commit, or what to do instead.
    pub(crate) fn finish(self, keep: bool) -> Result<Vec<Hook>, Fate> {
        match self.doom {
            Some(fate) => Err(fate),
            None if keep => Ok(self.hooks),
            None => Ok(Vec::new()),
        }
    }

    fn control(&mut self, sql: &str) -> Result<()> {
        self.script(sql)
    }

    fn judge<T>(&mut self, sql: &str, outcome: Result<T, Fault>) -> Result<T> {
        outcome.map_err(|fault| {
            // A worse fate is never forgotten: a lost connection stays lost.
            if self.doom.is_none() || fault.fate != Fate::Doomed {
                self.doom = Some(fault.fate);
            }
            tracing::debug!(sql, error = ?fault.error, fate = ?fault.fate, "statement failed");
            fault.error
        })
    }

    fn refuse_when_reading(&self, sql: &str) -> Result<()> {
        match self.access {
            Access::ReadWrite => Ok(()),
            Access::ReadOnly => Err(Error::internal(format!("a read closure tried to write: {sql}"))),
        }
    }

    fn refuse_when_doomed(&self) -> Result<()> {
        if self.doom.is_some() { Err(doomed_error()) } else { Ok(()) }
    }
}

pub(crate) fn doomed_error() -> Error {
    Error::new(Code::Internal, "Something went wrong on our side. Quote the request id when you report it.")
        .with_source("an earlier statement of this transaction failed and its error was ignored")
}
