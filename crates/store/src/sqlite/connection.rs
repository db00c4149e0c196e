//! One SQLite connection with its settings, its translated texts and its cached statements.

use std::{collections::HashMap, path::Path, time::Duration};

use kernel::{Error, Result};
use rusqlite::{
    CachedStatement, ErrorCode, OpenFlags, Statement, ToSql,
    config::DbConfig,
    types::{ToSqlOutput, Value as SqlValue, ValueRef},
};

use crate::{
    Arg, ColumnType, Row,
    dialect::{self, RowText},
    fault::{Fault, StatementFailed, cannot_write, unavailable},
    row::RowSource,
};

pub(crate) struct SqliteConnection {
    inner: rusqlite::Connection,
    /// By the address of the original text, which is `'static`: cheaper than hashing the text.
    texts: HashMap<(usize, usize), Translated>,
}

/// A statement's text as SQLite has it.
struct Translated {
    text: RowText,
    /// The names of its columns, once it was prepared.
    columns: Vec<String>,
}

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

impl SqliteConnection {
    pub(crate) fn open_writer(path: &Path) -> Result<Self> {
        let connection = Self::open(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        // FULL syncs the log before COMMIT returns: an answered write survives a power cut. The large checkpoint
        // interval measured 1.2 to 1.5 times the writes of the default. The cache may grow to 16 MiB: with the 2 MiB of the
        // default, folding a million events spent a sixth of its time on reading pages again.
        connection.settings(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 16000; \
             PRAGMA foreign_keys = ON; PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16384;",
        )?;
        Ok(connection)
    }

    pub(crate) fn open_reader(path: &Path) -> Result<Self> {
        let connection = Self::open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.settings("PRAGMA query_only = ON;")?;
        Ok(connection)
    }

    fn open(path: &Path, flags: OpenFlags) -> Result<Self> {
        let describe = |error: rusqlite::Error| unavailable(format!("cannot open {}: {error}", path.display()));
        let inner =
            rusqlite::Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(describe)?;
        inner.busy_timeout(BUSY_TIMEOUT).map_err(describe)?;
        // Plans do not look at bound values. Otherwise SQLite compiles every cached statement with an equality again at each
        // use, because rusqlite clears its bindings in between: a third of a point read's time.
        inner.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(describe)?;
        inner.set_prepared_statement_cache_capacity(512);
        Ok(Self { inner, texts: HashMap::new() })
    }

    fn settings(&self, sql: &str) -> Result<()> {
        self.inner.execute_batch(sql).map_err(|error| unavailable(format!("cannot set up SQLite: {error}")))
    }

    pub(crate) fn exec(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<u64, Fault> {
        let (mut statement, _) = self.prepare(sql, whole)?;
        bind(&mut statement, args)?;
        // A statement with RETURNING is stepped to its end as well.
        let changed = statement.raw_execute().map_err(fault)?;
        Ok(changed as u64)
    }

    pub(crate) fn query(
        &mut self,
        sql: &'static str,
        args: &[Arg<'_>],
        visit: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<(), Fault> {
        let (mut statement, translated) = self.prepare(sql, whole)?;
        bind(&mut statement, args)?;
        visit_rows(&mut statement, &translated.columns, visit)
    }

    pub(crate) fn insert_all(
        &mut self,
        sql: &'static str,
        columns: &[(&'static str, ColumnType)],
        rows: &[Vec<Arg<'_>>],
        visit: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<(), Fault> {
        let (mut statement, translated) = self.prepare(sql, |sql| dialect::sqlite_rows(sql, columns))?;
        let returned = &translated.text.returned;
        let names: Vec<&str> = returned.iter().map(|index| columns[*index].0).collect();
        for row in rows {
            bind(&mut statement, row)?;
            if returned.is_empty() {
                visit_rows(&mut statement, &translated.columns, visit)?;
                continue;
            }
            let given: Vec<&Arg<'_>> = returned.iter().map(|index| &row[*index]).collect();
            for _ in 0..statement.raw_execute().map_err(fault)? {
                visit(&Row::new(RowSource::Given(&given, &names))).map_err(Fault::doomed)?;
            }
        }
        Ok(())
    }

    /// Transaction control: cached, since it runs around every closure.
    pub(crate) fn control(&mut self, sql: &'static str) -> Result<(), Fault> {
        let mut statement = self.inner.prepare_cached(sql).map_err(fault)?;
        let mut rows = statement.raw_query();
        while rows.next().map_err(fault)?.is_some() {}
        Ok(())
    }

    pub(crate) fn script(&mut self, sql: &str) -> Result<(), Fault> {
        self.inner.execute_batch(sql).map_err(fault)
    }

    /// With `IMMEDIATE`, waiting for a foreign lock can only happen here. Nobody else should hold one, but a person
    /// with a shell might: be patient for a while.
    pub(crate) fn begin_immediate(&mut self) -> Result<(), Fault> {
        let mut tries = 0;
        loop {
            match self.inner.execute_batch("BEGIN IMMEDIATE") {
                Err(error) if tries < 3 && is_busy(&error) => tries += 1,
                Err(error) if is_busy(&error) => return Err(Fault::doomed(unavailable(error))),
                outcome => return outcome.map_err(fault),
            }
        }
    }

    pub(crate) fn in_transaction(&self) -> bool {
        !self.inner.is_autocommit()
    }

    pub(crate) fn rollback(&mut self) {
        if self.in_transaction()
            && let Err(error) = self.inner.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "rollback failed");
        }
    }

    pub(crate) fn vacuum_into(&self, target: &Path) -> Result<()> {
        let target = target.to_str().ok_or_else(|| Error::internal("the target path is not UTF-8"))?;
        self.settings("PRAGMA query_only = OFF;")?;
        self.inner.execute("VACUUM INTO ?1", [target]).map_err(|error| fault(error).error)?;
        Ok(())
    }

    fn prepare(
        &mut self,
        sql: &'static str,
        translate: impl FnOnce(&str) -> RowText,
    ) -> Result<(CachedStatement<'_>, &Translated), Fault> {
        let unknown = || Translated { text: translate(sql), columns: Vec::new() };
        let known = self.texts.entry((sql.as_ptr().addr(), sql.len())).or_insert_with(unknown);
        let statement = self.inner.prepare_cached(&known.text.sql).map_err(fault)?;
        if known.columns.len() != statement.column_count() {
            known.columns = statement.column_names().map(str::to_owned).collect();
        }
        Ok((statement, known))
    }
}

/// A text that is no [`crate::Tx::insert_all`]'s.
fn whole(sql: &str) -> RowText {
    RowText { sql: dialect::sqlite(sql), returned: Vec::new() }
}

fn visit_rows(
    statement: &mut Statement<'_>,
    columns: &[String],
    visit: &mut dyn FnMut(&Row<'_>) -> Result<()>,
) -> Result<(), Fault> {
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(fault)? {
        visit(&Row::new(RowSource::Sqlite(row, columns))).map_err(Fault::doomed)?;
    }
    Ok(())
}

fn bind(statement: &mut Statement<'_>, args: &[Arg<'_>]) -> Result<(), Fault> {
    let wanted = statement.parameter_count();
    if wanted != args.len() {
        return Err(Fault::doomed(Error::internal(format!("{wanted} parameters but {} arguments", args.len()))));
    }
    for (index, arg) in args.iter().enumerate() {
        statement.raw_bind_parameter(index + 1, SqliteArg(arg)).map_err(fault)?;
    }
    Ok(())
}

struct SqliteArg<'a>(&'a Arg<'a>);

impl ToSql for SqliteArg<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Arg::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Arg::Int(value) => ToSqlOutput::Borrowed(ValueRef::Integer(*value)),
            Arg::Real(value) => ToSqlOutput::Borrowed(ValueRef::Real(*value)),
            Arg::Bool(value) => ToSqlOutput::Borrowed(ValueRef::Integer((*value).into())),
            Arg::Text(value) => ToSqlOutput::Borrowed(ValueRef::Text(value.as_bytes())),
            Arg::Bytes(value) => ToSqlOutput::Borrowed(ValueRef::Blob(value)),
            Arg::TextList(values) => json_array(values)?,
            Arg::IntList(values) => json_array(values)?,
        })
    }
}

fn json_array(values: &impl serde::Serialize) -> rusqlite::Result<ToSqlOutput<'static>> {
    let json = serde_json::to_string(values);
    let json = json.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    Ok(ToSqlOutput::Owned(SqlValue::Text(json)))
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

/// SQLite's messages name constraints and columns, never values.
#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn fault(error: rusqlite::Error) -> Fault {
    let unique = error.sqlite_error().is_some_and(|code| {
        matches!(
            code.extended_code,
            rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE | rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY
        )
    });
    let failed = StatementFailed { message: error.to_string(), unique };
    Fault::doomed(match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::ReadOnly | ErrorCode::SystemIoFailure) => cannot_write(failed),
        _ => Error::internal(failed),
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn a_cached_statement_is_compiled_once() {
        const FIND: &str = "SELECT b FROM t WHERE a = $1 AND b = $2";
        let mut connection = SqliteConnection::open_writer(Path::new(":memory:")).expect("opens");
        connection.script("CREATE TABLE t (a TEXT PRIMARY KEY, b INTEGER)").ok().expect("a table");
        for number in 0..5_i64 {
            let key = number.to_string();
            connection.query(FIND, &crate::args![key, number], &mut |_| Ok(())).ok().expect("queries");
        }
        let (statement, _) = connection.prepare(FIND, whole).ok().expect("cached");
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
        assert!(statement.get_status(StatementStatus::Run) >= 5, "it is the one that ran");
    }

    #[test]
    fn sqlite_is_compiled_as_cargo_is_told() {
        let connection = SqliteConnection::open_writer(Path::new(":memory:")).expect("opens");
        let query = "SELECT 1 FROM pragma_compile_options WHERE compile_options = $1";
        let mut statement = connection.inner.prepare(query).expect("prepares");
        for option in ["STMTJRNL_SPILL=-1", "DEFAULT_MEMSTATUS=0"] {
            assert!(statement.exists([option]).expect("queries"), "`.cargo/config.toml` sets {option}");
        }
    }
}
