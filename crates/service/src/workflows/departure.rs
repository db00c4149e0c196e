//! What billing has to say and do before a workspace goes. The deletion asks through this interface, so that it needs to
//! know nothing of subscriptions and their provider.

use billing::{
    Billing,
    providers::{self, Settled},
    subscriptions::{self, wire::SubscriptionView},
    usage,
};
use futures_util::future::BoxFuture;
use kernel::{AppId, Error, Result, TenantId};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::Tx;

/// Why a workspace cannot be deleted now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Blocker {
    /// A stable name for the cause.
    pub code: String,
    /// What to do about it.
    pub message: String,
}

impl Blocker {
    pub fn new(code: &str, message: &str) -> Self {
        Self { code: code.to_owned(), message: message.to_owned() }
    }
}

/// What a workspace would leave behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Farewell {
    pub usage_events: i64,
    /// As the billing routes show it.
    pub subscription: Option<Map<String, Value>>,
    /// What the payment provider holds.
    pub provider_subscription: Option<Map<String, Value>>,
    pub blockers: Vec<Blocker>,
}

/// Billing's part in a deletion.
pub trait Departure: Send + Sync {
    /// Looks only.
    fn look(&self, app: AppId, tenant: TenantId) -> BoxFuture<'_, Result<Farewell>>;

    /// Sets the provider's subscription to cancel at the end of its period, without refund or proration. Called before
    /// anything is deleted, and again when the deletion is tried again; an error keeps the workspace.
    fn settle(&self, app: AppId, tenant: TenantId) -> BoxFuture<'_, Result<Settled>>;

    /// Whether nothing was bought since, in the transaction that deletes the workspace and under its lock.
    fn is_settled(&self, tx: &mut Tx<'_>, app: AppId, tenant: TenantId, settled: &Settled) -> Result<bool>;
}

/// Billing's own answer.
#[derive(Clone)]
pub struct LeavingBilling {
    pub billing: Billing,
}

impl Departure for LeavingBilling {
    fn look(&self, app: AppId, tenant: TenantId) -> BoxFuture<'_, Result<Farewell>> {
        Box::pin(async move {
            let looked = self.billing.tenancy.db.snapshot(move |tx| {
                let subscription = subscriptions::find(tx, app, tenant)?;
                let shown = subscription.as_ref().map(|found| serde_json::to_value(SubscriptionView::from(found)));
                let shown = shown.transpose().map_err(Error::internal)?;
                Ok((usage::count_events(tx, app, tenant)?, shown))
            });
            let (usage_events, shown) = looked.await?;
            let there = self.billing.at_provider(app, tenant).await?;
            let there = there.map(|there| json!({ "id": there.subscription, "customer": there.customer }));
            Ok(Farewell {
                usage_events,
                subscription: shown.and_then(|shown| shown.as_object().cloned()),
                provider_subscription: there.and_then(|there| there.as_object().cloned()),
                ..Farewell::default()
            })
        })
    }

    fn settle(&self, app: AppId, tenant: TenantId) -> BoxFuture<'_, Result<Settled>> {
        Box::pin(self.billing.leave(app, tenant))
    }

    fn is_settled(&self, tx: &mut Tx<'_>, app: AppId, tenant: TenantId, settled: &Settled) -> Result<bool> {
        providers::is_settled(tx, app, tenant, settled)
    }
}
