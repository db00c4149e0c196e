//! Where an app's events go. The operator sees the same three values that the app's profile holds.

use kernel::{AppId, Result, WebUrl};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::{Given, Json, Patch, Path, Routes, State, Valid, Validate};

use crate::{
    Authority, Tenancy,
    apps::{self, EventType, Profile, ProfileChange},
    callers::Operator,
};

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
    let app = tenancy.db.read(move |tx| apps::get(tx, app)).await?;
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
