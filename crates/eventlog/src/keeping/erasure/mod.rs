//! Takes an entity out of the log: its value becomes `__erased__` in events and counters, and its first occurrences go.
//! Counts stay.
//!
//! An erasure begins once everything that was sent or told before it is folded. A step looks for what has to change
//! among the readers and changes it in one short transaction, which also notes how far it is: it can be killed anywhere.

mod changes;
mod search;

use std::time::Duration;

use kernel::{AppId, Error, Result, Timestamp, id_kinds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spine::{Fact, Job, Signal, Worked};
use store::{Db, Json, Tx, args, row, sql};
use tenancy::facts::AppImported;
use tokio::sync::{Mutex, watch};

use crate::{
    facts::EntityErasureBegun,
    fold::{self, Folder},
};

id_kinds! {
    /// The erasure of an entity; `jobId` on the wire.
    ErasureId(EntityErasure) = "erasure";
}

/// An erasure that is not done yet.
#[derive(Clone, Debug)]
struct Erasure {
    id: ErasureId,
    app: AppId,
    entity_type: String,
    entity_value: String,
    place: Option<Json<Place>>,
    finished_at: Option<Timestamp>,
}

row! {
    Erasure = "event_erasures" { id, app: "app_id", entity_type, entity_value, place, finished_at }
}

/// How far an erasure is: names of events are taken by their numbers, and of each its rows before its blocks, since rows
/// become blocks meanwhile, and its counters in the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Place {
    /// After the row of this time and id.
    Rows { name: i64, at: i64, id: String },
    /// After the block of this id.
    Blocks { name: i64, id: String },
    /// After the bucket of this grain and start.
    Counters { name: i64, grain: i64, start: i64 },
}

impl Place {
    /// Before everything that is of this name.
    fn of(name: i64) -> Self {
        Self::Rows { name, at: Timestamp::MIN.as_micros(), id: String::new() }
    }

    fn name(&self) -> i64 {
        match self {
            Self::Rows { name, .. } | Self::Blocks { name, .. } | Self::Counters { name, .. } => *name,
        }
    }
}

const INSERT: &str = "INSERT INTO event_erasures (id, app_id, entity_type, entity_value, ready, created_at) \
                      VALUES ($1, $2, $3, $4, FALSE, $5)";
const RELEASE: &str = "UPDATE event_erasures SET ready = TRUE WHERE app_id = $1 AND id = $2";
const RELEASE_ALL: &str = "UPDATE event_erasures SET ready = TRUE WHERE app_id = $1";
const FIND: &str = sql!("SELECT ", Erasure::COLUMNS, " FROM event_erasures WHERE app_id = $1 AND id = $2");
const NEXT: &str = sql!(
    "SELECT ",
    Erasure::COLUMNS,
    " FROM event_erasures WHERE finished_at IS NULL AND ready AND id > $1 ORDER BY id LIMIT 1"
);
const DUE: &str = "SELECT created_at FROM event_erasures WHERE finished_at IS NULL ORDER BY id LIMIT 1";
const NAMES: &str = "SELECT count(*), count(*) FILTER (WHERE id < $2) FROM event_names WHERE app_id = $1";

/// Has an entity erased once the fact that tells of it is in the log.
pub fn begin(tx: &mut Tx<'_>, app: AppId, entity_type: &str, value: &str) -> Result<ErasureId> {
    let id: ErasureId = tx.new_id();
    tx.run(INSERT, &args![id, app, entity_type, value, tx.now()])?;
    Ok(id)
}

/// Facts come in their order: what was told before this one is in the log now.
pub(crate) fn release(tx: &mut Tx<'_>, due: &Signal, app: AppId, fact: &Fact) -> Result<()> {
    if fact.is::<AppImported>() {
        // What was told before elsewhere is in the log that the app came with.
        fold::move_far_on(tx, app)?;
        tx.run(RELEASE_ALL, &args![app])?;
    } else if let Some(told) = fact.read::<EntityErasureBegun>()? {
        tx.run(RELEASE, &args![app, told.job_id])?;
    } else {
        return Ok(());
    }
    let due = due.clone();
    tx.on_commit(move || due.wake());
    Ok(())
}

/// Where an erasure stands.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum ErasureStatus {
    Scheduled,
    Running,
    Completed,
}

/// How far an erasure is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErasureProgress {
    status: ErasureStatus,
    /// From 0 to 1, by the names of events that are done.
    progress: f64,
}

pub fn progress(tx: &mut Tx<'_>, app: AppId, id: ErasureId) -> Result<ErasureProgress> {
    let found: Erasure = tx.opt(FIND, &args![app, id])?.ok_or_else(|| Error::not_found("erasure"))?;
    let (status, progress) = match (found.finished_at, found.place) {
        (Some(_), _) => (ErasureStatus::Completed, 1.0),
        (None, None) => (ErasureStatus::Scheduled, 0.0),
        (None, Some(Json(place))) => {
            let (all, done) = tx.one::<(u32, u32)>(NAMES, &args![app, place.name()])?;
            (ErasureStatus::Running, f64::from(done) / f64::from(all.max(1)))
        }
    };
    Ok(ErasureProgress { status, progress })
}

/// Does what erasures have left to do, on one node at a time. They are served in turn, so that none waits for another one
/// that cannot go on.
pub(crate) struct Eraser {
    db: Db,
    folder: Folder,
    due: Signal,
    last: Mutex<Option<ErasureId>>,
}

impl Eraser {
    pub(crate) fn new(db: Db, folder: Folder, due: Signal) -> Self {
        Self { db, folder, due, last: Mutex::default() }
    }

    async fn next(&self, last: Option<ErasureId>) -> Result<Option<Erasure>> {
        self.db
            .read(move |tx| {
                let after = last.map(|last| last.to_string()).unwrap_or_default();
                match tx.opt(NEXT, &args![after])? {
                    None if last.is_some() => tx.opt(NEXT, &args![""]),
                    found => Ok(found),
                }
            })
            .await
    }
}

impl Job for Eraser {
    fn name(&self) -> &'static str {
        "event-erasure"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(10)
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.due.listen()]
    }

    async fn run(&self) -> Result<Worked> {
        let mut last = self.last.lock().await;
        let Some(erasure) = self.next(*last).await? else { return Ok(Worked::Nothing) };
        *last = Some(erasure.id);
        // What waits for the fold has to be where it can be found.
        if erasure.place.is_none() && !self.folder.settle(erasure.app).await? {
            return Ok(Worked::Something);
        }
        let looked = erasure.clone();
        let found = self.db.scan(move |tx| search::look(tx, &looked)).await?;
        self.db.write(move |tx| changes::make(tx, &erasure, &found)).await?;
        Ok(Worked::Something)
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        let oldest = self.db.read(|tx| tx.opt::<(Timestamp,)>(DUE, &[])).await?;
        Ok(oldest.map(|(at,)| at))
    }
}
