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
/// By name and parameter, one after the other.
const NEXT_FIRSTS: &str = "SELECT name_id, parameter_id FROM event_firsts WHERE app_id = $1 \
     AND (name_id, parameter_id) > ($2, $3) ORDER BY name_id, parameter_id LIMIT 1";
const OLD_FIRSTS: &str = "SELECT first_at, entity_digest, last_at FROM event_firsts WHERE app_id = $1 AND name_id = $2 \
     AND parameter_id = $3 AND first_at < $4 AND (first_at, entity_digest) > ($5, $6) \
     ORDER BY first_at, entity_digest LIMIT $7";
const SWEEP_FIRSTS: &str = "DELETE FROM event_firsts WHERE app_id = $1 AND entity_digest = ANY($2) AND name_id = $3 \
     AND last_at < $4";
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
            let sweep_ids = move |tx: &mut Tx<'_>| tx.exec(SWEEP_INGEST_IDS, &args![app, before, BATCH]);
            more |= is_full(self.0.write(sweep_ids).await?);
            more |= is_full(self.0.write(move |tx| audit::sweep_chain(tx, app, before, BATCH)).await?);
            if !more {
                self.sweep_firsts(app, before.minus(LAG)).await?;
            }
        }
        Ok(Worked::some_if(more))
    }
}

impl EventRetention {
    /// Looks through all that began before then, without an index that every fold would have to keep: so it is done when
    /// nothing else is left.
    async fn sweep_firsts(&self, app: AppId, before: Timestamp) -> Result<()> {
        let mut last = (i64::MIN, i64::MIN);
        loop {
            let next = move |tx: &mut Tx<'_>| tx.opt::<(i64, i64)>(NEXT_FIRSTS, &args![app, last.0, last.1]);
            let Some((name, parameter)) = self.0.scan(next).await? else { return Ok(()) };
            last = (name, parameter);
            let (mut at, mut entity) = (Timestamp::MIN, String::new());
            loop {
                let after = (at, entity);
                let look = move |tx: &mut Tx<'_>| old_firsts(tx, app, (name, parameter), before, &after);
                let page: Vec<FirstOccurrence> = self.0.scan(look).await?;
                let Some(end) = page.last() else { break };
                (at, entity) = (end.first_at, end.entity.clone());
                let old: Vec<String> =
                    page.into_iter().filter(|first| first.last_at < before).map(|first| first.entity).collect();
                if !old.is_empty() {
                    self.0.write(move |tx| tx.run(SWEEP_FIRSTS, &args![app, old, name, before])).await?;
                }
            }
        }
    }

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

/// When an event happened to an entity.
struct FirstOccurrence {
    first_at: Timestamp,
    entity: String,
    last_at: Timestamp,
}

/// The next ones of a name and a parameter that began before an instant.
fn old_firsts(
    tx: &mut Tx<'_>,
    app: AppId,
    (name, parameter): (i64, i64),
    before: Timestamp,
    (at, entity): &(Timestamp, String),
) -> Result<Vec<FirstOccurrence>> {
    let found = tx.all(OLD_FIRSTS, &args![app, name, parameter, before, *at, entity.as_str(), BATCH])?;
    Ok(found.into_iter().map(|(first_at, entity, last_at)| FirstOccurrence { first_at, entity, last_at }).collect())
}

fn is_full(changed: u64) -> bool {
    i64::try_from(changed).unwrap_or(i64::MAX) >= BATCH
}
