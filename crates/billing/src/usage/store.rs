//! The SQL of counters and events.

use std::time::Duration;

use ::store::{FromRow, Row, Tx, args, sql};
use kernel::{AppId, Result, TenantId, Timestamp};

use super::{UsageBatchId, UsageEventId};
use crate::subscriptions::Period;

/// How long an event with the same idempotency key is known to be the same.
const KEYS_KEPT: Duration = Duration::from_hours(400 * 24);

/// A metric in a period.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    pub(super) metric: String,
    pub(super) used: i64,
    pub(super) gauge: bool,
    pub(super) last_synced_at: Option<Timestamp>,
    pub(super) last_sync_status: Option<String>,
    pub(super) last_sync_error: Option<String>,
    pub(super) period_start: Timestamp,
}

impl FromRow for Counter {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            metric: row.get("metric")?,
            used: row.get("used")?,
            gauge: row.get("gauge")?,
            last_synced_at: row.get("last_synced_at")?,
            last_sync_status: row.get("last_sync_status")?,
            last_sync_error: row.get("last_sync_error")?,
            period_start: row.get("period_start")?,
        })
    }
}

/// The newest row of each metric up to the period, where it is of the period itself or a gauge's, which lasts.
const COUNTERS: &str = "SELECT metric, used, gauge, last_synced_at, last_sync_status, last_sync_error, period_start \
     FROM usage_counters WHERE app_id = $1 AND tenant_id = $2 AND period_start <= $3 AND (period_start = $3 OR gauge) \
     AND period_start = (SELECT max(newest.period_start) FROM usage_counters AS newest \
     WHERE newest.tenant_id = usage_counters.tenant_id AND newest.metric = usage_counters.metric \
     AND newest.period_start <= $3)";

pub(super) fn counters(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, period: Period) -> Result<Vec<Counter>> {
    let mut counters: Vec<Counter> = tx.all(COUNTERS, &args![app, tenant, period.start])?;
    for counter in &mut counters {
        if counter.period_start != period.start {
            // What was synced then was of another period.
            (counter.last_synced_at, counter.last_sync_status, counter.last_sync_error) = (None, None, None);
        }
    }
    Ok(counters)
}

/// A counter and its workspace.
struct OfWorkspace(TenantId, Counter);

impl FromRow for OfWorkspace {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self(row.get("tenant_id")?, Counter::from_row(row)?))
    }
}

/// The newest row of each metric of these workspaces that has begun.
pub(super) fn newest_counters(tx: &mut Tx<'_>, app: AppId, tenants: &[TenantId]) -> Result<Vec<(TenantId, Counter)>> {
    let found: Vec<OfWorkspace> = tx.all(
        "SELECT tenant_id, metric, used, gauge, last_synced_at, last_sync_status, last_sync_error, period_start \
         FROM usage_counters WHERE app_id = $1 AND tenant_id = ANY($2) AND period_start = \
         (SELECT max(newest.period_start) FROM usage_counters AS newest \
         WHERE newest.tenant_id = usage_counters.tenant_id AND newest.metric = usage_counters.metric \
         AND newest.period_start <= $3)",
        &args![app, tenants, tx.now()],
    )?;
    Ok(found.into_iter().map(|OfWorkspace(tenant, counter)| (tenant, counter)).collect())
}

/// The value that a gauge left in the periods before, for a metric that has no row in this one yet.
pub(super) fn carried(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    metric: &str,
    start: Timestamp,
) -> Result<Option<i64>> {
    let newest: Option<(i64, bool)> = tx.opt(
        "SELECT used, gauge FROM usage_counters WHERE app_id = $1 AND tenant_id = $2 AND metric = $3 \
         AND period_start < $4 ORDER BY period_start DESC LIMIT 1",
        &args![app, tenant, metric, start],
    )?;
    Ok(newest.filter(|(_, gauge)| *gauge).map(|(used, _)| used))
}

/// Holds rows, in the order in which they come; one that is missing is made with what is known of it.
pub(super) fn hold<'a>(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    period: Period,
    metrics: impl Iterator<Item = (&'a str, Option<i64>)>,
) -> Result<()> {
    let made_by: UsageBatchId = tx.new_id();
    let Period { start, end } = period;
    let row = |(metric, known): (&str, Option<i64>)| {
        (tenant, metric.to_owned(), start, app, end, known.unwrap_or(0), known.is_some(), made_by)
    };
    let rows: Vec<_> = metrics.map(row).collect();
    tx.insert_all(
        "INSERT INTO usage_counters (tenant_id, metric, period_start, app_id, period_end, used, gauge, made_by) \
         SELECT tenant_id, metric, period_start, app_id, period_end, used, gauge, made_by FROM {rows} \
         WHERE true ON CONFLICT (tenant_id, metric, period_start) DO UPDATE SET period_end = excluded.period_end",
        ["tenant_id", "metric", "period_start", "app_id", "period_end", "used", "gauge", "made_by"],
        &rows,
    )
}

/// What is added to a counter.
pub(super) struct Addition {
    pub(super) app: AppId,
    pub(super) tenant: TenantId,
    pub(super) metric: String,
    pub(super) period: Period,
    pub(super) value: i64,
}

/// A counter after an addition.
#[derive(Debug)]
pub(super) struct Added {
    pub(super) tenant: TenantId,
    pub(super) metric: String,
    pub(super) period_start: Timestamp,
    pub(super) used: i64,
    pub(super) made_by: UsageBatchId,
    pub(super) exhausted: bool,
    /// Whether it is due to be sent to the provider already.
    pub(super) noted: bool,
}

impl FromRow for Added {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            tenant: row.get("tenant_id")?,
            metric: row.get("metric")?,
            period_start: row.get("period_start")?,
            used: row.get("used")?,
            made_by: row.get("made_by")?,
            exhausted: row.get::<Option<Timestamp>>("exhausted_at")?.is_some(),
            noted: row.get::<Option<Timestamp>>("sync_at")?.is_some(),
        })
    }
}

/// In the order in which they come; at most one for each counter.
pub(super) fn add(tx: &mut Tx<'_>, additions: &[Addition], made_by: UsageBatchId) -> Result<Vec<Added>> {
    let row = |addition: &Addition| {
        let Addition { app, tenant, metric, period, value } = addition;
        (*tenant, metric.clone(), period.start, *app, period.end, *value, false, made_by)
    };
    let rows: Vec<_> = additions.iter().map(row).collect();
    // A counter stops at the largest number that every JSON reader holds exactly.
    tx.insert_all_returning(
        "INSERT INTO usage_counters (tenant_id, metric, period_start, app_id, period_end, used, gauge, made_by) \
         SELECT tenant_id, metric, period_start, app_id, period_end, used, gauge, made_by FROM {rows} \
         WHERE true ON CONFLICT (tenant_id, metric, period_start) DO UPDATE SET gauge = FALSE, \
         used = CASE WHEN usage_counters.used + excluded.used > 9007199254740991 THEN 9007199254740991 \
         ELSE usage_counters.used + excluded.used END \
         RETURNING tenant_id, metric, period_start, used, made_by, exhausted_at, sync_at",
        ["tenant_id", "metric", "period_start", "app_id", "period_end", "used", "gauge", "made_by"],
        &rows,
    )
}

/// Adds what a gauge left to a counter that was just made.
pub(super) fn add_carried(tx: &mut Tx<'_>, app: AppId, added: &Added, carried: i64) -> Result<i64> {
    let (used,): (i64,) = tx.one(
        "UPDATE usage_counters SET used = CASE WHEN used + $5 > 9007199254740991 THEN 9007199254740991 \
         ELSE used + $5 END WHERE app_id = $1 AND tenant_id = $2 AND metric = $3 AND period_start = $4 RETURNING used",
        &args![app, added.tenant, added.metric, added.period_start, carried],
    )?;
    Ok(used)
}

pub(super) fn set_gauge(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    metric: &str,
    period: Period,
    value: i64,
) -> Result<()> {
    let made_by: UsageBatchId = tx.new_id();
    tx.run(
        "INSERT INTO usage_counters (tenant_id, metric, period_start, app_id, period_end, used, gauge, made_by) \
         VALUES ($1, $2, $3, $4, $5, $6, TRUE, $7) ON CONFLICT (tenant_id, metric, period_start) \
         DO UPDATE SET used = excluded.used, gauge = TRUE",
        &args![tenant, metric, period.start, app, period.end, value, made_by],
    )
}

/// False when that was told before.
pub(super) fn mark_exhausted(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    metric: &str,
    period: Period,
) -> Result<bool> {
    tx.changes_one(
        "UPDATE usage_counters SET exhausted_at = $5 WHERE app_id = $1 AND tenant_id = $2 AND metric = $3 \
         AND period_start = $4 AND exhausted_at IS NULL",
        &args![app, tenant, metric, period.start, tx.now()],
    )
}

/// Notes when a counter is due to be sent; one that is noted already keeps its time.
pub(super) fn note_sync(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    metric: &str,
    start: Timestamp,
    at: Timestamp,
) -> Result<()> {
    tx.run(
        "UPDATE usage_counters SET sync_at = $5 WHERE app_id = $1 AND tenant_id = $2 AND metric = $3 \
         AND period_start = $4 AND sync_at IS NULL",
        &args![app, tenant, metric, start, at],
    )
}

pub(super) fn mark_synced(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    start: Timestamp,
    metrics: &[String],
) -> Result<()> {
    tx.run(
        "UPDATE usage_counters SET last_synced_at = $5, last_sync_status = 'ok', last_sync_error = NULL, \
         sync_at = NULL WHERE app_id = $1 AND tenant_id = $2 AND metric = ANY($3) AND period_start = $4",
        &args![app, tenant, metrics, start, tx.now()],
    )
}

/// Of a workspace that has nobody to send it to.
pub(super) fn forget_sync(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<()> {
    tx.run(
        "UPDATE usage_counters SET sync_at = NULL WHERE app_id = $1 AND tenant_id = $2 AND sync_at IS NOT NULL",
        &args![app, tenant],
    )
}

/// A counter that is due to be sent.
pub(super) struct DueCounter {
    pub(super) app: AppId,
    pub(super) tenant: TenantId,
    pub(super) metric: String,
    pub(super) period: Period,
    pub(super) used: i64,
}

impl FromRow for DueCounter {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            app: row.get("app_id")?,
            tenant: row.get("tenant_id")?,
            metric: row.get("metric")?,
            period: Period { start: row.get("period_start")?, end: row.get("period_end")? },
            used: row.get("used")?,
        })
    }
}

/// What the provider made of a total that was sent: how often it was another, and which.
pub(super) fn drift(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    metric: &str,
    start: Timestamp,
) -> Result<Option<(u32, i64)>> {
    let found: Option<(u32, Option<i64>)> = tx.opt(
        "SELECT drift_attempts, drift_total FROM usage_counters WHERE app_id = $1 AND tenant_id = $2 AND metric = $3 \
         AND period_start = $4",
        &args![app, tenant, metric, start],
    )?;
    Ok(found.and_then(|(attempts, total)| Some((attempts, total?))))
}

pub(super) fn set_drift(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    metric: &str,
    start: Timestamp,
    drift: Option<(u32, i64)>,
    again: Option<Timestamp>,
) -> Result<()> {
    let (attempts, total) = drift.unzip();
    tx.run(
        "UPDATE usage_counters SET drift_attempts = $5, drift_total = $6, sync_at = COALESCE(CAST($7 AS BIGINT), sync_at) \
         WHERE app_id = $1 AND tenant_id = $2 AND metric = $3 AND period_start = $4",
        &args![app, tenant, metric, start, attempts.unwrap_or(0), total, again],
    )
}

/// What was recorded while the total was on its way is due again.
pub(super) fn mark_sent(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    metric: &str,
    start: Timestamp,
    used: i64,
    again: Timestamp,
) -> Result<()> {
    tx.run(
        "UPDATE usage_counters SET last_synced_at = $5, last_sync_status = 'ok', last_sync_error = NULL, \
         sync_at = CASE WHEN used = $6 THEN NULL ELSE CAST($7 AS BIGINT) END \
         WHERE app_id = $1 AND tenant_id = $2 AND metric = $3 AND period_start = $4",
        &args![app, tenant, metric, start, tx.now(), used, again],
    )
}

pub(super) fn mark_failed(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    metric: &str,
    start: Timestamp,
    error: &str,
    again: Timestamp,
) -> Result<()> {
    tx.run(
        "UPDATE usage_counters SET last_sync_status = 'failed', last_sync_error = $5, sync_at = $6 \
         WHERE app_id = $1 AND tenant_id = $2 AND metric = $3 AND period_start = $4",
        &args![app, tenant, metric, start, error, again],
    )
}

pub(super) const SYNC_DUE: &str = "SELECT app_id, tenant_id, metric, period_start, period_end, used FROM usage_counters \
     WHERE sync_at <= $1 ORDER BY sync_at LIMIT $2";
pub(super) const NEXT_SYNC: &str = "SELECT min(sync_at) FROM usage_counters WHERE sync_at IS NOT NULL";

/// An event to store.
pub(super) struct NewEvent {
    pub(super) id: UsageEventId,
    pub(super) app: AppId,
    pub(super) tenant: TenantId,
    pub(super) key: String,
    pub(super) metric: String,
    pub(super) value: i64,
    pub(super) period_start: Timestamp,
}

/// Stores those whose key is new, in the order in which they come; the ids of these.
pub(super) fn insert_events(tx: &mut Tx<'_>, events: &[&NewEvent]) -> Result<Vec<UsageEventId>> {
    let expires_at = tx.now().plus(KEYS_KEPT);
    let row = |event: &&NewEvent| {
        let NewEvent { id, app, tenant, key, metric, value, period_start } = *event;
        (*id, *app, *tenant, key.clone(), metric.clone(), *value, *period_start, expires_at)
    };
    let rows: Vec<_> = events.iter().map(row).collect();
    let stored: Vec<(UsageEventId,)> = tx.insert_all_returning(
        "INSERT INTO usage_events (id, app_id, tenant_id, idempotency_key, metric, value, period_start, expires_at) \
         SELECT id, app_id, tenant_id, idempotency_key, metric, value, period_start, expires_at FROM {rows} \
         WHERE true ON CONFLICT (tenant_id, idempotency_key) DO NOTHING RETURNING id",
        ["id", "app_id", "tenant_id", "idempotency_key", "metric", "value", "period_start", "expires_at"],
        &rows,
    )?;
    Ok(stored.into_iter().map(|(id,)| id).collect())
}

/// The event that has this key.
pub(super) fn original(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, key: &str) -> Result<UsageEventId> {
    let (id,): (UsageEventId,) = tx.one(
        "SELECT id FROM usage_events WHERE app_id = $1 AND tenant_id = $2 AND idempotency_key = $3",
        &args![app, tenant, key],
    )?;
    Ok(id)
}

/// An event that was taken back.
pub(super) struct Voided {
    pub(super) metric: String,
    pub(super) value: i64,
    pub(super) period_start: Timestamp,
}

impl FromRow for Voided {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self { metric: row.get("metric")?, value: row.get("value")?, period_start: row.get("period_start")? })
    }
}

pub(super) fn void(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, id: UsageEventId) -> Result<Option<Voided>> {
    tx.opt(
        "UPDATE usage_events SET voided_at = $4 WHERE app_id = $1 AND tenant_id = $2 AND id = $3 AND voided_at IS NULL \
         RETURNING metric, value, period_start",
        &args![app, tenant, id, tx.now()],
    )
}

/// When the counter's period ends, if it is still there.
pub(super) fn subtract(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, voided: &Voided) -> Result<Option<Timestamp>> {
    let found: Option<(Timestamp,)> = tx.opt(
        "UPDATE usage_counters SET used = CASE WHEN used < $5 THEN 0 ELSE used - $5 END \
         WHERE app_id = $1 AND tenant_id = $2 AND metric = $3 AND period_start = $4 RETURNING period_end",
        &args![app, tenant, voided.metric, voided.period_start, voided.value],
    )?;
    Ok(found.map(|(end,)| end))
}

pub(super) fn count_events(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<i64> {
    let (count,): (i64,) = tx.one(
        sql!("SELECT count(*) FROM usage_events WHERE app_id = $1 AND tenant_id = $2 AND voided_at IS NULL"),
        &args![app, tenant],
    )?;
    Ok(count)
}
