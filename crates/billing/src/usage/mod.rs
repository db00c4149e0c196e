//! Usage: how much a workspace used of what in a billing period, and how much its plan includes. An event counts once, in the
//! period it lies in; of all that arrive at once exactly one sees a quota used up.

pub mod batch;
pub mod http;
mod ingest;
pub mod rules;
pub mod signals;
mod store;
mod sync;

use std::collections::{BTreeMap, HashMap};

use ::store::{Ingestor, Tx};
use kernel::{AppId, Error, Result, TenantId, id_kinds};
use spine::emit;

pub use ingest::{Recorded, UsageIngest, UsageRow};
pub use rules::{MetricUsage, QuotaSnapshot, UsageSnapshot};
pub use signals::{UsageSignal, UsageSignals};
pub(crate) use sync::Total;
pub use sync::{SyncAnswer, Syncing};

use self::store::Counter;
use crate::{
    catalog::plans::{Quota, QuotaPolicy},
    entitlements::{self, Terms, rules::Usage},
    facts::{GaugeSet, QuotaExhausted, UsageVoided},
    subscriptions::Period,
};

id_kinds! {
    UsageEventId(UsageEventKind) = "usage";
    /// A transaction that made rows.
    UsageBatchId(UsageBatchKind) = "usagebatch";
}

/// The way of usage into the database.
pub type UsageIngestor = Ingestor<UsageIngest>;

/// How much was used of each metric in a period.
pub(crate) fn used(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, period: Period) -> Result<Usage> {
    let counters = store::counters(tx, app, tenant, period)?;
    Ok(counters.into_iter().map(|counter| (counter.metric, counter.used)).collect())
}

/// The same for many workspaces of an app, each in its own present period.
pub(crate) fn used_of(
    tx: &mut Tx<'_>,
    app: AppId,
    terms: &HashMap<TenantId, Terms>,
) -> Result<BTreeMap<TenantId, Usage>> {
    let (tenants, now): (Vec<TenantId>, _) = (terms.keys().copied().collect(), tx.now());
    let mut used: BTreeMap<TenantId, Usage> = BTreeMap::new();
    for (tenant, counter) in store::newest_counters(tx, app, &tenants)? {
        let present = terms.get(&tenant).map(|terms| terms.period(now).start);
        if counter.gauge || present == Some(counter.period_start) {
            used.entry(tenant).or_default().insert(counter.metric, counter.used);
        }
    }
    Ok(used)
}

/// Holds the counters of these quotas until this transaction ends, making those that are missing.
pub(crate) fn hold(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, period: Period, quotas: &[Quota]) -> Result<()> {
    if quotas.is_empty() {
        return Ok(());
    }
    let known = used(tx, app, tenant, period)?;
    let mut metrics: Vec<&str> = quotas.iter().map(|quota| quota.metric.as_str()).collect();
    metrics.sort_unstable();
    let rows = metrics.into_iter().map(|metric| (metric, known.get(metric).copied()));
    store::hold(tx, app, tenant, period, rows)
}

/// Tells of metered quotas that are used up, once for each metric and period.
pub(crate) fn tell_used_up(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    period: Period,
    quotas: &[Quota],
) -> Result<()> {
    let metered: Vec<&Quota> = quotas.iter().filter(|quota| quota.policy == QuotaPolicy::Metered).collect();
    if metered.is_empty() {
        return Ok(());
    }
    let used = used(tx, app, tenant, period)?;
    for quota in metered.into_iter().filter(|quota| quota.is_used_up(&used)) {
        let count = used.get(&quota.metric).copied().unwrap_or(0);
        tell_one_used_up(tx, app, tenant, period, quota, count)?;
    }
    Ok(())
}

fn tell_one_used_up(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    period: Period,
    quota: &Quota,
    used: i64,
) -> Result<()> {
    if !store::mark_exhausted(tx, app, tenant, &quota.metric, period)? {
        return Ok(());
    }
    let fact = QuotaExhausted {
        workspace_id: tenant,
        metric: quota.metric.clone(),
        used,
        limit: quota.limit,
        period_start: period.start,
        period_end: period.end,
    };
    emit(tx, (app, tenant), &fact)
}

/// How a metric stands against its quota; `None` when there is none.
pub fn quota(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, metric: &str) -> Result<Option<QuotaSnapshot>> {
    let terms = entitlements::terms(tx, app, tenant)?;
    let Some(quota) = terms.quota(metric, tx.now()) else { return Ok(None) };
    let used = used(tx, app, tenant, terms.period(tx.now()))?;
    Ok(Some(QuotaSnapshot::of(&quota, used.get(metric).copied().unwrap_or(0))))
}

/// Every metric that was used in the present period, and every quota.
pub fn snapshot(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<UsageSnapshot> {
    let terms = entitlements::terms(tx, app, tenant)?;
    let period = terms.period(tx.now());
    let mut metrics: BTreeMap<String, MetricUsage> = BTreeMap::new();
    for counter in store::counters(tx, app, tenant, period)? {
        metrics.insert(counter.metric.clone(), counter.into());
    }
    for quota in terms.quotas(tx.now()) {
        let entry = metrics.entry(quota.metric.clone()).or_insert_with(|| MetricUsage::unused(&quota.metric));
        entry.measure(&quota);
    }
    // A counter that only waits for its first event says nothing.
    metrics.retain(|_, metric| metric.used > 0 || metric.has_quota() || metric.is_gauge);
    Ok(UsageSnapshot {
        workspace_id: tenant,
        period_start: period.start,
        period_end: period.end,
        metrics: metrics.into_values().collect(),
    })
}

/// Sets what a metric stands at.
pub fn set_gauge(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, metric: &str, value: i64) -> Result<MetricUsage> {
    let terms = entitlements::terms(tx, app, tenant)?;
    let period = terms.period(tx.now());
    store::set_gauge(tx, app, tenant, metric, period, value)?;
    emit(tx, (app, tenant), &GaugeSet { workspace_id: tenant, metric: metric.to_owned(), value })?;
    // Read after the counter is held: a change of plan meanwhile has either seen this value or is seen here.
    let terms = entitlements::terms(tx, app, tenant)?;
    let quota = terms.quota(metric, tx.now());
    tell_used_up(tx, app, tenant, period, quota.as_slice())?;
    sync::note(tx, app, tenant, &terms, metric, period)?;
    entitlements::settle(tx, app, tenant, &terms)?;
    let mut set = MetricUsage { used: value, ..MetricUsage::unused(metric) };
    quota.iter().for_each(|quota| set.measure(quota));
    Ok(set)
}

/// Takes a mistaken event out of its period's counter, once.
pub fn void(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, event: UsageEventId) -> Result<()> {
    let voided = store::void(tx, app, tenant, event)?.ok_or_else(|| Error::not_found("usage event"))?;
    let period_end = store::subtract(tx, app, tenant, &voided)?;
    let (metric, period_start) = (voided.metric.clone(), voided.period_start);
    let fact = UsageVoided { workspace_id: tenant, event_id: event, metric: voided.metric, value: voided.value };
    emit(tx, (app, tenant), &fact)?;
    let terms = entitlements::terms(tx, app, tenant)?;
    if let Some(end) = period_end {
        sync::note(tx, app, tenant, &terms, &metric, Period { start: period_start, end })?;
    }
    entitlements::settle(tx, app, tenant, &terms).map(|_| ())
}

/// How many events are kept of a workspace.
pub fn count_events(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<i64> {
    store::count_events(tx, app, tenant)
}

impl From<Counter> for MetricUsage {
    fn from(counter: Counter) -> Self {
        Self {
            used: counter.used,
            is_gauge: counter.gauge,
            last_synced_at: counter.last_synced_at,
            last_sync_status: counter.last_sync_status,
            last_sync_error: counter.last_sync_error,
            ..Self::unused(&counter.metric)
        }
    }
}
