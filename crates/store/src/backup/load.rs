//! A backup file into an empty database of either engine: schema and rows in one transaction.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use kernel::{Code, Error, Result};
use rusqlite::types::ValueRef;

use super::{
    AttachedTarget, BackupKey, Restored, attached,
    file::Backup,
    tables::{self, BackupTable, interned, quoted},
};
use crate::{Arg, ColumnType, Db, EngineName, Migration, Tx, migrations, row::Value};

/// Rows and bytes that go into one statement.
const BATCH_ROWS: usize = 500;
const BATCH_BYTES: usize = 1 << 20;

pub(super) const MIGRATIONS_TABLE: &str = "schema_migrations";
const INFO_TABLE: &str = "backup_info";

pub(super) async fn load(
    path: &Path,
    target: &Db,
    beside: Option<Arc<dyn AttachedTarget>>,
    keys: &[BackupKey],
    list: &'static [Migration],
) -> Result<Restored> {
    let (source, keys, judge) = (path.to_owned(), keys.to_vec(), beside.clone());
    let verified = tokio::task::spawn_blocking(move || {
        let backup = Backup::open(&source)?;
        Ok::<_, Error>((backup.verify(&keys, list)?, attached::accepted(&backup, judge.as_deref())?))
    });
    let (steps, names) = verified.await.map_err(Error::internal)??;
    let (path, engine): (PathBuf, _) = (path.to_owned(), target.engine());
    let count = names.len() as u64;
    if let Some(beside) = beside.filter(|_| count > 0) {
        // First of all bytes, so that no row is ever without them; but nothing beside a database that is in use.
        target.write(move |tx| refuse_unless_empty(&tables::of(tx, engine)?, tx)).await?;
        let source = path.clone();
        let kept = tokio::task::spawn_blocking(move || {
            let backup = Backup::open(&source)?;
            names.iter().try_for_each(|name| attached::keep(&backup, name, &*beside))
        });
        kept.await.map_err(Error::internal)??;
    }
    let restored = target.write(move |tx| load_all(tx, &Backup::open(&path)?, engine, &list[..steps])).await?;
    Ok(Restored { attached: count, ..restored })
}

fn load_all(tx: &mut Tx<'_>, backup: &Backup, engine: EngineName, list: &'static [Migration]) -> Result<Restored> {
    // Nobody migrates the target meanwhile.
    tx.lock(&crate::WholeDatabase("migrations"))?;
    refuse_unless_empty(&tables::of(tx, engine)?, tx)?;
    while migrations::apply_next(tx, list, engine)?.1.is_some() {}
    // References are checked at commit where the engine can; on PostgreSQL the tables' order does the rest.
    tx.script(match engine {
        EngineName::Sqlite => "PRAGMA defer_foreign_keys = ON",
        EngineName::Postgres => "SET CONSTRAINTS ALL DEFERRED; SET LOCAL statement_timeout = 0",
    })?;

    let triggers = drop_triggers(tx, engine)?;
    let mut tables = tables::of(tx, engine)?;
    // This record is the target's own: the migrations above have written it.
    tables.retain(|table| table.name != MIGRATIONS_TABLE);
    refuse_unknown_tables(backup, &tables)?;
    // Migrations may have put in first rows; those of the backup take their place.
    for table in tables.iter().rev() {
        tx.script(&format!("DELETE FROM {}", quoted(&table.name)))?;
    }
    let mut restored = Restored { tables: tables.len(), rows: 0, attached: 0 };
    for table in &tables {
        restored.rows += load_table(tx, backup, table)?;
        go_on_numbering(tx, table)?;
    }
    triggers.iter().try_for_each(|trigger| tx.script(trigger))?;
    Ok(restored)
}

pub(super) fn refuse_unless_empty(found: &[BackupTable], tx: &mut Tx<'_>) -> Result<()> {
    let mut in_use = found.iter().any(|table| table.name != MIGRATIONS_TABLE);
    if !in_use && !found.is_empty() {
        tx.each_unrecorded(migrations::LIST, &[], &mut |_| {
            in_use = true;
            Ok(())
        })?;
    }
    if in_use {
        return Err(Error::new(
            Code::Conflict,
            "The target database is not empty. Name a new one: nothing is ever overwritten.",
        ));
    }
    Ok(())
}

/// Rows that would be left behind are a reason to stop.
pub(super) fn refuse_unknown_tables(backup: &Backup, tables: &[BackupTable]) -> Result<()> {
    for name in backup.filled_tables()? {
        let own = [MIGRATIONS_TABLE, INFO_TABLE, attached::TABLE].contains(&name.as_str());
        if !own && tables.iter().all(|table| table.name != name) {
            return Err(Error::internal(format!("the backup has rows in {name}, which the target does not have")));
        }
    }
    Ok(())
}

/// Rows go in as they are: a trigger would change them. Returns the texts that make the triggers again. On PostgreSQL they
/// stay: those that the schema has there write what the rows say anyway.
fn drop_triggers(tx: &mut Tx<'_>, engine: EngineName) -> Result<Vec<String>> {
    if engine == EngineName::Postgres {
        return Ok(Vec::new());
    }
    let mut triggers: Vec<(String, String)> = Vec::new();
    tx.each_unrecorded("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'", &[], &mut |row| {
        triggers.push((row.at(0)?, row.at(1)?));
        Ok(())
    })?;
    triggers.iter().try_for_each(|(name, _)| tx.script(&format!("DROP TRIGGER {}", quoted(name))))?;
    Ok(triggers.into_iter().map(|(_, sql)| sql).collect())
}

pub(super) fn refuse_other_columns(backup: &Backup, table: &BackupTable) -> Result<()> {
    let stored = backup.columns(&table.name)?;
    let same = stored.len() == table.columns.len() && table.columns.iter().all(|column| stored.contains(&column.name));
    if same {
        return Ok(());
    }
    Err(Error::internal(format!("table {} has other columns in the source", table.name)))
}

fn load_table(tx: &mut Tx<'_>, backup: &Backup, table: &BackupTable) -> Result<u64> {
    if backup.columns(&table.name)?.is_empty() {
        return Ok(0);
    }
    refuse_other_columns(backup, table)?;
    let list = table.column_list();
    let sql = interned(format!("INSERT INTO {} ({list}) SELECT {list} FROM {{rows}} WHERE true", quoted(&table.name)));
    let columns: Vec<(&'static str, ColumnType)> =
        table.columns.iter().map(|column| (interned(quoted(&column.name)), column.kind)).collect();

    let mut select = backup.connection.prepare(&table.select()).map_err(Error::internal)?;
    let mut rows = select.query([]).map_err(Error::internal)?;
    let (mut batch, mut bytes, mut count) = (Vec::new(), 0, 0);
    loop {
        let row = rows.next().map_err(Error::internal)?;
        if let Some(row) = row {
            let mut cells = Vec::with_capacity(columns.len());
            for (index, column) in table.columns.iter().enumerate() {
                let cell = value(row.get_ref(index).map_err(Error::internal)?, column.kind);
                let cell = cell.map(arg).ok_or_else(|| {
                    Error::internal(format!("{}.{} holds a value of another type", table.name, column.name))
                })?;
                bytes += size(&cell);
                cells.push(cell);
            }
            batch.push(cells);
            count += 1;
        }
        let last = row.is_none();
        if !batch.is_empty() && (last || batch.len() == BATCH_ROWS || bytes > BATCH_BYTES) {
            tx.insert_all_unrecorded(sql, &columns, &batch, &mut |_| Ok(()))?;
            (batch, bytes) = (Vec::new(), 0);
        }
        if last {
            return Ok(count);
        }
    }
}

/// A value of the file as the target's column wants it: SQLite has no booleans, and keeps whole reals as they came.
pub(super) fn value(value: ValueRef<'_>, wanted: ColumnType) -> Option<Value<'_>> {
    Some(match (value, wanted) {
        (ValueRef::Null, _) => Value::Null,
        (ValueRef::Integer(value), ColumnType::Int) => Value::Int(value),
        (ValueRef::Integer(value @ (0 | 1)), ColumnType::Bool) => Value::Bool(value == 1),
        (ValueRef::Integer(value), ColumnType::Real) => Value::Real(value as f64),
        (ValueRef::Real(value), ColumnType::Real) => Value::Real(value),
        (ValueRef::Text(text), ColumnType::Text) => Value::Text(std::str::from_utf8(text).ok()?),
        (ValueRef::Blob(bytes), ColumnType::Bytes) => Value::Bytes(bytes),
        _ => return None,
    })
}

fn arg(value: Value<'_>) -> Arg<'static> {
    match value {
        Value::Null => Arg::Null,
        Value::Int(value) => Arg::Int(value),
        Value::Real(value) => Arg::Real(value),
        Value::Bool(value) => Arg::Bool(value),
        Value::Text(text) => Arg::Text(text.to_owned().into()),
        Value::Bytes(bytes) => Arg::Bytes(bytes.to_owned().into()),
    }
}

fn size(arg: &Arg<'_>) -> usize {
    match arg {
        Arg::Text(text) => text.len(),
        Arg::Bytes(bytes) => bytes.len(),
        _ => 8,
    }
}

/// Sequences of PostgreSQL continue after the highest number that came in.
pub(super) fn go_on_numbering(tx: &mut Tx<'_>, table: &BackupTable) -> Result<()> {
    for column in table.columns.iter().filter(|column| column.numbered) {
        let (table, name) = (quoted(&table.name), quoted(&column.name));
        let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
        tx.script(&format!(
            "SELECT setval(pg_get_serial_sequence({}, {}), greatest(coalesce(max({name}), 0) + 1, 1), false) FROM {table}",
            literal(&table),
            literal(&column.name),
        ))?;
    }
    Ok(())
}
