//! The SQL of checkouts, of what the sandbox renews, and of callbacks.

use std::time::Duration;

use ::store::{FromRow, Row, Tx, args, sql};
use kernel::{AppId, Money, Result, TenantId, Timestamp};

use super::checkout::CheckoutSession;
use crate::subscriptions::{BoughtPlan, BoughtPrice, Purchase};

/// How long a repeated callback is known.
const EVENTS_KEPT: Duration = Duration::from_hours(90 * 24);

const SESSION: &str = "id, app_id, tenant_id, plan_key, plan_name, amount_minor, currency, recurrence_interval, success_url, \
                       cancel_url, paid_at, expires_at";

impl FromRow for CheckoutSession {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let plan = BoughtPlan { key: row.get("plan_key")?, name: row.get("plan_name")?, free: false };
        let amount = Money::from_minor(row.get("amount_minor")?, row.get("currency")?);
        let price = BoughtPrice { amount, interval: row.get("recurrence_interval")? };
        Ok(Self {
            id: row.get("id")?,
            app: row.get("app_id")?,
            tenant: row.get("tenant_id")?,
            price,
            bought: Purchase { plan, price: Some(price) },
            success_url: row.get("success_url")?,
            cancel_url: row.get("cancel_url")?,
            paid_at: row.get("paid_at")?,
            expires_at: row.get("expires_at")?,
        })
    }
}

pub(super) fn insert_session(tx: &mut Tx<'_>, session: &CheckoutSession) -> Result<()> {
    let CheckoutSession { id, app, tenant, bought, price, success_url, cancel_url, expires_at, .. } = session;
    tx.run(
        "INSERT INTO checkout_sessions (id, app_id, tenant_id, plan_key, plan_name, amount_minor, currency, \
         recurrence_interval, success_url, cancel_url, expires_at, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        &args![
            id,
            *app,
            *tenant,
            bought.plan.key,
            bought.plan.name,
            price.amount.minor,
            price.amount.currency,
            price.interval,
            success_url,
            cancel_url,
            *expires_at,
            tx.now()
        ],
    )
}

/// By its random id alone, which its app is read from.
pub(super) fn session(tx: &mut Tx<'_>, id: &str) -> Result<Option<CheckoutSession>> {
    tx.opt(sql!("SELECT ", SESSION, " FROM checkout_sessions WHERE id = $1"), &args![id])
}

/// Those that can still be paid. A workspace has few: each was begun by a person.
pub(super) fn open_sessions(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Vec<String>> {
    let now = tx.now();
    let found: Vec<(String,)> = tx.all(
        "SELECT id FROM checkout_sessions WHERE app_id = $1 AND tenant_id = $2 AND paid_at IS NULL AND expires_at > $3 \
         ORDER BY id LIMIT 100",
        &args![app, tenant, now],
    )?;
    Ok(found.into_iter().map(|(id,)| id).collect())
}

/// Nobody can pay it any more.
pub(super) fn close_session(tx: &mut Tx<'_>, app: AppId, id: &str) -> Result<()> {
    let now = tx.now();
    tx.run("UPDATE checkout_sessions SET expires_at = $3 WHERE app_id = $1 AND id = $2", &args![app, id, now])
}

/// False when it was paid before.
pub(super) fn mark_paid(tx: &mut Tx<'_>, session: &CheckoutSession) -> Result<bool> {
    tx.changes_one(
        "UPDATE checkout_sessions SET paid_at = $3 WHERE app_id = $1 AND id = $2 AND paid_at IS NULL",
        &args![session.app, session.id, tx.now()],
    )
}

/// What the sandbox knows of a subscription.
#[derive(Clone, Debug)]
pub(super) struct Card {
    pub(super) last4: String,
    pub(super) pays: bool,
    pub(super) tax_percentage: Option<f64>,
    pub(super) charges: Charges,
}

/// What is charged next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Charges {
    pub(super) at: Option<Timestamp>,
    /// What is charged beside the price.
    pub(super) owed_minor: i64,
    /// The bill that is being dunned, without tax.
    pub(super) bill_minor: Option<i64>,
}

impl FromRow for Card {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            last4: row.get("card_last4")?,
            pays: row.get("pays")?,
            tax_percentage: row.get("tax_percentage")?,
            charges: Charges {
                at: row.get("charge_at")?,
                owed_minor: row.get("owed_minor")?,
                bill_minor: row.get("bill_minor")?,
            },
        })
    }
}

pub(super) fn card(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Option<Card>> {
    tx.opt(
        "SELECT card_last4, pays, tax_percentage, charge_at, owed_minor, bill_minor FROM sandbox_subscriptions \
         WHERE app_id = $1 AND tenant_id = $2",
        &args![app, tenant],
    )
}

pub(super) fn put_card(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, card: &Card) -> Result<()> {
    let Card { last4, pays, tax_percentage, charges: Charges { at, owed_minor, bill_minor } } = card;
    tx.run(
        "INSERT INTO sandbox_subscriptions (tenant_id, app_id, card_last4, pays, tax_percentage, charge_at, owed_minor, \
         bill_minor) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (tenant_id) DO UPDATE SET \
         card_last4 = excluded.card_last4, pays = excluded.pays, tax_percentage = excluded.tax_percentage, \
         charge_at = excluded.charge_at, owed_minor = excluded.owed_minor, bill_minor = excluded.bill_minor",
        &args![tenant, app, last4, *pays, *tax_percentage, *at, *owed_minor, *bill_minor],
    )
}

pub(super) fn put_charges(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, charges: Charges) -> Result<()> {
    let Charges { at, owed_minor, bill_minor } = charges;
    tx.run(
        "UPDATE sandbox_subscriptions SET charge_at = $3, owed_minor = $4, bill_minor = $5 \
         WHERE app_id = $1 AND tenant_id = $2",
        &args![app, tenant, at, owed_minor, bill_minor],
    )
}

pub(super) fn delete_card(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<()> {
    tx.run("DELETE FROM sandbox_subscriptions WHERE app_id = $1 AND tenant_id = $2", &args![app, tenant])
}

/// By the digest of its random id alone, which its app is read from.
pub(super) fn portal(tx: &mut Tx<'_>, digest: &str) -> Result<Option<Chargeable>> {
    tx.opt(
        "SELECT app_id, tenant_id FROM sandbox_portals WHERE digest = $1 AND expires_at > $2",
        &args![digest, tx.now()],
    )
}

pub(super) fn insert_portal(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    digest: &str,
    expires_at: Timestamp,
) -> Result<()> {
    tx.run(
        "INSERT INTO sandbox_portals (digest, app_id, tenant_id, expires_at) VALUES ($1, $2, $3, $4)",
        &args![digest, app, tenant, expires_at],
    )
}

/// A workspace that the sandbox is paid for.
pub(super) struct Chargeable {
    pub(super) app: AppId,
    pub(super) tenant: TenantId,
}

impl FromRow for Chargeable {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self { app: row.get("app_id")?, tenant: row.get("tenant_id")? })
    }
}

pub(super) const DUE: &str =
    "SELECT app_id, tenant_id FROM sandbox_subscriptions WHERE charge_at <= $1 ORDER BY charge_at LIMIT $2";
pub(super) const NEXT_DUE: &str = "SELECT min(charge_at) FROM sandbox_subscriptions WHERE charge_at IS NOT NULL";

/// False when the event was taken in before.
pub(super) fn insert_event(tx: &mut Tx<'_>, app: AppId, event: &str, payload: Option<&str>) -> Result<bool> {
    let due = payload.map(|_| tx.now());
    tx.changes_one(
        "INSERT INTO provider_events (app_id, event_id, expires_at, payload, next_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (app_id, event_id) DO NOTHING",
        &args![app, event, tx.now().plus(EVENTS_KEPT), payload, due],
    )
}
