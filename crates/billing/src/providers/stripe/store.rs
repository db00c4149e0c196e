//! The SQL of what is at the provider, of intents, and of callbacks that wait.

use ::store::{Json, Tx, args, row, sql};
use kernel::{AppId, Result, TenantId, Timestamp};

use super::intents::{Bought, Intent, IntentId};

/// What a workspace has at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AtProvider {
    pub(crate) tenant: TenantId,
    pub(crate) subscription: String,
    pub(crate) customer: String,
    /// The price there that was taken over last.
    pub(super) price: Option<String>,
    /// How often something was taken over.
    pub(super) revision: i64,
}

row! {
    AtProvider = "provider_subscriptions" {
        tenant: "tenant_id",
        subscription: "subscription_id",
        customer: "customer_id",
        price: "price_id",
        revision,
    }
}

pub(super) fn at_provider(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Option<AtProvider>> {
    tx.opt(
        sql!("SELECT ", AtProvider::COLUMNS, " FROM provider_subscriptions WHERE app_id = $1 AND tenant_id = $2"),
        &args![app, tenant],
    )
}

/// Whose subscription it is.
pub(super) fn by_subscription(tx: &mut Tx<'_>, app: AppId, subscription: &str) -> Result<Option<AtProvider>> {
    tx.opt(
        sql!("SELECT ", AtProvider::COLUMNS, " FROM provider_subscriptions WHERE app_id = $1 AND subscription_id = $2"),
        &args![app, subscription],
    )
}

pub(super) fn put_at_provider(tx: &mut Tx<'_>, app: AppId, there: &AtProvider) -> Result<()> {
    let AtProvider { tenant, subscription, customer, price, revision } = there;
    tx.run(
        "INSERT INTO provider_subscriptions (tenant_id, app_id, subscription_id, customer_id, price_id, revision) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (tenant_id) DO UPDATE SET \
         subscription_id = excluded.subscription_id, customer_id = excluded.customer_id, price_id = excluded.price_id, \
         revision = provider_subscriptions.revision + 1",
        &args![*tenant, app, subscription, customer, price, *revision],
    )
}

/// Notes that what is said of it now is taken over; false when something newer was.
pub(super) fn take_over(tx: &mut Tx<'_>, app: AppId, known: &AtProvider, price: Option<&str>) -> Result<bool> {
    tx.changes_one(
        "UPDATE provider_subscriptions SET revision = revision + 1, price_id = $5 \
         WHERE app_id = $1 AND tenant_id = $2 AND subscription_id = $3 AND revision = $4",
        &args![app, known.tenant, known.subscription, known.revision, price],
    )
}

pub(super) fn delete_at_provider(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<()> {
    tx.run("DELETE FROM provider_subscriptions WHERE app_id = $1 AND tenant_id = $2", &args![app, tenant])
}

/// The workspace that a customer there stands for.
pub(super) fn tenant_of_customer(tx: &mut Tx<'_>, app: AppId, customer: &str) -> Result<Option<TenantId>> {
    let found: Option<(TenantId,)> = tx.opt(
        "SELECT tenant_id FROM provider_customers WHERE app_id = $1 AND customer_id = $2",
        &args![app, customer],
    )?;
    Ok(found.map(|(tenant,)| tenant))
}

pub(super) fn customer(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, account: &str) -> Result<Option<String>> {
    let found: Option<(String,)> = tx.opt(
        "SELECT customer_id FROM provider_customers WHERE app_id = $1 AND tenant_id = $2 AND account = $3",
        &args![app, tenant, account],
    )?;
    Ok(found.map(|(id,)| id))
}

/// Whoever comes first counts.
pub(super) fn put_customer(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, account: &str, id: &str) -> Result<()> {
    tx.run(
        "INSERT INTO provider_customers (tenant_id, account, app_id, customer_id) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (tenant_id, account) DO NOTHING",
        &args![tenant, account, app, id],
    )
}

/// Something of ours that an account of the provider knows.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) app: AppId,
    pub(super) account: String,
    pub(super) kind: &'static str,
    pub(super) key: String,
}

/// The provider's id of something that was made there.
pub(super) fn object(tx: &mut Tx<'_>, place: &Place) -> Result<Option<String>> {
    let Place { app, account, kind, key } = place;
    let found: Option<(String,)> = tx.opt(
        "SELECT object_id FROM provider_objects WHERE app_id = $1 AND account = $2 AND kind = $3 AND key = $4",
        &args![*app, account, *kind, key],
    )?;
    Ok(found.map(|(id,)| id))
}

pub(super) fn put_object(tx: &mut Tx<'_>, place: &Place, id: &str, about: Option<&Bought>) -> Result<()> {
    let Place { app, account, kind, key } = place;
    tx.run(
        "INSERT INTO provider_objects (app_id, account, kind, key, object_id, about) VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT (app_id, account, kind, key) DO UPDATE SET object_id = excluded.object_id, about = excluded.about",
        &args![*app, account, *kind, key, id, about.map(Json)],
    )
}

/// What is bought at a price of the provider.
pub(super) fn bought_at(tx: &mut Tx<'_>, app: AppId, price: &str) -> Result<Option<Bought>> {
    let found: Option<(Json<Bought>,)> = tx.opt(
        "SELECT about FROM provider_objects WHERE app_id = $1 AND object_id = $2 AND about IS NOT NULL LIMIT 1",
        &args![app, price],
    )?;
    Ok(found.map(|(about,)| about.0))
}

row! { Intent = "provider_intents" { id, app: "app_id", tenant: "tenant_id", work as Json, actor as Json, attempts } }

pub(super) fn insert_intent(tx: &mut Tx<'_>, intent: &Intent, next_at: Timestamp) -> Result<()> {
    let Intent { id, app, tenant, work, actor, attempts } = intent;
    tx.run(
        "INSERT INTO provider_intents (id, app_id, tenant_id, kind, work, actor, next_at, attempts) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        &args![*id, *app, *tenant, work.kind(), Json(work), Json(actor), next_at, *attempts],
    )
}

/// What is still to be changed or ended there for a workspace.
pub(super) fn changes_waiting(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Vec<Intent>> {
    tx.all(
        sql!(
            "SELECT ",
            Intent::COLUMNS,
            " FROM provider_intents WHERE app_id = $1 AND tenant_id = $2 AND kind <> 'checkout' ORDER BY id"
        ),
        &args![app, tenant],
    )
}

/// Whether anything is still to be done there for a workspace.
pub(super) fn is_anything_waiting(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<bool> {
    tx.exists("SELECT 1 FROM provider_intents WHERE app_id = $1 AND tenant_id = $2 LIMIT 1", &args![app, tenant])
}

/// Whoever is about to get the address of a checkout there will find that nobody wants it any more.
pub(super) fn drop_checkouts(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<()> {
    tx.run(
        "DELETE FROM provider_intents WHERE app_id = $1 AND tenant_id = $2 AND kind = 'checkout'",
        &args![app, tenant],
    )
}

/// The newest word counts: earlier ones that are not finished are dropped.
pub(super) fn supersede_updates(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<()> {
    tx.run("DELETE FROM provider_intents WHERE app_id = $1 AND tenant_id = $2 AND kind = 'update'", &args![app, tenant])
}

/// False when somebody else has finished it.
pub(super) fn delete_intent(tx: &mut Tx<'_>, app: AppId, id: IntentId) -> Result<bool> {
    tx.changes_one("DELETE FROM provider_intents WHERE app_id = $1 AND id = $2", &args![app, id])
}

pub(super) fn postpone_intent(tx: &mut Tx<'_>, app: AppId, id: IntentId, next_at: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE provider_intents SET next_at = $3, attempts = attempts + 1 WHERE app_id = $1 AND id = $2",
        &args![app, id, next_at],
    )
}

pub(super) const INTENTS_DUE: &str =
    sql!("SELECT ", Intent::COLUMNS, " FROM provider_intents WHERE next_at <= $1 ORDER BY next_at LIMIT $2");
pub(super) const NEXT_INTENT: &str = "SELECT min(next_at) FROM provider_intents";

/// A callback that waits to be acted on.
pub(super) struct Waiting {
    pub(super) app: AppId,
    pub(super) event: String,
    pub(super) payload: String,
    pub(super) attempts: u32,
}

row! { Waiting = "provider_events" { app: "app_id", event: "event_id", payload, attempts } }

pub(super) const EVENTS_DUE: &str = sql!(
    "SELECT ",
    Waiting::COLUMNS,
    " FROM provider_events WHERE next_at <= $1 AND payload IS NOT NULL ORDER BY next_at LIMIT $2"
);
pub(super) const NEXT_EVENT: &str = "SELECT min(next_at) FROM provider_events WHERE next_at IS NOT NULL";

/// False when somebody else was faster.
pub(super) fn finish_event(tx: &mut Tx<'_>, app: AppId, event: &str) -> Result<bool> {
    tx.changes_one(
        "UPDATE provider_events SET next_at = NULL, payload = NULL \
         WHERE app_id = $1 AND event_id = $2 AND next_at IS NOT NULL",
        &args![app, event],
    )
}

pub(super) fn postpone_event(tx: &mut Tx<'_>, app: AppId, event: &str, next_at: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE provider_events SET next_at = $3, attempts = attempts + 1 \
         WHERE app_id = $1 AND event_id = $2 AND next_at IS NOT NULL",
        &args![app, event, next_at],
    )
}

pub(super) fn put_endpoint(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    tx.run(
        "INSERT INTO provider_endpoints (app_id, next_at, attempts) VALUES ($1, $2, 0) \
         ON CONFLICT (app_id) DO UPDATE SET next_at = excluded.next_at, attempts = 0",
        &args![app, tx.now()],
    )
}

pub(super) const ENDPOINTS_DUE: &str =
    "SELECT app_id, attempts FROM provider_endpoints WHERE next_at <= $1 ORDER BY next_at LIMIT $2";
pub(super) const NEXT_ENDPOINT: &str = "SELECT min(next_at) FROM provider_endpoints";

pub(super) fn delete_endpoint(tx: &mut Tx<'_>, app: AppId) -> Result<bool> {
    tx.changes_one("DELETE FROM provider_endpoints WHERE app_id = $1", &args![app])
}

pub(super) fn postpone_endpoint(tx: &mut Tx<'_>, app: AppId, next_at: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE provider_endpoints SET next_at = $2, attempts = attempts + 1 WHERE app_id = $1",
        &args![app, next_at],
    )
}
