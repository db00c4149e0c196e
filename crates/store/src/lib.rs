//! Storage: one API and one SQL text over embedded SQLite and PostgreSQL.
//!
//! Domains write plain synchronous closures over [`Tx`]; what [`Db::write`] has answered `Ok` is durable. Closures may
//! run more than once (after a deadlock, a lost connection, a failed batch), so they are free of side effects: what
//! must happen after the commit goes through [`Tx::on_commit`] or is a row that a job acts on.
//!
//! This room knows no table's meaning.

mod args;
mod backup;
mod cells;
mod counters;
mod db;
mod declare;
mod dialect;
mod fault;
mod ingest;
mod job;
mod json;
mod lock;
mod migrations;
mod postgres;
pub mod private;
mod raw;
#[cfg(feature = "testing")]
mod record;
mod row;
mod sqlite;
mod table;
#[cfg(feature = "testing")]
pub mod testing;
mod text_enum;
mod texts;
mod tx;
mod unhurried;
mod url;
mod wake;

pub use args::{Arg, ToArg};
pub use backup::{
    Attached, AttachedCounts, AttachedSource, AttachedTarget, BackupInfo, BackupKey, MoveEstimate, MoveOrder,
    MoveProgress, Moved, Restored, read_backup_info, restore,
};
pub use cells::{Cell, ColumnType, Tuple};
pub use counters::Counters;
pub use db::{Db, EngineName, Limits, Options, Sizes};
#[doc(hidden)]
pub use declare::{joined_bytes, joined_length};
pub use fault::is_unique_violation;
pub use ingest::{Ingest, Ingestor, LONGEST_LIST};
pub use json::Json;
pub use lock::{Lock, WholeDatabase};
pub use migrations::{Migration, MigrationReport, MigrationSql};
pub use raw::{RawCell, RawTable};
pub use row::{Column, FromRow, Row, Value, WrongType, parsed};
pub use sqlite::folder_lock::{FolderLock, FolderLocked};
pub use table::{AppColumn, Expiry, Owned, Owner, SealedColumn, Table};
pub use tx::Tx;
pub use unhurried::spawn_unhurried;
pub use url::DatabaseUrl;
pub use wake::LONGEST_NOTE;
