//! Deletes what is older than its app keeps it, a few rows or blocks at a time. Buckets stay.
//!
//! What an entity did first is kept as long as an event of that name and entity is: searches and erasures find the events
//! of an entity by it.

use std::time::Duration;

use kernel::{AppId, Code, Result, Timestamp};
use spine::{Job, Worked};
use store::{Db, Tx, args};

use super::cutoff;
use crate::{
    audit,
    storage::{self, Series},
};

/// Rows that one transaction deletes.
const BATCH: i64 = 200;

/// The fold writes the last time of an entity when it has grown by this much.
const LAG: Duration = Duration::from_mins(10);

const APPS: &str = "SELECT app_id, retention_days FROM event_settings WHERE retention_days IS NOT NULL";
const NOTE: &str = "UPDATE event_settings SET swept_before = $2 WHERE app_id = $1 \
                    AND (swept_before IS NULL OR swept_before < $2)";
const NAMES: &str = "SELECT id FROM event_names WHERE app_id = $1";
const IS_OLD: &str = "SELECT 1 FROM event_rows WHERE app_id = $1 AND name_id = $2 AND happened_at < $3 LIMIT 1";
const SWEEP_ROWS: &str = "DELETE FROM event_rows WHERE id IN \
     (SELECT id FROM event_rows WHERE app_id = $1 AND name_id = $4 AND happened_at < $2 LIMIT $3)";
/// Of first occurrences that are older than the column.
const DATE_FIRSTS: &str = "UPDATE event_firsts SET last_at = $2 WHERE (app_id, entity_digest, name_id) IN \
     (SELECT app_id, entity_digest, name_id FROM event_firsts WHERE app_id = $1 AND last_at IS NULL LIMIT $3)";
const SWEEP_FIRSTS: &str = "DELETE FROM event_firsts WHERE (app_id, entity_digest, name_id) IN \
     (SELECT app_id, entity_digest, name_id FROM event_firsts WHERE app_id = $1 AND last_at < $2 LIMIT $3)";
const SWEEP_INGEST_IDS: &str = "DELETE FROM event_ingest_ids WHERE (app_id, digest) IN \
     (SELECT app_id, digest FROM event_ingest_ids WHERE app_id = $1 AND happened_at < $2 LIMIT $3)";

/// Runs on one node at a time.
pub(crate) struct EventRetention(pub(crate) Db);

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
        let now = self.0.clock().now();
        let mut more = false;
        for (app, days) in self.0.read(|tx| tx.all::<(AppId, i64)>(APPS, &[])).await? {
            let before = cutoff(u32::try_from(days).unwrap_or(u32::MAX), now);
            // Noted before anything goes, so that nothing that is missing looks as if it had been taken away.
            self.0.write(move |tx| tx.run(NOTE, &args![app, before])).await?;
            for name in self.0.scan(move |tx| names_with_old_rows(tx, app, before)).await? {
                more |= is_full(self.0.write(move |tx| sweep_rows(tx, Series { app, name }, before)).await?);
            }
            more |= self.sweep_blocks(app, before).await?;
            let surely_before = before.minus(LAG);
            for (statement, at) in [(DATE_FIRSTS, now), (SWEEP_FIRSTS, surely_before), (SWEEP_INGEST_IDS, before)] {
                let sweep = move |tx: &mut Tx<'_>| tx.exec(statement, &args![app, at, BATCH]);
                more |= is_full(self.0.write(sweep).await?);
            }
            more |= is_full(self.0.write(move |tx| audit::sweep_chain(tx, app, before, BATCH)).await?);
        }
        Ok(Worked::some_if(more))
    }
}

impl EventRetention {
    /// Whether there may be more.
    async fn sweep_blocks(&self, app: AppId, before: Timestamp) -> Result<bool> {
        if self.0.write(move |tx| storage::drop_before(tx, app, before)).await? {
            return Ok(true);
        }
        match self.0.scan(move |tx| storage::cut_at(tx, app, before)).await {
            Ok(Some((block, left))) => {
                self.0.write(move |tx| storage::rewrite(tx, &block, left.as_ref())).await?;
                Ok(true)
            }
            Ok(None) => Ok(false),
            // It goes as a whole when all of it is old.
            Err(error) if error.code() == Code::EventsDamaged => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn sweep_rows(tx: &mut Tx<'_>, series: Series, before: Timestamp) -> Result<u64> {
    storage::rows_rewritten(tx, series)?;
    let swept = tx.exec(SWEEP_ROWS, &args![series.app, before, BATCH, series.name])?;
    storage::rows_deleted(tx, series, i64::try_from(swept).unwrap_or(i64::MAX))?;
    Ok(swept)
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
    i64::try_from(changed).unwrap_or(i64::MAX) >= BATCH
}
