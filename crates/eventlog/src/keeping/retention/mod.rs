//! Deletes what is older than its app keeps it, a few rows or blocks at a time and the apps in turn. Buckets stay.
//!
//! What an entity did first is kept as long as an event of that name and entity is: searches and erasures find the events
//! of an entity by it.

mod firsts;

use std::time::Duration;

use kernel::{AppId, Code, Result, Timestamp};
use spine::{Job, Worked};
use store::{Db, Tx, args};

use self::firsts::Looks;
use super::cutoff;
use crate::{
    audit, ingest,
    storage::{self, Series},
};

/// Rows that one transaction deletes.
const BATCH: usize = 200;
/// Blocks, or parts of them, that are deleted before other apps have their turn.
const BLOCKS: usize = 20;

/// The fold writes the last time of an entity when it has grown by this much.
const LAG: Duration = Duration::from_mins(10);

const APPS: &str = "SELECT app_id, retention_days FROM event_settings WHERE retention_days IS NOT NULL";
const NOTE: &str = "UPDATE event_settings SET swept_before = $2 WHERE app_id = $1 \
                    AND (swept_before IS NULL OR swept_before < $2)";
const NAMES: &str = "SELECT id FROM event_names WHERE app_id = $1";
const IS_OLD: &str = "SELECT 1 FROM event_rows WHERE app_id = $1 AND name_id = $2 AND happened_at < $3 LIMIT 1";
const SWEEP_ROWS: &str = "DELETE FROM event_rows WHERE id IN \
     (SELECT id FROM event_rows WHERE app_id = $1 AND name_id = $4 AND happened_at < $2 LIMIT $3) RETURNING ingest_id";

/// Runs on one node at a time.
pub(crate) struct EventRetention {
    db: Db,
    firsts: Looks,
}

impl Job for EventRetention {
    fn name(&self) -> &'static str {
        "event-retention"
    }

    fn every(&self) -> Duration {
        Duration::from_hours(1)
    }

    fn is_upkeep(&self) -> bool {
        true
    }

    async fn run(&self) -> Result<Worked> {
        let now = self.db.clock().now();
        let mut more = false;
        for (app, days) in self.db.read(|tx| tx.all::<(AppId, i64)>(APPS, &[])).await? {
            let before = cutoff(u32::try_from(days).unwrap_or(u32::MAX), now);
            // What an entity did first goes after what it did last.
            let is_left = self.sweep_events(app, before).await?;
            more |= is_left || self.firsts.sweep(&self.db, app, before.minus(LAG)).await?;
        }
        Ok(Worked::some_if(more))
    }
}

impl EventRetention {
    pub(crate) fn new(db: Db) -> Self {
        Self { db, firsts: Looks::default() }
    }

    /// Deletes some of an app's old events and of what is kept with them; whether there may be more.
    async fn sweep_events(&self, app: AppId, before: Timestamp) -> Result<bool> {
        let mut more = false;
        // Noted before anything goes, so that nothing that is missing looks as if it had been taken away.
        self.db.write(move |tx| tx.run(NOTE, &args![app, before])).await?;
        for name in self.db.scan(move |tx| names_with_old_rows(tx, app, before)).await? {
            more |= is_full(self.db.write(move |tx| sweep_rows(tx, Series { app, name }, before)).await?);
        }
        more |= self.sweep_blocks(app, before).await?;
        more |= is_full(self.db.write(move |tx| audit::sweep_chain(tx, app, before, count(BATCH))).await?);
        Ok(more)
    }

    /// Whether there may be more.
    async fn sweep_blocks(&self, app: AppId, before: Timestamp) -> Result<bool> {
        for _ in 0..BLOCKS {
            match self.db.scan(move |tx| storage::next_old(tx, app, before, BATCH)).await {
                Ok(Some(old)) => self.db.write(move |tx| storage::delete_older(tx, &old)).await?,
                Ok(None) => return Ok(false),
                // It goes as a whole when all of it is old.
                Err(error) if error.code() == Code::EventsDamaged => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// How many were deleted.
fn sweep_rows(tx: &mut Tx<'_>, series: Series, before: Timestamp) -> Result<u64> {
    storage::rows_rewritten(tx, series)?;
    let swept: Vec<(Option<String>,)> = tx.all(SWEEP_ROWS, &args![series.app, before, count(BATCH), series.name])?;
    storage::rows_deleted(tx, series, count(swept.len()))?;
    ingest::forget(tx, series.app, swept.iter().filter_map(|(ingest_id,)| ingest_id.as_deref()))?;
    Ok(swept.len() as u64)
}

fn names_with_old_rows(tx: &mut Tx<'_>, app: AppId, before: Timestamp) -> Result<Vec<i64>> {
    let mut old = Vec::new();
    for (name,) in tx.all::<(i64,)>(NAMES, &args![app])? {
        if tx.exists(IS_OLD, &args![app, name, before])? {
            old.push(name);
        }
    }
    Ok(old)
}

fn is_full(changed: u64) -> bool {
    changed >= BATCH as u64
}

fn count(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}
