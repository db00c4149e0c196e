//! The backup file itself: made, finished, opened and checked here.

use std::{fs::OpenOptions, path::Path};

use kernel::{Error, Result, Timestamp};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, Transaction};

use super::{Attached, AttachedCounts, BackupInfo, BackupKey, attached, checksum, tables::quoted};
use crate::{
    Migration,
    migrations::{self, Applied},
};

/// Raised when a reader of an older release could not make sense of the file: 2 since it may hold what lies beside the
/// database. One that does not is written as 1, which every release reads.
const FORMAT: u32 = 2;
const ROWS_ONLY: u32 = 1;

const FORMAT_ENTRY: &str = "format";
const MADE_AT: &str = "made_at";
const ENGINE: &str = "engine";
const SCHEMA: &str = "schema";
const ATTACHED: [&str; 3] = ["attached", "attached_missing", "attached_left_out"];
/// Before the names of what the maker added, so that no name is taken.
const ENTRY: &str = "entry:";

pub(super) fn cannot(verb: &str, path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::new(kernel::Code::StorageUnavailable, format!("Cannot {verb} {}: {error}", path.display()))
}

fn unusable(path: &Path, why: &str) -> Error {
    Error::invalid(format!("The backup {}", path.display()), why)
}

/// An empty file that nobody but the owner reads: backups hold what the database holds.
pub(super) fn create_empty(path: &Path) -> Result<()> {
    // What a killed process left behind.
    let _ = std::fs::remove_file(path);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop).map_err(|error| cannot("create", path, &error))
}

/// Adds what lies beside the database, and what the backup says about itself.
pub(super) fn finish(
    path: &Path,
    info: &mut BackupInfo,
    attached: Option<&Attached>,
    list: &[Migration],
) -> Result<()> {
    let mut connection = Connection::open(path).map_err(|error| cannot("open", path, &error))?;
    let applied = applied(&connection).map_err(Error::internal)?;
    migrations::check(&applied, list)?;
    info.schema = schema_of(&applied);
    let failed = |error: rusqlite::Error| cannot("write", path, &error);
    // One file and no log beside it.
    connection.pragma_update(None, "journal_mode", "DELETE").map_err(failed)?;
    let transaction = connection.transaction().map_err(failed)?;
    if let Some(attached) = attached {
        info.attached = attached::write(&transaction, path, attached)?;
    }
    describe(&transaction, info).map_err(failed)?;
    transaction.commit().map_err(failed)
}

fn describe(transaction: &Transaction<'_>, info: &BackupInfo) -> rusqlite::Result<()> {
    transaction.execute_batch("CREATE TABLE backup_info (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT")?;
    let mut insert = transaction.prepare("INSERT INTO backup_info (name, value) VALUES (?1, ?2)")?;
    let format = if info.attached.held > 0 { FORMAT } else { ROWS_ONLY };
    insert.execute((FORMAT_ENTRY, format.to_string()))?;
    insert.execute((MADE_AT, info.made_at.as_micros().to_string()))?;
    insert.execute((ENGINE, &info.engine))?;
    insert.execute((SCHEMA, info.schema.to_string()))?;
    let AttachedCounts { held, missing, left_out } = info.attached;
    for (name, count) in ATTACHED.into_iter().zip([held, missing, left_out]) {
        insert.execute((name, count.to_string()))?;
    }
    for (name, value) in &info.entries {
        insert.execute((format!("{ENTRY}{name}"), value))?;
    }
    Ok(())
}

fn applied(connection: &Connection) -> rusqlite::Result<Vec<Applied>> {
    let mut list = connection.prepare(migrations::LIST)?;
    let rows =
        list.query_map([], |row| Ok(Applied { number: row.get(0)?, name: row.get(1)?, checksum: row.get(2)? }))?;
    rows.collect()
}

fn schema_of(applied: &[Applied]) -> u32 {
    applied.last().and_then(|last| u32::try_from(last.number).ok()).unwrap_or(0)
}

/// An opened backup.
pub(super) struct Backup {
    pub(super) connection: Connection,
    path: std::path::PathBuf,
}

impl Backup {
    /// Opens the file for reading and checks that it is a backup of a format known here.
    pub(super) fn open(path: &Path) -> Result<Self> {
        if !path.is_file() {
            return Err(unusable(path, "is not there"));
        }
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .map_err(|error| cannot("open", path, &error))?;
        let backup = Self { connection, path: path.to_owned() };
        match backup.entry(FORMAT_ENTRY)?.and_then(|format| format.parse::<u32>().ok()) {
            Some(ROWS_ONLY..=FORMAT) => Ok(backup),
            Some(newer) if newer > FORMAT => {
                Err(unusable(path, "was made by a newer release; restore it with that release or a later one"))
            }
            _ => Err(unusable(path, "is not a backup of Tenantry")),
        }
    }

    /// The file of an embedded store, for reading, as it is now and stays meanwhile.
    pub(super) fn of_store(path: &Path) -> Result<Self> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .and_then(|connection| connection.execute_batch("BEGIN").map(|()| connection))
            .map_err(|error| cannot("open", path, &error))?;
        Ok(Self { connection, path: path.to_owned() })
    }

    /// How many rows a table has.
    pub(super) fn count(&self, table: &str) -> Result<u64> {
        let counted: rusqlite::Result<i64> =
            self.connection.query_row(&format!("SELECT count(*) FROM {}", quoted(table)), [], |row| row.get(0));
        Ok(counted.map_err(|error| cannot("read", &self.path, &error))?.unsigned_abs())
    }

    fn entry(&self, name: &str) -> Result<Option<String>> {
        let found =
            self.connection.query_row("SELECT value FROM backup_info WHERE name = ?1", [name], |row| row.get(0));
        found.optional().map_err(|error| {
            // A byte that was changed where the tables are described is noticed here, before the checksum is looked at.
            let is_damaged = error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt);
            let problem = if is_damaged { "is damaged or was changed" } else { "is not a backup of Tenantry" };
            unusable(&self.path, problem).with_source(error)
        })
    }

    pub(super) fn info(&self) -> Result<BackupInfo> {
        let number = |name| -> Result<i64> {
            let text = self.entry(name)?.and_then(|text| text.parse().ok());
            text.ok_or_else(|| unusable(&self.path, &format!("does not say its {name}")))
        };
        // Backups of earlier releases say nothing of it.
        let count = |name| Ok::<_, Error>(self.entry(name)?.and_then(|text| text.parse().ok()).unwrap_or_default());
        let [held, missing, left_out] = ATTACHED;
        let attached = AttachedCounts { held: count(held)?, missing: count(missing)?, left_out: count(left_out)? };
        let read_entries = || {
            let mut list =
                self.connection.prepare("SELECT substr(name, 7), value FROM backup_info WHERE name LIKE 'entry:%'")?;
            list.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()
        };
        Ok(BackupInfo {
            made_at: Timestamp::from_micros(number(MADE_AT)?),
            engine: self.entry(ENGINE)?.unwrap_or_default(),
            schema: u32::try_from(number(SCHEMA)?).map_err(Error::internal)?,
            entries: read_entries().map_err(|error| unusable(&self.path, "cannot be read").with_source(error))?,
            attached,
        })
    }

    /// Checks every byte, page and index, and that the schema is one this program knows; the number of migrations in it.
    pub(super) fn verify(&self, keys: &[BackupKey], list: &[Migration]) -> Result<usize> {
        if !checksum::holds(&self.path, keys).map_err(|error| cannot("read", &self.path, &error))? {
            return Err(unusable(&self.path, "is damaged or was changed: its checksum does not fit"));
        }
        let verdict: rusqlite::Result<String> =
            self.connection.query_row("PRAGMA integrity_check", [], |row| row.get(0));
        match verdict {
            Ok(verdict) if verdict == "ok" => {}
            Ok(verdict) => return Err(unusable(&self.path, "is damaged").with_source(verdict)),
            Err(error) => return Err(unusable(&self.path, "is damaged").with_source(error)),
        }
        let applied =
            applied(&self.connection).map_err(|error| unusable(&self.path, "has no schema").with_source(error))?;
        migrations::check(&applied, list)?;
        Ok(applied.len())
    }

    /// The columns of a table; none when there is no such table.
    pub(super) fn columns(&self, table: &str) -> Result<Vec<String>> {
        let read = || {
            let mut list = self.connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
            list.query_map([table], |row| row.get(0))?.collect::<rusqlite::Result<_>>()
        };
        read().map_err(|error| unusable(&self.path, "cannot be read").with_source(error))
    }

    /// Tables with rows in them.
    pub(super) fn filled_tables(&self) -> Result<Vec<String>> {
        let read = || {
            let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_'";
            let mut list = self.connection.prepare(sql)?;
            let mut filled = Vec::new();
            for name in list.query_map([], |row| row.get::<_, String>(0))? {
                let name = name?;
                if self.connection.prepare(&format!("SELECT 1 FROM {}", quoted(&name)))?.exists([])? {
                    filled.push(name);
                }
            }
            Ok(filled)
        };
        read().map_err(|error: rusqlite::Error| unusable(&self.path, "cannot be read").with_source(error))
    }
}
