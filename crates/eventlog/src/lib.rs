//! The event log: what apps and the service itself say that happened, kept, counted and found again. This room knows no
//! meanings; rooms say what happened, this one keeps it and answers.
//!
//! An event is durable when it is answered. Buckets, first occurrences and the audit trail follow from it by the fold,
//! exactly once, whatever its order of arrival.

mod audit;
mod csv;
mod export;
pub mod facts;
mod fold;
mod grain;
mod ingest;
mod keeping;
mod names;
mod parameters;
mod questions;
mod scans;
mod sink;
mod storage;
mod tables;
mod tail;
#[cfg(test)]
mod testing;

use std::sync::Arc;

use spine::{Exclusive, Outbox, Runner, Signal, outbound::Outbound};
use store::{Db, Ingestor};
use tenancy::{OperatorKey, Tenancy};
use tokio::sync::watch;
use web::Routes;

use audit::Verifications;
use fold::{FoldJob, Folder};
pub use grain::Grain;
use ingest::EventIngest;
pub(crate) use ingest::http::require_own_app;
pub use keeping::ErasureId;
use keeping::{Eraser, EventRetention};
use names::KnownNames;
use scans::Scans;
use sink::SinkJob;
pub use sink::{FailingSink, ddl, failing as failing_sinks, oldest_unsent};
pub use spine::LoggedEventId;
use storage::Packer;
pub use storage::{Block, DamagedBlock, damaged as damaged_blocks, encode as encode_block};
pub use tables::TABLES;

/// What the routes of this room work with. Cheap to clone.
#[derive(Clone)]
pub struct EventLog {
    pub(crate) db: Db,
    tenancy: Tenancy,
    ingestor: Ingestor<EventIngest>,
    known: Arc<KnownNames>,
    folder: Folder,
    verifications: Verifications,
    scans: Scans,
    /// Rung when there is something to erase.
    erasures: Signal,
    /// Calls to sinks.
    outbound: Outbound,
    /// Whether streams have to end.
    closing: Arc<watch::Sender<bool>>,
}

impl EventLog {
    /// Needs a Tokio runtime, for the batcher.
    pub fn new(tenancy: Tenancy, outbound: Outbound) -> Self {
        let db = tenancy.db.clone();
        Self {
            ingestor: db.ingestor(),
            known: Arc::default(),
            folder: Folder::new(db.clone()),
            verifications: Verifications::default(),
            scans: Scans::default(),
            erasures: Signal::new(),
            outbound,
            closing: Arc::new(watch::Sender::new(false)),
            db,
            tenancy,
        }
    }

    /// Ends all streams: a node that stops would wait for them.
    pub fn end_streams(&self) {
        self.closing.send_replace(true);
    }

    /// Registers what writes the service's own events, and what folds all of them.
    pub fn register(&self, outbox: &mut Outbox, runner: &Runner) {
        let (due, erasures) = (self.folder.signal(), self.erasures.clone());
        outbox.consume_together(facts::CONSUMER, move |tx, facts| audit::consume(tx, &due, &erasures, facts));
        runner.add(Exclusive::new(&self.db, FoldJob::new(self.folder.clone())));
        let eraser = Eraser::new(self.db.clone(), self.folder.clone(), self.erasures.clone());
        runner.add(Exclusive::new(&self.db, eraser));
        runner.add(Exclusive::new(&self.db, EventRetention::new(self.db.clone())));
        runner.add(Exclusive::new(&self.db, Packer(self.db.clone())));
        let (keyring, outbound) = (self.tenancy.keyring.clone(), self.outbound.clone());
        runner.add(Exclusive::new(&self.db, SinkJob { db: self.db.clone(), keyring, outbound }));
    }
}

impl AsRef<Tenancy> for EventLog {
    fn as_ref(&self) -> &Tenancy {
        &self.tenancy
    }
}

impl AsRef<OperatorKey> for EventLog {
    fn as_ref(&self) -> &OperatorKey {
        &self.tenancy.operator
    }
}

pub fn routes() -> Routes<EventLog> {
    ingest::http::routes()
        .merge(questions::routes())
        .merge(audit::routes())
        .merge(keeping::routes())
        .merge(export::routes())
        .merge(tail::routes())
        .merge(sink::routes())
}
