//! What this room tells: facts about the catalog, subscriptions, payments, entitlements and usage.
//!
//! `subscription.*`, except `updated`, `price_changed` and `change_scheduled`, and `payment.*`, `quota.*`, `entitlements.*` and
//! `usage.drift_*` are what a webhook of that type sends as its `data`.

use std::collections::BTreeMap;

use kernel::{Currency, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use spine::{FactKind as _, Reader};
use tenancy::facts::{AppDeleted, AppImported, Change};

use crate::{
    catalog::{PlanId, TaxId},
    providers::stripe::endpoints,
    subscriptions::{Status, SubscriptionId},
    usage::UsageEventId,
};

/// What wakes those who work out entitlements again.
pub(crate) const PLAN_CHANGES: Reader = Reader::of("entitlements", &[PlanChanged::KIND]);

/// What keeps this node's memory of plans true.
pub(crate) const OFFERS: Reader = Reader::of("offers", &[PlanChanged::KIND, AppDeleted::KIND, AppImported::KIND]);

/// Everybody of this room who reads facts.
pub fn readers() -> Vec<Reader> {
    vec![PLAN_CHANGES, OFFERS, endpoints::READER]
}

/// What is told outside about subscriptions, payments, entitlements and usage.
pub(crate) const EVENTS: &[&str] = &[
    SubscriptionCreated::KIND,
    SubscriptionPlanChanged::KIND,
    SubscriptionTrialStarted::KIND,
    SubscriptionTrialEnded::KIND,
    SubscriptionPastDue::KIND,
    SubscriptionReactivated::KIND,
    SubscriptionCanceled::KIND,
    PaymentSucceeded::KIND,
    PaymentFailed::KIND,
    EntitlementsChanged::KIND,
    QuotaExhausted::KIND,
];

/// A subscription as facts and webhooks name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionData {
    pub workspace_id: TenantId,
    pub subscription_id: SubscriptionId,
    /// The plan's key.
    pub plan: String,
    pub status: Status,
    /// When access ends, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
}

/// The same with the keys of both plans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanChangeData {
    pub workspace_id: TenantId,
    pub subscription_id: SubscriptionId,
    pub plan: String,
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
    pub from_plan: String,
    pub to_plan: String,
}

/// How far the provider's total of a metric is off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftData {
    pub workspace_id: TenantId,
    pub metric: String,
    pub expected: i64,
    pub actual: i64,
}

spine::facts! {
    /// A plan of the catalog was made, changed or deleted.
    PlanChanged = "plan.changed" { plan_id: PlanId, key: String, change: Change }
    /// A tax was made, changed or deleted.
    TaxChanged = "tax.changed" { tax_id: TaxId, name: String, change: Change }
    /// A workspace pays another price of the plan that it is on.
    PriceChanged = "subscription.price_changed" { workspace_id: TenantId, plan: String }
    /// A free plan was chosen for when the paid period ends, or that choice was dropped.
    PlanChangeScheduled = "subscription.change_scheduled" { workspace_id: TenantId, plan: Option<String> }
    /// A subscription was created.
    SubscriptionCreated = "subscription.created" (SubscriptionData)
    /// A workspace was put on another plan.
    SubscriptionPlanChanged = "subscription.plan_changed" (PlanChangeData)
    /// A trial started.
    SubscriptionTrialStarted = "subscription.trial_started" (SubscriptionData)
    /// A trial ended and nobody had paid.
    SubscriptionTrialEnded = "subscription.trial_ended" (SubscriptionData)
    /// A renewal was not paid.
    SubscriptionPastDue = "subscription.past_due" (SubscriptionData)
    /// A subscription that was about to end continues.
    SubscriptionReactivated = "subscription.reactivated" (SubscriptionData)
    /// A subscription was canceled; access lasts until `endsAt`.
    SubscriptionCanceled = "subscription.canceled" (SubscriptionData)
    /// What tokens say of a subscription changed in another way: it ended at its time, or is paid for from now on.
    SubscriptionUpdated = "subscription.updated" (SubscriptionData)
    /// An invoice was paid.
    PaymentSucceeded = "payment.succeeded" {
        workspace_id: TenantId,
        /// What was paid, tax included, in major units
        amount: Number,
        currency: Currency,
        invoice_id: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tax_amount: Option<Number>,
    }
    /// A renewal was not paid.
    PaymentFailed = "payment.failed" {
        workspace_id: TenantId,
        /// What is due, tax included, in major units
        amount: Number,
        currency: Currency,
        invoice_id: String,
        /// How often payment was tried
        attempt: u32,
        /// The provider's decline code
        past_due_reason: String,
        card_last4: Option<String>,
    }
    /// What a workspace may use differs from what was told last.
    EntitlementsChanged = "entitlements.changed" {
        workspace_id: TenantId,
        /// The whole set
        entitlements: BTreeMap<String, bool>,
        /// The names that differ
        changed: Vec<String>,
    }
    /// The app grants a workspace something else beside its plan.
    OverridesChanged = "overrides.changed" { workspace_id: TenantId }
    /// A metered quota was used up; once for each metric and period.
    QuotaExhausted = "quota.exhausted" {
        workspace_id: TenantId,
        metric: String,
        used: i64,
        limit: i64,
        period_start: Timestamp,
        period_end: Timestamp,
    }
    /// The provider's total of a metric was another, and is right again.
    UsageDriftResolved = "usage.drift_resolved" (DriftData)
    /// The provider's total of a metric stays another, however often ours is sent.
    UsageDriftUnrecoverable = "usage.drift_unrecoverable" (DriftData)
    /// A gauge was set.
    GaugeSet = "usage.gauge_set" { workspace_id: TenantId, metric: String, value: i64 }
    /// A mistaken event was taken out of its period.
    UsageVoided = "usage.voided" { workspace_id: TenantId, event_id: UsageEventId, metric: String, value: i64 }
}
