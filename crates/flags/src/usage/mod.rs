//! What is known about the use of flags: keys that were asked for without a flag, counts that clients report, places
//! in code that ask. Gathered in memory, bounded, and written in batches, so that evaluation itself never writes.

mod gathered;
pub mod http;
mod store;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ::store::Db;
use kernel::{AppId, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use spine::{Job, Worked};

use crate::model::{FlagId, ValueType};
use gathered::Gathered;

/// Cheap to clone; clones gather together.
#[derive(Clone)]
pub(crate) struct Usage(Arc<UsageInner>);

struct UsageInner {
    db: Db,
    gathered: Mutex<Gathered>,
    /// One writer at a time, so that what a list shows includes what was being written.
    writing: tokio::sync::Mutex<()>,
}

impl Usage {
    pub(crate) fn new(db: Db) -> Self {
        Self(Arc::new(UsageInner { db, gathered: Mutex::default(), writing: tokio::sync::Mutex::default() }))
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.0.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A key that no flag has was asked for.
    pub(crate) fn discover(&self, app: AppId, key: &str, value_type: Option<ValueType>) {
        let now = self.0.db.clock().now();
        self.gathered().discover(app, key, value_type, now);
    }

    /// A flag was asked for.
    pub(crate) fn used(&self, app: AppId, key: &str, at: Timestamp) {
        self.gathered().used(app, key, at);
    }

    pub(crate) fn evaluated(&self, app: AppId, key: &str, variant: i32, at: Timestamp, count: i64) {
        self.gathered().evaluated(app, key, variant, at, count);
    }

    pub(crate) fn called_from(&self, app: AppId, key: &str, file: &str, line: i64) {
        let now = self.0.db.clock().now();
        self.gathered().called_from(app, key, file, line, now);
    }

    /// Writes what was gathered so far. What cannot be written is kept for the next time.
    pub(crate) async fn write(&self) -> Result<Worked> {
        let _alone = self.0.writing.lock().await;
        let batch = std::mem::take(&mut *self.gathered());
        if batch.is_empty() {
            return Ok(Worked::Nothing);
        }
        let batch = Arc::new(batch);
        let shared = Arc::clone(&batch);
        let written = self.0.db.write(move |tx| store::write(tx, &shared)).await;
        if written.is_err() {
            self.gathered().take_back(&batch);
        }
        written.map(|()| Worked::Something)
    }

    /// What is known of all flags of an app, by key, and the keys that no flag has.
    pub(crate) async fn of_app(&self, app: AppId) -> Result<(HashMap<String, Used>, Vec<Discovery>)> {
        self.write().await?;
        self.0.db.scan(move |tx| Ok((store::used(tx, app, None)?, store::discoveries(tx, app)?))).await
    }

    pub(crate) async fn of_flag(&self, app: AppId, key: &str) -> Result<Used> {
        self.write().await?;
        let key = key.to_owned();
        self.0.db.read(move |tx| Ok(store::used(tx, app, Some(&key))?.remove(&key).unwrap_or_default())).await
    }

    pub(crate) fn writer(&self) -> Writer {
        Writer(self.clone())
    }
}

/// Writes down once a minute what was gathered.
pub(crate) struct Writer(Usage);

impl Job for Writer {
    fn name(&self) -> &'static str {
        "flags-usage"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(60)
    }

    async fn run(&self) -> Result<Worked> {
        // A busy node always has more; that waits for the next minute.
        self.0.write().await.map(|_| Worked::Nothing)
    }

    async fn stopped(&self) {
        if let Err(error) = self.0.write().await {
            tracing::warn!(?error, "what was gathered about the use of flags could not be written");
        }
    }
}

/// What the store knows of one flag's use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Used {
    variants: Vec<VariantUsage>,
    last_evaluated_at: Option<Timestamp>,
    call_sites: Vec<CallSite>,
}

/// A flag that was not asked for so long is stale.
const STALE_AFTER: Duration = Duration::from_secs(30 * 24 * 3600);

/// What is known of a flag's use. Counts are those that clients report, of the last 90 days.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlagUsage {
    pub evaluations: i64,
    pub variants: Vec<VariantUsage>,
    /// The last report, or the last time that the flag was asked for by its key; `null` when never.
    pub last_evaluated_at: Option<Timestamp>,
    pub never_evaluated: bool,
    /// Not evaluated for 30 days, nor created within them.
    pub stale: bool,
    pub call_sites: Vec<CallSite>,
}

impl FlagUsage {
    pub(crate) fn new(used: Used, created_at: Timestamp, now: Timestamp) -> Self {
        let Used { variants, last_evaluated_at, call_sites } = used;
        let alive = last_evaluated_at.unwrap_or(created_at).max(created_at);
        Self {
            evaluations: variants.iter().map(|variant| variant.evaluations).sum(),
            variants,
            last_evaluated_at,
            never_evaluated: last_evaluated_at.is_none(),
            stale: now.since(alive) > STALE_AFTER,
            call_sites,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VariantUsage {
    pub variant_index: i64,
    pub evaluations: i64,
}

/// A place in code that asks for the flag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallSite {
    pub file: String,
    pub line: i64,
    pub last_seen_at: Timestamp,
}

/// A key that was asked for and that no flag has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DiscoveredFlag")]
pub struct Discovery {
    /// Always `null`: there is no flag yet.
    pub id: Option<FlagId>,
    pub key: String,
    /// Always true.
    pub discovered: bool,
    /// What clients say that they expect.
    pub value_type: Option<ValueType>,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
    pub sightings: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_stale_when_nobody_asked_for_a_month() {
        let day = |number: i64| Timestamp::from_seconds(number * 86_400);
        let stale = |last: Option<i64>, created: i64| {
            let used = Used { last_evaluated_at: last.map(day), ..Used::default() };
            FlagUsage::new(used, day(created), day(100)).stale
        };
        assert!(stale(None, 69) && !stale(None, 71));
        assert!(stale(Some(60), 10) && !stale(Some(99), 10));
        assert!(!stale(Some(60), 95));
    }
}
