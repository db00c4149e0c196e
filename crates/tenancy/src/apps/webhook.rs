//! Where an app's events go. The operator sees the same three values that the app's profile holds.

use std::borrow::Cow;

use kernel::{AppId, Problems, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use web::{Given, Json, Patch, Path, Routes, State, Valid, Validate};

use super::{Profile, ProfileChange, rules, rules::WEB_URL};
use crate::{Tenancy, callers::Operator};

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

pub fn is_event(name: &str) -> bool {
    EVENTS.contains(&name)
}

/// The name of an event type in the documentation.
pub enum EventType {}

impl JsonSchema for EventType {
    fn schema_name() -> Cow<'static, str> {
        "EventType".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": EVENTS })
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
    #[schemars(length(max = 2048), regex(pattern = WEB_URL))]
    url: Patch<String>,
    /// Event types to send; empty means all.
    #[schemars(with = "Patch<Vec<EventType>>", length(max = 1000))]
    events: Patch<Vec<String>>,
}

impl Validate for WebhookChange {
    fn validate(&self, problems: &mut Problems) {
        if let Some(url) = self.url.value() {
            problems.check("url", rules::is_web_url(url), "must be an absolute http or https URL");
        }
        let events = self.events.value().map_or(&[][..], Vec::as_slice);
        problems.list("events", events);
        for (index, event) in events.iter().enumerate() {
            problems.check(&format!("events[{index}]"), is_event(event), "is not an event type");
        }
    }
}

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
    _: Operator,
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
    let db = tenancy.db.clone();
    let app = db.write(move |tx| super::update(tx, &tenancy, app, change.clone())).await?;
    Ok(Json(Webhook::of(app.profile)))
}
