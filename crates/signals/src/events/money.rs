//! The data of events about money that nothing emits yet.

use std::collections::BTreeMap;

use kernel::{Currency, TenantId, Timestamp, id_kinds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

id_kinds! {
    /// An invoice as events name it.
    EventInvoiceId(EventInvoice) = "invoice";
}

/// A payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventPaymentData {
    pub workspace_id: TenantId,
    /// In major units, tax included.
    pub amount: Number,
    pub currency: Currency,
    pub invoice_id: EventInvoiceId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tax_amount: Option<Number>,
}

/// How far the provider's total of a metric is off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventDriftData {
    pub workspace_id: TenantId,
    pub metric: String,
    pub expected: i64,
    pub actual: i64,
}

spine::fact! { PaymentSucceeded = "payment.succeeded" (EventPaymentData) }
spine::fact! {
    PaymentFailed = "payment.failed" {
        workspace_id: TenantId,
        /// In major units, tax included.
        amount: Number,
        currency: Currency,
        invoice_id: EventInvoiceId,
        attempt: i64,
        /// The provider's decline code, or `payment_failed`.
        past_due_reason: String,
        card_last4: Option<String>,
    }
}
spine::fact! {
    QuotaExhausted = "quota.exhausted" {
        workspace_id: TenantId,
        metric: String,
        used: i64,
        limit: i64,
        period_start: Timestamp,
        period_end: Timestamp,
    }
}
spine::fact! {
    EntitlementsChanged = "entitlements.changed" {
        workspace_id: TenantId,
        /// The whole set.
        entitlements: BTreeMap<String, bool>,
        /// The names of those that changed.
        changed: Vec<String>,
    }
}
spine::fact! { UsageDriftResolved = "usage.drift_resolved" (EventDriftData) }
spine::fact! { UsageDriftUnrecoverable = "usage.drift_unrecoverable" (EventDriftData) }
