//! Bytes that lie beside the database and belong to its rows, such as files: carried in a backup as a table of their own, a
//! piece to a row, so that the backup stays one file under one digest.

use std::{
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use kernel::{Error, Result};
use rusqlite::{Connection, OptionalExtension as _, Transaction};

use super::file::{Backup, cannot};

pub(super) const TABLE: &str = "backup_attached";
const PIECE: usize = 1 << 20;

/// Where the bytes are when a backup is made. Called in threads that may wait.
pub trait AttachedSource: Send + Sync {
    /// `None` when they are missing.
    fn open(&self, name: &str) -> io::Result<Option<Box<dyn Read + '_>>>;
}

/// Where the bytes go when a backup is restored. Called in threads that may wait.
pub trait AttachedTarget: Send + Sync {
    /// Whether it is a name that can be kept. Asked for all of them before any is kept.
    fn accepts(&self, name: &str) -> bool;

    /// Durable when it answers. May have been kept before, by a restore that was cut off.
    fn keep(&self, name: &str, bytes: &mut dyn Read) -> io::Result<()>;
}

/// What lies beside the database.
#[derive(Clone)]
pub struct Attached {
    /// Lists the names. It is run in the backup, so that names and rows are of the same moment.
    pub names: &'static str,
    /// Without it the bytes are left out, and counted.
    pub source: Option<Arc<dyn AttachedSource>>,
}

/// How many of what lies beside the database a backup holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttachedCounts {
    pub held: u64,
    /// Their bytes were not where they should have been.
    pub missing: u64,
    /// Nobody asked for them.
    pub left_out: u64,
}

/// Adds the bytes to a backup that has its rows already.
pub(super) fn write(backup: &Transaction<'_>, path: &Path, attached: &Attached) -> Result<AttachedCounts> {
    let mut counts = AttachedCounts::default();
    let names = names_by(backup, attached.names).map_err(|error| cannot("read", path, &error))?;
    let Some(source) = &attached.source else {
        counts.left_out = names.len() as u64;
        return Ok(counts);
    };
    let failed = |error: rusqlite::Error| cannot("write", path, &error);
    let create =
        "CREATE TABLE backup_attached (name TEXT, part INTEGER, bytes BLOB NOT NULL, PRIMARY KEY (name, part)) STRICT";
    backup.execute_batch(create).map_err(failed)?;
    let mut insert = backup.prepare("INSERT INTO backup_attached (name, part, bytes) VALUES (?1, ?2, ?3)");
    let insert = insert.as_mut().map_err(|error| cannot("write", path, error))?;
    for name in names {
        let opened = source.open(&name).map_err(unreadable)?;
        let Some(mut bytes) = opened else {
            counts.missing += 1;
            continue;
        };
        // An empty one is a piece too.
        for part in 0_i64.. {
            let piece = next_piece(&mut bytes).map_err(unreadable)?;
            if part == 0 || !piece.is_empty() {
                insert.execute((&name, part, &piece)).map_err(failed)?;
            }
            if piece.len() < PIECE {
                break;
            }
        }
        counts.held += 1;
    }
    Ok(counts)
}

fn names_by(backup: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    backup.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

fn next_piece(bytes: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut piece = Vec::new();
    bytes.take(PIECE as u64).read_to_end(&mut piece)?;
    Ok(piece)
}

fn unreadable(error: io::Error) -> Error {
    let message = "A file that belongs to the backup cannot be read.";
    Error::new(kernel::Code::StorageUnavailable, message).with_source(error)
}

/// The names of what the backup holds, which the target must accept.
pub(super) fn accepted(backup: &Backup, target: Option<&dyn AttachedTarget>) -> Result<Vec<String>> {
    if backup.columns(TABLE)?.is_empty() {
        return Ok(Vec::new());
    }
    let names = names_by(&backup.connection, "SELECT DISTINCT name FROM backup_attached ORDER BY name");
    let names = names.map_err(Error::internal)?;
    match names.iter().find(|name| !target.is_some_and(|target| target.accepts(name))) {
        Some(_) => Err(Error::invalid("The backup", "holds a file whose name no release of Tenantry has given")),
        None => Ok(names),
    }
}

/// Hands one to the target, piece by piece.
pub(super) fn keep(backup: &Backup, name: &str, target: &dyn AttachedTarget) -> Result<()> {
    let mut bytes = Pieces { connection: &backup.connection, name, part: 0, piece: Vec::new(), read: 0 };
    target.keep(name, &mut bytes).map_err(|error| {
        Error::new(kernel::Code::StorageUnavailable, "A file of the backup cannot be stored here.").with_source(error)
    })
}

struct Pieces<'a> {
    connection: &'a Connection,
    name: &'a str,
    part: i64,
    piece: Vec<u8>,
    /// How much of the piece was read.
    read: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.read == self.piece.len() {
            let sql = "SELECT bytes FROM backup_attached WHERE name = ?1 AND part = ?2";
            let next: Option<Vec<u8>> = self
                .connection
                .query_row(sql, (self.name, self.part), |row| row.get(0))
                .optional()
                .map_err(io::Error::other)?;
            (self.piece, self.read, self.part) = (next.unwrap_or_default(), 0, self.part + 1);
        }
        let mut left = &self.piece[self.read..];
        let count = left.read(into)?;
        self.read += count;
        Ok(count)
    }
}
