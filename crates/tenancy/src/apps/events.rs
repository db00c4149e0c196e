//! The event types that a webhook can be told.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error as _};

/// Every event type there is.
pub const EVENTS: [&str; 19] = [
    "tenant.created",
    "tenant.updated",
    "tenant.deleted",
    "tenant_user.created",
    "tenant_user.updated",
    "tenant_user.deleted",
    "subscription.created",
    "subscription.plan_changed",
    "subscription.trial_started",
    "subscription.trial_ended",
    "subscription.past_due",
    "subscription.reactivated",
    "subscription.canceled",
    "payment.succeeded",
    "payment.failed",
    "quota.exhausted",
    "entitlements.changed",
    "usage.drift_resolved",
    "usage.drift_unrecoverable",
];

/// The name of an event type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventType(&'static str);

impl<'de> Deserialize<'de> for EventType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let name = Cow::<'de, str>::deserialize(deserializer)?;
        EVENTS.iter().find(|known| **known == name).map(|known| Self(known)).ok_or_else(|| D::Error::custom(NO_EVENT))
    }
}

const NO_EVENT: &str = "must be an event type";

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl JsonSchema for EventType {
    fn schema_name() -> Cow<'static, str> {
        "EventType".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": EVENTS, "x-message": NO_EVENT })
    }
}
