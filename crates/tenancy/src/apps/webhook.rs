//! Where an app's events go. The operator sees the same three values that the app's profile holds.

use std::{borrow::Cow, fmt};

use kernel::{AppId, Result, WebUrl};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use web::{Given, Json, Patch, Path, Routes, State, Valid, Validate};

use super::{Profile, ProfileChange};
use crate::{Authority, Tenancy, callers::Operator};

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

/// An app's webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Webhook {
    enabled: bool,
    url: Option<String>,
    /// Event types to send; empty means all.
    events: Vec<String>,
}

impl Webhook {
    fn of(profile: Profile) -> Self {
        Self { enabled: profile.webhook_enabled, url: profile.webhook_url, events: profile.webhook_events }
    }
}

/// The body of `PUT /admin/apps/{app_id}/webhook`: a missing member keeps its value.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WebhookChange {
    enabled: Given<bool>,
    url: Patch<WebUrl>,
    /// Event types to send; empty means all.
    events: Patch<Vec<EventType>>,
}

impl Validate for WebhookChange {}

pub(super) fn routes() -> Routes<Tenancy> {
    Routes::new("Apps").get("/admin/apps/{app_id}/webhook", get, "Get an app's webhook").put(
        "/admin/apps/{app_id}/webhook",
        change,
        "Change an app's webhook",
    )
}

async fn get(_: Operator, State(tenancy): State<Tenancy>, Path(app): Path<AppId>) -> Result<Json<Webhook>> {
    let app = tenancy.db.read(move |tx| super::get(tx, app)).await?;
    Ok(Json(Webhook::of(app.profile)))
}

async fn change(
    caller: Operator,
    State(tenancy): State<Tenancy>,
    Path(app): Path<AppId>,
    Valid(change): Valid<WebhookChange>,
) -> Result<Json<Webhook>> {
    let WebhookChange { enabled, url, events } = change;
    let change = ProfileChange {
        webhook_enabled: enabled,
        webhook_url: url,
        webhook_events: events,
        ..ProfileChange::default()
    };
    let db = tenancy.db.by(&caller);
    let app = db.write(move |tx| super::update(tx, &tenancy, app, &Authority::unlimited(), change.clone())).await?;
    Ok(Json(Webhook::of(app.profile)))
}
