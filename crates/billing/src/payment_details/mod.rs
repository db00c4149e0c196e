//! Which plan a workspace is on and what it pays. A plan that is set here counts at once, whoever is to be paid: the
//! word of whoever holds the key stands. It starts no trial.

pub mod http;
mod rules;

use kernel::{AppId, Result, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use store::Tx;
use tenancy::{
    App, credentials,
    workspaces::{self, PaymentStatus},
};

pub use rules::PlanChoice;
pub(crate) use rules::days_left;

use crate::{
    catalog::{Plan, PriceOffer, find_plan_by_key},
    subscriptions::{self, BoughtPrice, Subscription},
};

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaymentDetails {
    pub plan_key: Option<String>,
    pub price_offer: Option<PriceOffer>,
    pub status: PaymentStatus,
    pub details: PlanDetails,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanDetails {
    pub plan: Option<Plan>,
    /// What the workspace pays, whatever the plan costs by now.
    pub price: Option<BoughtPrice>,
    pub trial: bool,
    /// A day that has begun counts; 0 without a trial.
    pub trial_days_left: u32,
}

pub fn get(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<PaymentDetails> {
    workspaces::billing_view(tx, app, tenant)?;
    let has_provider = credentials::has_payprovider(tx, app)?;
    let subscription = subscriptions::find(tx, app, tenant)?.filter(|found| !found.agreement.is_over());
    let plan = match &subscription {
        Some(subscription) => find_plan_by_key(tx, app, &subscription.agreement.bought.plan.key)?,
        None => None,
    };
    Ok(details(has_provider, plan, subscription.as_ref(), tx.now()))
}

fn details(
    has_provider: bool,
    plan: Option<Plan>,
    subscription: Option<&Subscription>,
    now: Timestamp,
) -> PaymentDetails {
    let agreement = subscription.map(|subscription| &subscription.agreement);
    let price = agreement.and_then(|agreement| agreement.bought.price);
    let trial_days_left = days_left(agreement.and_then(|agreement| agreement.trial_until()), now);
    PaymentDetails {
        plan_key: plan.as_ref().map(|plan| plan.key.clone()),
        price_offer: price.map(|price| price.offer()),
        status: subscriptions::view_of(agreement).payment_status(has_provider),
        details: PlanDetails { plan, price, trial: trial_days_left > 0, trial_days_left },
    }
}

/// Puts the workspace on a plan.
pub fn choose(tx: &mut Tx<'_>, app: &App, tenant: TenantId, choice: &PlanChoice) -> Result<PaymentDetails> {
    subscriptions::assign_by_key(tx, app, tenant, &choice.plan_key, choice.price_offer)?;
    get(tx, app.id, tenant)
}
