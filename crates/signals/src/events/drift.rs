//! The data of events about usage that differs from the payment provider's, which nothing emits yet.

use kernel::TenantId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far the provider's total of a metric is off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventDriftData {
    pub workspace_id: TenantId,
    pub metric: String,
    pub expected: i64,
    pub actual: i64,
}

spine::fact! { UsageDriftResolved = "usage.drift_resolved" (EventDriftData) }
spine::fact! { UsageDriftUnrecoverable = "usage.drift_unrecoverable" (EventDriftData) }
