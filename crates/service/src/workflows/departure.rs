//! What billing has to say and do before a workspace goes. The deletion asks through this interface, so that it needs to
//! know nothing of subscriptions and their provider.

use billing::{
    subscriptions::{self, wire::SubscriptionView},
    usage,
};
use futures_util::future::BoxFuture;
use kernel::{AppId, Error, Result, TenantId};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use store::Db;

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
    fn settle(&self, app: AppId, tenant: TenantId) -> BoxFuture<'_, Result<()>>;
}

/// Billing's own answer.
#[derive(Clone)]
pub struct LeavingBilling {
    pub db: Db,
}

impl Departure for LeavingBilling {
    fn look(&self, app: AppId, tenant: TenantId) -> BoxFuture<'_, Result<Farewell>> {
        let looked = self.db.snapshot(move |tx| {
            let subscription = subscriptions::find(tx, app, tenant)?;
            let shown = subscription.as_ref().map(|found| serde_json::to_value(SubscriptionView::from(found)));
            let shown = shown.transpose().map_err(Error::internal)?;
            Ok(Farewell {
                usage_events: usage::count_events(tx, app, tenant)?,
                subscription: shown.and_then(|shown| shown.as_object().cloned()),
                ..Farewell::default()
            })
        });
        Box::pin(looked)
    }

    /// No subscription is at a provider outside, so there is nothing to cancel there.
    fn settle(&self, _: AppId, _: TenantId) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
