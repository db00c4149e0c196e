//! The SQL of subscriptions, their history and their trials.

use ::store::{FromRow, Json, Row, Tx, args, row, sql};
use kernel::{AppId, Currency, Error, Money, Page, Result, TenantId, Timestamp};

use super::{
    Agreement, BoughtPlan, BoughtPrice, Dunning, Ending, Purchase, ScheduledChange, State, Status, Subscription,
    SubscriptionChange, SubscriptionChangeId,
};
use crate::catalog::{Interval, PlanId};

const COLUMNS: &str = "id, app_id, tenant_id, plan_key, plan_name, free, amount_minor, currency, recurrence_interval, \
                       status, trial, gate_engaged, ends_at, anchor, scheduled_plan_key, scheduled_plan_name, \
                       scheduled_at, failing_since, failed_attempts, renewed_by_provider, created_at";

impl FromRow for Subscription {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let agreement = Agreement {
            bought: Purchase { plan: plan(row)?, price: price(row)? },
            state: state(row)?,
            gate_engaged: row.get("gate_engaged")?,
            anchor: row.get("anchor")?,
            scheduled: scheduled(row)?,
            renewed_by_provider: row.get("renewed_by_provider")?,
        };
        Ok(Self { id: row.get("id")?, tenant: row.get("tenant_id")?, agreement, created_at: row.get("created_at")? })
    }
}

fn plan(row: &Row<'_>) -> Result<BoughtPlan> {
    Ok(BoughtPlan { key: row.get("plan_key")?, name: row.get("plan_name")?, free: row.get("free")? })
}

fn price(row: &Row<'_>) -> Result<Option<BoughtPrice>> {
    let (amount, currency): (Option<i64>, Option<Currency>) = (row.get("amount_minor")?, row.get("currency")?);
    let interval: Option<Interval> = row.get("recurrence_interval")?;
    let price = |((amount, currency), interval)| BoughtPrice { amount: Money::from_minor(amount, currency), interval };
    Ok(amount.zip(currency).zip(interval).map(price))
}

fn state(row: &Row<'_>) -> Result<State> {
    let (status, ends_at): (Status, Option<Timestamp>) = (row.get("status")?, row.get("ends_at")?);
    let (since, attempts): (Option<Timestamp>, Option<u32>) = (row.get("failing_since")?, row.get("failed_attempts")?);
    let unpaid = since.zip(attempts).map(|(since, attempts)| Dunning { since, attempts });
    let state = match status {
        Status::Trial => ends_at.map(|until| State::Trial { until }),
        Status::Active => Some(State::Active),
        Status::PastDue => unpaid.map(State::PastDue),
        Status::CancelAtPeriodEnd => {
            let trial = row.get("trial")?;
            ends_at.map(|at| State::Ending(Ending { at, trial, unpaid }))
        }
        Status::Canceled => ends_at.map(|at| State::Canceled { at }),
    };
    state.ok_or_else(|| Error::internal(format!("a subscription is {} without what belongs to it", status.as_str())))
}

fn scheduled(row: &Row<'_>) -> Result<Option<ScheduledChange>> {
    let (key, name): (Option<String>, Option<String>) =
        (row.get("scheduled_plan_key")?, row.get("scheduled_plan_name")?);
    let at: Option<Timestamp> = row.get("scheduled_at")?;
    let change = |((key, name), at)| ScheduledChange { plan: BoughtPlan { key, name, free: true }, at };
    Ok(key.zip(name).zip(at).map(change))
}

pub(super) fn newest(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Option<Subscription>> {
    tx.opt(
        sql!("SELECT ", COLUMNS, " FROM subscriptions WHERE app_id = $1 AND tenant_id = $2 ORDER BY id DESC LIMIT 1"),
        &args![app, tenant],
    )
}

/// A subscription and its app.
struct OfApp(AppId, Subscription);

impl FromRow for OfApp {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self(row.get("app_id")?, Subscription::from_row(row)?))
    }
}

/// The newest of each workspace.
pub(super) fn newest_of(tx: &mut Tx<'_>, owners: &[(AppId, TenantId)]) -> Result<Vec<(AppId, Subscription)>> {
    let (apps, tenants): (Vec<AppId>, Vec<TenantId>) = owners.iter().copied().unzip();
    let found: Vec<OfApp> = tx.all(
        sql!(
            "SELECT ",
            COLUMNS,
            " FROM subscriptions WHERE app_id = ANY($1) AND tenant_id = ANY($2) AND id = (SELECT max(newest.id) \
             FROM subscriptions AS newest WHERE newest.app_id = subscriptions.app_id \
             AND newest.tenant_id = subscriptions.tenant_id)"
        ),
        &args![apps, tenants],
    )?;
    Ok(found.into_iter().map(|OfApp(app, subscription)| (app, subscription)).collect())
}

/// Whether somebody has a subscription to the plan that is not over.
pub fn any_on_plan(tx: &mut Tx<'_>, app: AppId, plan: &str) -> Result<bool> {
    tx.exists(
        "SELECT 1 FROM subscriptions WHERE app_id = $1 AND status <> 'canceled' \
         AND (plan_key = $2 OR scheduled_plan_key = $2) LIMIT 1",
        &args![app, plan],
    )
}

/// The workspaces on a plan, each with its app.
pub(crate) fn on_plan(tx: &mut Tx<'_>, app: AppId, plan: &str) -> Result<Vec<(AppId, TenantId)>> {
    tx.all(
        "SELECT app_id, tenant_id FROM subscriptions WHERE app_id = $1 AND plan_key = $2 AND status <> 'canceled'",
        &args![app, plan],
    )
}

/// The row; [`update`] writes what changes.
pub(super) fn insert(tx: &mut Tx<'_>, app: AppId, subscription: &Subscription) -> Result<()> {
    let Subscription { id, tenant, agreement, created_at } = subscription;
    let plan = &agreement.bought.plan;
    tx.run(
        "INSERT INTO subscriptions (id, app_id, tenant_id, plan_key, plan_name, free, status, trial, gate_engaged, \
         anchor, renewed_by_provider, created_at) VALUES ($1, $2, $3, $4, $5, $6, 'active', FALSE, FALSE, $7, FALSE, $8)",
        &args![*id, app, *tenant, plan.key, plan.name, plan.free, agreement.anchor, *created_at],
    )?;
    update(tx, app, subscription)
}

pub(super) fn update(tx: &mut Tx<'_>, app: AppId, subscription: &Subscription) -> Result<()> {
    let agreement = &subscription.agreement;
    let Purchase { plan, price } = &agreement.bought;
    let (scheduled, dunning) = (agreement.scheduled.as_ref(), agreement.dunning());
    tx.run(
        "UPDATE subscriptions SET plan_key = $3, plan_name = $4, free = $5, amount_minor = $6, currency = $7, \
         recurrence_interval = $8, status = $9, trial = $10, gate_engaged = $11, ends_at = $12, anchor = $13, \
         scheduled_plan_key = $14, scheduled_plan_name = $15, scheduled_at = $16, failing_since = $17, \
         failed_attempts = $18, renewed_by_provider = $19, next_at = $20 WHERE app_id = $1 AND id = $2",
        &args![
            app,
            subscription.id,
            plan.key,
            plan.name,
            plan.free,
            price.map(|price| price.amount.minor),
            price.map(|price| price.amount.currency),
            price.map(|price| price.interval),
            agreement.status(),
            agreement.trial_until().is_some(),
            agreement.gate_engaged,
            agreement.ends_at(),
            agreement.anchor,
            scheduled.map(|change| change.plan.key.as_str()),
            scheduled.map(|change| change.plan.name.as_str()),
            scheduled.map(|change| change.at),
            dunning.map(|dunning| dunning.since),
            dunning.map(|dunning| dunning.attempts),
            agreement.renewed_by_provider,
            agreement.due()
        ],
    )
}

/// False when the workspace has tried the plan before.
pub(super) fn insert_trial(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, plan: PlanId) -> Result<bool> {
    tx.changes_one(
        "INSERT INTO trials (tenant_id, plan_id, app_id, started_at) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (tenant_id, plan_id) DO NOTHING",
        &args![tenant, plan, app, tx.now()],
    )
}

row! {
    SubscriptionChange = "subscription_changes" {
        at,
        from: "from_status",
        to: "to_status",
        plan: "plan_key",
        cause,
        actor as Json,
    }
}

pub(super) fn insert_change(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, change: &SubscriptionChange) -> Result<()> {
    let SubscriptionChange { at, from, to, plan, cause, actor } = change;
    let id: SubscriptionChangeId = tx.new_id();
    tx.run(
        "INSERT INTO subscription_changes (id, app_id, tenant_id, at, from_status, to_status, plan_key, cause, actor) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        &args![id, app, tenant, *at, *from, *to, plan, *cause, Json(actor)],
    )
}

pub(super) fn history(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, page: Page) -> Result<Vec<SubscriptionChange>> {
    tx.all(
        sql!(
            "SELECT ",
            SubscriptionChange::COLUMNS,
            " FROM subscription_changes WHERE app_id = $1 AND tenant_id = $2 ORDER BY id DESC LIMIT $3 OFFSET $4"
        ),
        &args![app, tenant, page.limit_or_all(), page.offset()],
    )
}

/// A subscription that time changes next.
pub(super) struct Due {
    pub(super) app: AppId,
    pub(super) tenant: TenantId,
}

impl FromRow for Due {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self { app: row.get("app_id")?, tenant: row.get("tenant_id")? })
    }
}

pub(super) const DUE: &str =
    "SELECT app_id, tenant_id FROM subscriptions WHERE next_at <= $1 ORDER BY next_at LIMIT $2";
pub(super) const NEXT_DUE: &str = "SELECT min(next_at) FROM subscriptions WHERE next_at IS NOT NULL";
/// Of a workspace that is gone and not purged yet.
pub(super) const NEVER_DUE: &str =
    "UPDATE subscriptions SET next_at = NULL WHERE app_id = $1 AND tenant_id = $2 AND next_at <= $3";
