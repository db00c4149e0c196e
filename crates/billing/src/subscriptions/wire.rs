//! Subscriptions as they go over the wire.

use kernel::{Key, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::Validate;

use super::{Agreement, BoughtPlan, ScheduledChange, Status, Subscription, SubscriptionId};
use crate::catalog::{PriceOffer, plans::OfferedPlan};

/// The plan of a subscription.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SubscribedPlan {
    /// The plan's key.
    pub slug: String,
    pub name: String,
}

impl From<&BoughtPlan> for SubscribedPlan {
    fn from(plan: &BoughtPlan) -> Self {
        Self { slug: plan.key.clone(), name: plan.name.clone() }
    }
}

/// A plan that begins when the paid period ends.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ScheduledChange")]
pub struct ScheduledPlan {
    /// The plan's key.
    pub plan: String,
    pub at: Timestamp,
}

impl From<&ScheduledChange> for ScheduledPlan {
    fn from(change: &ScheduledChange) -> Self {
        Self { plan: change.plan.key.clone(), at: change.at }
    }
}

/// How the workspace's subscription stands.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SubscriptionState")]
pub struct BillingState {
    pub plan: SubscribedPlan,
    pub status: Status,
    /// When access ends or ended; in a trial, and once it was canceled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
    /// Present, and true, while access is gated: payment failed for too long, or a trial ran out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gate_engaged: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_change: Option<ScheduledPlan>,
}

impl From<&Agreement> for BillingState {
    fn from(agreement: &Agreement) -> Self {
        Self {
            plan: (&agreement.bought.plan).into(),
            status: agreement.status(),
            ends_at: agreement.ends_at(),
            gate_engaged: agreement.gate_engaged,
            scheduled_change: agreement.scheduled.as_ref().map(Into::into),
        }
    }
}

/// A subscription, as it is now.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Subscription")]
pub struct SubscriptionView {
    pub id: SubscriptionId,
    pub workspace_id: TenantId,
    #[serde(flatten)]
    pub state: BillingState,
    pub created_at: Timestamp,
}

impl From<&Subscription> for SubscriptionView {
    fn from(subscription: &Subscription) -> Self {
        Self {
            id: subscription.id,
            workspace_id: subscription.tenant,
            state: (&subscription.agreement).into(),
            created_at: subscription.created_at,
        }
    }
}

/// What a workspace has to do about its plan and its payments.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionStatus {
    /// Whether a payment method is set up.
    pub payments_enabled: bool,
    pub should_select_plan: bool,
    pub should_setup_payments: bool,
    pub payment_failed: bool,
    /// Whether the app sends people to plan selection by itself.
    pub payments_auto_redirect: bool,
    pub trial: bool,
    /// A day that has begun counts; 0 without a trial.
    pub trial_days_left: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<OfferedPlan>,
}

/// The body of `POST /account/subscription/select`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanSelection {
    /// The key of a free plan.
    pub plan_key: Key,
}

impl Validate for PlanSelection {}

/// The body of `POST /account/subscription/change`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanSwitch {
    pub plan_key: Key,
    /// One of the plan's prices; its first one without it.
    pub price_offer: Option<PriceOffer>,
}

impl Validate for PlanSwitch {}

/// The body of `POST /billing/subscriptions` and `POST /billing/trial/start`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanBySlug {
    /// The key of a plan.
    pub plan_slug: Option<Key>,
}

impl Validate for PlanBySlug {}
