//! Which plan a workspace is on and what it pays. A plan that is set here counts at once, whoever is to be paid: the
//! word of whoever holds the key stands. It starts no trial.

pub mod http;
mod rules;

use kernel::{AppId, Currency, Error, Result, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use spine::emit;
use store::Tx;
use tenancy::{
    App,
    workspaces::{self, BillingView, PaymentStatus},
};

pub use rules::{PlanChoice, view_for_plan};

use crate::{
    catalog::{Plan, Price, PriceOffer, find_plan_by_key, plans},
    facts::{PriceChanged, SubscriptionPlanChanged},
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
    pub price: Option<Price>,
    pub trial: bool,
    /// A day that has begun counts; 0 without a trial.
    pub trial_days_left: u32,
}

pub fn get(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<PaymentDetails> {
    let view = workspaces::billing_view(tx, app, tenant)?;
    let plan = match &view.plan_key {
        Some(key) => find_plan_by_key(tx, app, key)?,
        None => None,
    };
    details(view, plan, tx.now())
}

fn details(view: BillingView, plan: Option<Plan>, now: Timestamp) -> Result<PaymentDetails> {
    let offer = |(currency, interval): (Currency, String)| {
        let recurrence_interval = interval.parse().map_err(Error::internal)?;
        Ok::<_, Error>(PriceOffer { currency, recurrence_interval })
    };
    let price_offer = view.price.map(offer).transpose()?;
    let price = plan.as_ref().zip(price_offer).and_then(|(plan, offer)| plan.price(offer).copied());
    let trial_days_left = rules::days_left(view.trial_ends_at, now);
    Ok(PaymentDetails {
        plan_key: view.plan_key,
        price_offer,
        status: PaymentStatus {
            should_select_plan: view.should_select_plan,
            should_setup_payments: view.should_setup_payments,
            payments_enabled: view.payments_enabled,
            provider: view.provider,
        },
        details: PlanDetails { plan, price, trial: trial_days_left > 0, trial_days_left },
    })
}

/// Puts the workspace on a plan.
pub fn choose(tx: &mut Tx<'_>, app: &App, tenant: TenantId, choice: &PlanChoice) -> Result<PaymentDetails> {
    workspaces::lock(tx, tenant)?;
    let before = workspaces::billing_view(tx, app.id, tenant)?;
    let plan = plan_to_assign(tx, app.id, "planKey", &choice.plan_key)?;
    let price = rules::chosen_price(&plan, choice.price_offer)?;
    let after = view_for_plan(app, Some(&plan), price.as_ref(), before.payments_enabled);
    workspaces::set_billing_view(tx, app.id, tenant, &after)?;
    let (from_plan, to_plan) = (before.plan_key, after.plan_key.clone());
    if from_plan != to_plan {
        emit(tx, (app.id, tenant), &SubscriptionPlanChanged { workspace_id: tenant, from_plan, to_plan })?;
    } else if before.price != after.price {
        emit(tx, (app.id, tenant), &PriceChanged { workspace_id: tenant, plan: to_plan })?;
    }
    details(after, Some(plan), tx.now())
}

/// What a new workspace's billing says, whether it names a plan or not. An unknown key is an invalid `field`.
pub fn view_for_new_workspace(tx: &mut Tx<'_>, app: &App, field: &str, plan: Option<&str>) -> Result<BillingView> {
    let plan = plan.map(|key| plan_to_assign(tx, app.id, field, key)).transpose()?;
    Ok(view_for_plan(app, plan.as_ref(), None, false))
}

fn plan_to_assign(tx: &mut Tx<'_>, app: AppId, field: &str, key: &str) -> Result<Plan> {
    plans::assign(tx, app, key)?.ok_or_else(|| Error::invalid(field, "must be the key of a plan of this app"))
}
