//! Usage on its way to whoever is paid: metered metrics, an hour after the first change since the last time and at the
//! period's end, or when somebody asks. Set semantics: what is sent replaces what was sent before.

use std::time::Duration;

use ::store::{Db, Tx, args};
use kernel::{AppId, Code, Result, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use spine::{Job, Worked};
use tenancy::apps;

use super::store::{self, DueCounter, NEXT_SYNC, SYNC_DUE};
use crate::{
    catalog::plans::QuotaPolicy,
    entitlements::{self, Terms},
    subscriptions::{self, Agreement, Period},
};

/// How long changes are gathered.
const GATHERED_FOR: Duration = Duration::from_hours(1);
/// Counters per run.
const BATCH: i64 = 100;

/// What was sent to the payment provider.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncAnswer {
    pub synced_metrics: usize,
    pub failed: Vec<FailedSync>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FailedSync {
    pub metric: String,
    pub error: String,
}

/// Whether what is used of a metric is billed somewhere.
fn is_billed(terms: &Terms, metric: &str, now: Timestamp) -> bool {
    terms.agreement.as_ref().is_some_and(Agreement::runs_at_provider)
        && terms.quota(metric, now).is_some_and(|quota| quota.policy == QuotaPolicy::Metered)
}

/// When a change of a counter is due to be sent.
fn due_at(period: Period, now: Timestamp) -> Timestamp {
    let gathered = now.plus(GATHERED_FOR);
    if period.end > now { gathered.min(period.end) } else { gathered }
}

/// Notes that a counter changed, where that is billed.
pub(super) fn note(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    terms: &Terms,
    metric: &str,
    period: Period,
) -> Result<()> {
    let now = tx.now();
    if !is_billed(terms, metric, now) {
        return Ok(());
    }
    store::note_sync(tx, app, tenant, metric, period.start, due_at(period, now))
}

/// `POST /usage/sync/{workspace_id}`: the present period's metered metrics, now.
pub fn sync(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<SyncAnswer> {
    let terms = entitlements::terms(tx, app, tenant)?;
    let mut quotas = terms.quotas(tx.now());
    quotas.retain(|quota| is_billed(&terms, &quota.metric, tx.now()));
    let period = terms.period(tx.now());
    super::hold(tx, app, tenant, period, &quotas)?;
    let metrics: Vec<String> = quotas.into_iter().map(|quota| quota.metric).collect();
    store::mark_synced(tx, app, tenant, period.start, &metrics)?;
    Ok(SyncAnswer { synced_metrics: metrics.len(), failed: Vec::new() })
}

/// Sends what is due, each counter in a transaction of its own.
pub struct Syncing {
    pub db: Db,
}

impl Job for Syncing {
    fn name(&self) -> &'static str {
        "usage-sync"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(30)
    }

    async fn run(&self) -> Result<Worked> {
        let now = self.db.clock().now();
        let due = self.db.read(move |tx| tx.all::<DueCounter>(SYNC_DUE, &args![now, BATCH])).await?;
        let some = !due.is_empty();
        for DueCounter { app, tenant, metric, period_start } in due {
            self.db.write(move |tx| send(tx, app, tenant, &metric, period_start)).await?;
        }
        Ok(Worked::some_if(some))
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        let next: Option<(Option<Timestamp>,)> = self.db.get_one(NEXT_SYNC, &[]).await?;
        Ok(next.and_then(|(at,)| at))
    }
}

fn send(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, metric: &str, start: Timestamp) -> Result<()> {
    let found = apps::get(tx, app).and_then(|app| subscriptions::running(tx, &app, tenant));
    match found {
        Ok(Some(subscription)) if subscription.agreement.runs_at_provider() => {
            store::mark_synced(tx, app, tenant, start, &[metric.to_owned()])
        }
        Ok(_) => store::forget_sync(tx, app, tenant),
        // It went meanwhile, and its rows are about to.
        Err(error) if error.code() == Code::NotFound => store::forget_sync(tx, app, tenant),
        Err(error) => Err(error),
    }
}
