//! What is known about the use of flags: keys that were asked for without a flag, counts that clients report, places
//! in code that ask. Gathered in memory, bounded, and written in batches, so that evaluation itself never writes. All of
//! it may be lost, and nobody who looks at a flag depends on it being written.

mod gathered;
pub mod http;
mod report;
mod store;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ::store::{Db, Tx};
use kernel::{AppId, Code, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use spine::{Job, Worked};

use crate::model::{FlagId, ValueType};
use gathered::Gathered;
use report::UsageReport;

/// Cheap to clone; clones gather together.
#[derive(Clone)]
pub(crate) struct Usage(Arc<UsageInner>);

struct UsageInner {
    db: Db,
    gathered: Mutex<Gathered>,
    /// One writer at a time, so that what a list shows includes what was being written.
    writing: tokio::sync::Mutex<()>,
}

/// Rows written in one transaction, so that nobody waits for it. Looking for rows that must go counts as one too.
const CHUNK: usize = 100;
/// How long whoever looks at flags waits for what was gathered about them.
const PATIENCE: Duration = Duration::from_secs(1);

impl Usage {
    pub(crate) fn new(db: Db) -> Self {
        Self(Arc::new(UsageInner { db, gathered: Mutex::default(), writing: tokio::sync::Mutex::default() }))
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.0.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        self.0.db.clock().now()
    }

    /// Whether it is kept. What finds no room is counted as dropped.
    fn take(&self, report: Option<UsageReport>) -> bool {
        let Some(report) = report else { return false };
        let taken = self.gathered().take(report);
        if !taken {
            dropped(1);
        }
        taken
    }

    /// A key that no flag has was asked for.
    pub(crate) fn discover(&self, app: AppId, key: &str, value_type: Option<ValueType>) -> bool {
        self.take(UsageReport::sighted(app, key, value_type, self.now()))
    }

    /// A flag was asked for.
    pub(crate) fn used(&self, app: AppId, key: &str, at: Timestamp) {
        if !self.gathered().used(app, key, at) {
            dropped(1);
        }
    }

    /// Whether counts of this instant would be kept.
    pub(crate) fn is_recent(&self, at: Timestamp) -> bool {
        !report::is_forgotten(at, self.now())
    }

    /// Evaluations that a client counted, which are recent.
    pub(crate) fn evaluated(&self, app: AppId, key: &str, variant: i32, at: Timestamp, count: i64) -> bool {
        self.used(app, key, at);
        self.take(Some(UsageReport::evaluated(app, key, variant, at, count)))
    }

    pub(crate) fn called_from(&self, app: AppId, key: &str, file: &str, line: i64) -> bool {
        self.take(UsageReport::called_from(app, key, file, line, self.now()))
    }

    /// Writes what was gathered so far, of one app or of all, in small transactions. What cannot be written for now is
    /// kept for the next time.
    async fn write(&self, only: Option<AppId>) -> Result<()> {
        let _alone = self.0.writing.lock().await;
        let mut reports = self.gathered().take_out(only).peekable();
        while reports.peek().is_some() {
            let chunk = next_chunk(&mut reports);
            if let Err(error) = self.write_chunk(&chunk).await {
                for report in chunk.iter().cloned().chain(reports) {
                    self.take(Some(report));
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// A report that the store refuses is dropped, and the others of its chunk are written without it.
    async fn write_chunk(&self, chunk: &Arc<[UsageReport]>) -> Result<()> {
        let together = Arc::clone(chunk);
        let written = self.0.db.write(move |tx| store::write(tx, &together)).await;
        let Err(refused) = written else { return Ok(()) };
        if refused.code() != Code::Internal {
            return Err(refused);
        }
        let each = Arc::clone(chunk);
        let lost = self.0.db.write(move |tx| {
            let refuses =
                |tx: &mut Tx<'_>, one| tx.savepoint(|tx| store::write(tx, std::slice::from_ref(one))).is_err();
            Ok(each.iter().filter(|one| refuses(tx, one)).count())
        });
        let lost = lost.await?;
        tracing::warn!(lost, error = ?refused, "reports about the use of flags could not be stored");
        dropped(lost as u64);
        Ok(())
    }

    /// Writes what is known of an app before somebody looks at it. They see what is stored even if that fails or takes
    /// long, and a write that was begun goes to its end.
    async fn catch_up(&self, app: AppId) {
        let usage = self.clone();
        let write = tokio::spawn(async move { usage.write(Some(app)).await });
        match tokio::time::timeout(PATIENCE, write).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => tracing::warn!(?error, "the use of flags could not be written"),
            Ok(Err(_)) | Err(_) => tracing::warn!("the use of flags is shown as it was last written"),
        }
    }

    /// What is known of all flags of an app, by key, and the keys that no flag has.
    pub(crate) async fn of_app(&self, app: AppId) -> Result<(HashMap<String, Used>, Vec<Discovery>)> {
        self.catch_up(app).await;
        self.0.db.scan(move |tx| Ok((store::used(tx, app, None)?, store::discoveries(tx, app)?))).await
    }

    pub(crate) async fn of_flag(&self, app: AppId, key: &str) -> Result<Used> {
        self.catch_up(app).await;
        let key = key.to_owned();
        self.0.db.read(move |tx| Ok(store::used(tx, app, Some(&key))?.remove(&key).unwrap_or_default())).await
    }

    /// Forgets old counts, a few at a time.
    async fn forget(&self) -> Result<()> {
        let before = report::first_day(self.now());
        while self.0.db.write(move |tx| store::forget(tx, before)).await? > 0 {}
        Ok(())
    }

    pub(crate) fn writer(&self) -> Writer {
        Writer(self.clone())
    }
}

/// The next reports that together are little work.
fn next_chunk(reports: &mut impl Iterator<Item = UsageReport>) -> Arc<[UsageReport]> {
    let mut weight = 0;
    let mut chunk = Vec::new();
    for report in reports {
        weight += report.weight();
        chunk.push(report);
        if weight >= CHUNK {
            break;
        }
    }
    chunk.into()
}

fn dropped(count: u64) {
    metrics::counter!("tenantry_flag_reports_dropped_total").increment(count);
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
        self.0.write(None).await?;
        // A busy node always has more; that waits for the next minute.
        self.0.forget().await.map(|()| Worked::Nothing)
    }

    async fn stopped(&self) {
        if let Err(error) = self.0.write(None).await {
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
