//! PostgreSQL into a backup file: one snapshot, read table by table on the lane of long reads while writers continue.

use std::path::{Path, PathBuf};

use kernel::{Error, Result};
use rusqlite::{
    Connection, ToSql, params_from_iter,
    types::{ToSqlOutput, ValueRef},
};

use super::tables::{self, BackupTable, interned, quoted};
use crate::{Db, EngineName, Migration, RawCell, Tx, dialect, migrations};

pub(super) async fn dump(db: &Db, path: &Path, list: &'static [Migration]) -> Result<()> {
    let path: PathBuf = path.to_owned();
    // It may run again after a lost connection, then from the start.
    db.scan(move |tx| {
        super::file::create_empty(&path)?;
        let file = Connection::open(&path).map_err(Error::internal)?;
        // Nobody reads the file before it is finished and synced, so it needs no protection until then.
        run(&file, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; BEGIN")?;
        tx.read_as_long_as_needed()?;
        let applied = migrations::applied(tx)?;
        migrations::check(&applied, list)?;
        create_schema(&file, &list[..applied.len()])?;
        let triggers = drop_triggers(&file)?;
        for table in tables::of(tx, EngineName::Postgres)? {
            run(&file, &format!("DELETE FROM {}", quoted(&table.name)))?;
            copy_table(tx, &file, &table)?;
        }
        triggers.iter().try_for_each(|trigger| run(&file, trigger))?;
        run(&file, "COMMIT")
    })
    .await
}

fn run(file: &Connection, sql: &str) -> Result<()> {
    file.execute_batch(sql).map_err(Error::internal)
}

fn create_schema(file: &Connection, list: &[Migration]) -> Result<()> {
    run(file, &dialect::migration(migrations::CREATE_TABLE, EngineName::Sqlite))?;
    list.iter().try_for_each(|migration| run(file, &migration.text(EngineName::Sqlite)))
}

/// Rows go in as they are: a trigger would change them. Returns the texts that make the triggers again.
fn drop_triggers(file: &Connection) -> Result<Vec<String>> {
    let read = || {
        let mut list = file.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")?;
        list.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<Vec<(String, String)>>>()
    };
    let triggers = read().map_err(Error::internal)?;
    triggers.iter().try_for_each(|(name, _)| run(file, &format!("DROP TRIGGER {}", quoted(name))))?;
    Ok(triggers.into_iter().map(|(_, sql)| sql).collect())
}

fn copy_table(tx: &mut Tx<'_>, file: &Connection, table: &BackupTable) -> Result<()> {
    let places = vec!["?"; table.columns.len()].join(", ");
    let sql = format!("INSERT INTO {} ({}) VALUES ({places})", quoted(&table.name), table.column_list());
    let mut insert = file
        .prepare(&sql)
        .map_err(|error| Error::internal(format!("table {} differs between the engines: {error}", table.name)))?;
    tx.each_unrecorded(interned(table.select()), &[], &mut |row| {
        let cells = (0..table.columns.len()).map(|index| row.at(index)).collect::<Result<Vec<RawCell>>>()?;
        insert.execute(params_from_iter(cells)).map(drop).map_err(Error::internal)
    })
}

impl ToSql for RawCell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(value) => ValueRef::Integer(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
