//! The way of events into the database: keys in, then one addition for each workspace, metric and period, in one commit, each
//! caller answered for its own event. Counters are written in one order, before anything that follows from them, so that
//! batches never wait for each other in a circle.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ::store::{Ingest, Tx};
use kernel::{AppId, Result, TenantId, Timestamp};

use super::{
    QuotaSnapshot, UsageBatchId, UsageEventId, UsageSignal,
    rules::MAX_VALUE,
    store::{self, Added, Addition, NewEvent},
};
use crate::{
    catalog::plans::QuotaPolicy,
    entitlements::{self, Entitlements, Terms},
    subscriptions::{self, Cycle, Period},
};

/// An event to count.
#[derive(Clone, Debug)]
pub struct UsageRow {
    pub app: AppId,
    pub tenant: TenantId,
    pub metric: String,
    pub value: i64,
    /// The event's own id without one.
    pub idempotency_key: Option<String>,
    /// Now without one.
    pub at: Option<Timestamp>,
    /// Whether the answer tells quota and entitlements.
    pub represent: bool,
}

/// What became of an event.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub id: UsageEventId,
    pub deduped: bool,
    pub representation: Option<Representation>,
    /// What streams are told of it, when it counts in the present period.
    pub signal: Option<UsageSignal>,
}

/// How the workspace stands after the event.
#[derive(Clone, Debug)]
pub struct Representation {
    pub quota: Option<QuotaSnapshot>,
    pub entitlements: Entitlements,
}

pub struct UsageIngest;

impl Ingest for UsageIngest {
    type Row = UsageRow;
    type Answer = Recorded;

    fn store(tx: &mut Tx<'_>, rows: &[UsageRow]) -> Result<Vec<Recorded>> {
        let owners: BTreeSet<(AppId, TenantId)> = rows.iter().map(|row| (row.app, row.tenant)).collect();
        let owners: Vec<(AppId, TenantId)> = owners.into_iter().collect();
        let cycles = cycles(tx, &owners)?;
        let placed: Vec<(NewEvent, Period)> = rows.iter().map(|row| place(tx, row, &cycles)).collect();
        let counted = insert(tx, &placed)?;
        let additions = additions(placed.iter().filter(|(event, _)| counted.contains(&event.id)));
        let changes = add(tx, &additions)?;
        // Read after the counters are held: a change of plan has either seen these events or is seen here.
        let terms = entitlements::terms_of(tx, &owners)?;
        judge(tx, &changes, &terms)?;
        let answer = |(row, (event, _)): (&UsageRow, &(NewEvent, Period))| {
            let deduped = !counted.contains(&event.id);
            let id = if deduped { store::original(tx, row.app, row.tenant, &event.key)? } else { event.id };
            let representation = row.represent.then(|| represent(tx, row)).transpose()?;
            let signal = (!deduped).then(|| signal(row, &changes, &terms, tx.now())).flatten();
            Ok(Recorded { id, deduped, representation, signal })
        };
        rows.iter().zip(&placed).map(answer).collect()
    }
}

fn cycles(tx: &mut Tx<'_>, owners: &[(AppId, TenantId)]) -> Result<HashMap<TenantId, Cycle>> {
    let agreements = subscriptions::agreements(tx, owners)?;
    Ok(agreements.into_iter().map(|(_, tenant, agreement)| (tenant, agreement.cycle())).collect())
}

fn place(tx: &Tx<'_>, row: &UsageRow, cycles: &HashMap<TenantId, Cycle>) -> (NewEvent, Period) {
    let cycle = cycles.get(&row.tenant).copied().unwrap_or(Cycle::CALENDAR_MONTHS);
    let period = cycle.at(row.at.unwrap_or(tx.now()));
    let id: UsageEventId = tx.new_id();
    let event = NewEvent {
        id,
        app: row.app,
        tenant: row.tenant,
        key: row.idempotency_key.clone().unwrap_or_else(|| id.to_string()),
        metric: row.metric.clone(),
        value: row.value,
        period_start: period.start,
    };
    (event, period)
}

/// The events that were not stored before.
fn insert(tx: &mut Tx<'_>, placed: &[(NewEvent, Period)]) -> Result<HashSet<UsageEventId>> {
    let mut sorted: Vec<&NewEvent> = placed.iter().map(|(event, _)| event).collect();
    // Of two with one key in a batch the first stands.
    sorted.sort_by(|one, other| (one.tenant, &one.key, one.id).cmp(&(other.tenant, &other.key, other.id)));
    Ok(store::insert_events(tx, &sorted)?.into_iter().collect())
}

/// One for each counter, in order.
fn additions<'a>(events: impl Iterator<Item = &'a (NewEvent, Period)>) -> Vec<Addition> {
    let mut sums: BTreeMap<(TenantId, &str, Period), (AppId, i64)> = BTreeMap::new();
    for (event, period) in events {
        let (_, sum) = sums.entry((event.tenant, &event.metric, *period)).or_insert((event.app, 0));
        *sum = sum.saturating_add(event.value).min(MAX_VALUE);
    }
    let addition = |((tenant, metric, period), (app, value)): ((_, &str, _), _)| Addition {
        app,
        tenant,
        metric: metric.to_owned(),
        period,
        value,
    };
    sums.into_iter().map(addition).collect()
}

/// A counter before and after.
struct CounterChange {
    app: AppId,
    tenant: TenantId,
    metric: String,
    period: Period,
    before: i64,
    after: i64,
    exhausted: bool,
    /// Whether it is due to be sent to the provider already.
    noted: bool,
}

fn add(tx: &mut Tx<'_>, additions: &[Addition]) -> Result<Vec<CounterChange>> {
    if additions.is_empty() {
        return Ok(Vec::new());
    }
    let batch: UsageBatchId = tx.new_id();
    let added = store::add(tx, additions, batch)?;
    let mut by_counter: HashMap<(TenantId, String, Timestamp), Added> =
        added.into_iter().map(|added| ((added.tenant, added.metric.clone(), added.period_start), added)).collect();
    let change = |addition: &Addition| {
        let Addition { app, tenant, metric, period, value } = addition;
        let Some(added) = by_counter.remove(&(*tenant, metric.clone(), period.start)) else { return Ok(None) };
        let mut after = added.used;
        if added.made_by == batch
            && let Some(carried) = store::carried(tx, *app, *tenant, metric, period.start)?
        {
            after = store::add_carried(tx, *app, &added, carried)?;
        }
        Ok(Some(CounterChange {
            app: *app,
            tenant: *tenant,
            metric: metric.clone(),
            period: *period,
            before: after.saturating_sub(*value),
            after,
            exhausted: added.exhausted,
            noted: added.noted,
        }))
    };
    additions.iter().map(change).filter_map(Result::transpose).collect()
}

/// What follows where a quota was reached: metered ones are told, hard ones take their entitlement away.
fn judge(tx: &mut Tx<'_>, changes: &[CounterChange], terms: &HashMap<TenantId, Terms>) -> Result<()> {
    let now = tx.now();
    let mut crossed: BTreeMap<TenantId, AppId> = BTreeMap::new();
    for change in changes {
        let CounterChange { app, tenant, metric, period, before, after, exhausted, noted } = change;
        let Some(terms) = terms.get(tenant) else { continue };
        if !noted {
            super::sync::note(tx, *app, *tenant, terms, metric, *period)?;
        }
        let Some(quota) = terms.quota(metric, now) else { continue };
        match quota.policy {
            QuotaPolicy::Metered if *after >= quota.limit && !exhausted => {
                super::tell_one_used_up(tx, *app, *tenant, *period, &quota, *after)?;
            }
            QuotaPolicy::Hard if (before + 1..=*after).contains(&quota.limit) && *period == terms.period(now) => {
                crossed.insert(*tenant, *app);
            }
            QuotaPolicy::Metered | QuotaPolicy::Hard => {}
        }
    }
    for (tenant, app) in crossed {
        if let Some(terms) = terms.get(&tenant) {
            entitlements::settle(tx, app, tenant, terms)?;
        }
    }
    Ok(())
}

/// How the event's counter stands after the whole batch.
fn signal(
    row: &UsageRow,
    changes: &[CounterChange],
    terms: &HashMap<TenantId, Terms>,
    now: Timestamp,
) -> Option<UsageSignal> {
    let terms = terms.get(&row.tenant)?;
    let present = terms.period(now);
    let own = |change: &&CounterChange| {
        change.tenant == row.tenant && change.metric == row.metric && change.period.start == present.start
    };
    let change = changes.iter().find(own)?;
    let at = row.at.unwrap_or(now);
    if at < present.start || at >= present.end {
        return None;
    }
    let quota = terms.quota(&row.metric, now).map(|quota| QuotaSnapshot::of(&quota, change.after));
    Some(UsageSignal {
        app: row.app,
        tenant: row.tenant,
        metric: row.metric.clone(),
        value: row.value,
        used: change.after,
        quota,
    })
}

fn represent(tx: &mut Tx<'_>, row: &UsageRow) -> Result<Representation> {
    Ok(Representation {
        quota: super::quota(tx, row.app, row.tenant, &row.metric)?,
        entitlements: entitlements::get(tx, row.app, row.tenant)?,
    })
}
