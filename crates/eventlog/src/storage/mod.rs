//! How events are kept: the young ones as rows, the others in blocks of up to some thousand events of one name and month.
//! Whoever reads sees one log, whatever form an event is in: it is in one of them at any time, since rows become a block
//! in one transaction.
//!
//! The service's own entries stay rows: the chain has a row for each of them anyway, and workspaces find theirs by an index.

mod block;
mod blocks;
mod digests;
mod packing;
mod reader;
mod rows;

use ::store::row;
use kernel::{AppId, Timestamp};

use crate::LoggedEventId;
pub use block::{Block, encode};
pub use blocks::{
    BlockId, DamagedBlock, StoredBlock, WrittenBlock, damaged, delete_older, next_block, next_old, rewrite,
};
pub use packing::{Packer, count_rows, rows_deleted, rows_rewritten};
pub use reader::{EventReader, Naming, Order, any, each_block, find};

/// The events of one name.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    pub app: AppId,
    pub name: i64,
}

/// An event as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptEvent {
    pub id: LoggedEventId,
    /// The number of its name.
    pub name: i64,
    pub at: Timestamp,
    pub ingested_at: Timestamp,
    pub source: Option<String>,
    pub ingest_id: Option<String>,
    /// Whether it is in the audit trail.
    pub audited: bool,
    /// JSON.
    pub parameters: String,
    /// The fold that wrote it, where its app had a sink.
    pub revision: Option<i64>,
}

row! {
    KeptEvent = "event_rows" {
        id,
        name: "name_id",
        at: "happened_at",
        ingested_at,
        source: "ingest_source",
        ingest_id,
        audited,
        parameters,
        revision,
    }
}

/// Where an event stands in the log: by time, and by arrival where that is the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPlace {
    pub at: Timestamp,
    /// Empty before the first event of that instant.
    pub id: String,
}

impl KeptEvent {
    pub fn place(&self) -> LogPlace {
        LogPlace { at: self.at, id: self.id.to_string() }
    }
}
