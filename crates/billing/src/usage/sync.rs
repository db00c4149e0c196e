//! Usage on its way to whoever is paid: metered metrics, an hour after the first change since the last time and at the
//! period's end, or when somebody asks. Set semantics: what is sent replaces what was sent before.

use std::time::Duration;

use ::store::{Tx, args};
use kernel::{AppId, Authored, Code, Error, Result, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use spine::{Job, Worked, emit};
use tenancy::apps;

use super::store::{self, DueCounter, NEXT_SYNC, SYNC_DUE};
use crate::{
    Billing,
    catalog::plans::QuotaPolicy,
    entitlements::{self, Terms},
    facts::{DriftData, UsageDriftResolved, UsageDriftUnrecoverable},
    providers::stripe,
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

/// A counter as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Total {
    pub(crate) metric: String,
    pub(crate) used: i64,
    pub(crate) period: Period,
}

/// What is to be sent to a provider outside, and for which customer there.
struct Outgoing {
    customer: String,
    totals: Vec<Total>,
}

impl Billing {
    /// `POST /usage/sync/{workspace_id}`: the present period's metered metrics, now.
    pub(super) async fn sync(&self, who: &impl Authored, app: AppId, tenant: TenantId) -> Result<SyncAnswer> {
        let (sent_here, outgoing) = self.tenancy.db.by(who).write(move |tx| gather(tx, app, tenant)).await?;
        let mut answer = SyncAnswer { synced_metrics: sent_here, failed: Vec::new() };
        let Some(Outgoing { customer, totals }) = outgoing else { return Ok(answer) };
        for total in totals {
            match self.send(app, tenant, &customer, &total).await? {
                None => answer.synced_metrics += 1,
                Some(error) => answer.failed.push(FailedSync { metric: total.metric, error }),
            }
        }
        Ok(answer)
    }

    /// Sends a total to the provider and notes what came of it; what went wrong, if anything did.
    async fn send(&self, app: AppId, tenant: TenantId, customer: &str, total: &Total) -> Result<Option<String>> {
        let pushed = self.push_total(app, customer, total).await;
        let outcome = pushed.map_err(|stuck| Error::from(stuck).public().to_owned());
        let sent = total.clone();
        let failed = outcome.clone().err();
        self.tenancy.db.write(move |tx| note_outcome(tx, app, tenant, &sent, &outcome)).await?;
        Ok(failed)
    }
}

/// Marks what the sandbox is told by that alone; the rest has to be sent.
fn gather(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<(usize, Option<Outgoing>)> {
    let terms = entitlements::terms(tx, app, tenant)?;
    let mut quotas = terms.quotas(tx.now());
    quotas.retain(|quota| is_billed(&terms, &quota.metric, tx.now()));
    let period = terms.period(tx.now());
    super::hold(tx, app, tenant, period, &quotas)?;
    let metrics: Vec<String> = quotas.into_iter().map(|quota| quota.metric).collect();
    let Some(there) = stripe::find(tx, app, tenant)? else {
        store::mark_synced(tx, app, tenant, period.start, &metrics)?;
        return Ok((metrics.len(), None));
    };
    let used = super::used(tx, app, tenant, period)?;
    let total = |metric: String| Total { used: used.get(&metric).copied().unwrap_or(0), metric, period };
    let totals = metrics.into_iter().map(total).collect();
    Ok((0, Some(Outgoing { customer: there.customer, totals })))
}

/// Pushes of a total that the provider then has otherwise.
const HEALINGS: u32 = 5;

/// What a push came to: sent, sent and seen otherwise over there, or not sent.
fn note_outcome(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    total: &Total,
    outcome: &Result<Option<i64>, String>,
) -> Result<()> {
    let Total { metric, used, period } = total;
    let seen = match outcome {
        Err(error) => {
            let again = tx.now().plus(GATHERED_FOR);
            return store::mark_failed(tx, app, tenant, metric, period.start, error, again);
        }
        Ok(seen) => *seen,
    };
    let before = store::drift(tx, app, tenant, metric, period.start)?;
    let again = tx.now().plus(GATHERED_FOR);
    store::mark_sent(tx, app, tenant, metric, period.start, *used, again)?;
    let data = |actual| DriftData { workspace_id: tenant, metric: metric.clone(), expected: *used, actual };
    match (seen.filter(|seen| seen != used), before) {
        (None, None) => Ok(()),
        (None, Some((_, actual))) => {
            store::set_drift(tx, app, tenant, metric, period.start, None, None)?;
            emit(tx, (app, tenant), &UsageDriftResolved(data(actual)))
        }
        (Some(actual), before) => {
            let attempts = before.map_or(0, |(attempts, _)| attempts) + 1;
            if attempts > HEALINGS {
                store::set_drift(tx, app, tenant, metric, period.start, None, None)?;
                return emit(tx, (app, tenant), &UsageDriftUnrecoverable(data(actual)));
            }
            let again = tx.now().plus(Duration::from_mins(1 << (attempts - 1)));
            store::set_drift(tx, app, tenant, metric, period.start, Some((attempts, actual)), Some(again))
        }
    }
}

/// Sends what is due.
pub struct Syncing(pub Billing);

impl Job for Syncing {
    fn name(&self) -> &'static str {
        "usage-sync"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(30)
    }

    async fn run(&self) -> Result<Worked> {
        let db = &self.0.tenancy.db;
        let now = db.clock().now();
        let due = db.read(move |tx| tx.all::<DueCounter>(SYNC_DUE, &args![now, BATCH])).await?;
        let some = !due.is_empty();
        for DueCounter { app, tenant, metric, period, used } in due {
            let total = Total { metric, used, period };
            let noted = total.clone();
            if let Some(customer) = db.write(move |tx| send_here(tx, app, tenant, &noted)).await? {
                self.0.send(app, tenant, &customer, &total).await?;
            }
        }
        Ok(Worked::some_if(some))
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        let next: Option<(Option<Timestamp>,)> = self.0.tenancy.db.get_one(NEXT_SYNC, &[]).await?;
        Ok(next.and_then(|(at,)| at))
    }
}

/// The customer at a provider outside that the total is for; the sandbox is told by marking it.
fn send_here(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, total: &Total) -> Result<Option<String>> {
    let found = apps::get(tx, app).and_then(|app| subscriptions::running(tx, &app, tenant));
    match found {
        Ok(Some(subscription)) if subscription.agreement.runs_at_provider() => {
            if let Some(there) = stripe::find(tx, app, tenant)? {
                return Ok(Some(there.customer));
            }
            let metric = std::slice::from_ref(&total.metric);
            store::mark_synced(tx, app, tenant, total.period.start, metric).map(|()| None)
        }
        Ok(_) => store::forget_sync(tx, app, tenant).map(|()| None),
        // It went meanwhile, and its rows are about to.
        Err(error) if error.code() == Code::NotFound => store::forget_sync(tx, app, tenant).map(|()| None),
        Err(error) => Err(error),
    }
}
