//! `GET /webhooks/event-types`.

use kernel::Result;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use spine::WebhookEventId;
use tenancy::callers::{AnyMember, UserCaller};
use web::{Json, Routes, State};

use super::{Category, Envelope, TYPES};
use crate::Signals;

pub(crate) fn routes() -> Routes<Signals> {
    Routes::new("Webhooks").get("/webhooks/event-types", list, "List the event types, each with a sample")
}

#[derive(Serialize, JsonSchema)]
struct EventTypes {
    events: Vec<EventTypeView>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EventTypeView {
    #[serde(rename = "type")]
    name: &'static str,
    category: Category,
    description: &'static str,
    /// A whole envelope, with the caller's app and workspace.
    sample_payload: Value,
}

async fn list(UserCaller(user, _): UserCaller<AnyMember>, State(signals): State<Signals>) -> Result<Json<EventTypes>> {
    let (app, workspace, now) = (user.app(), user.tenant(), signals.db.clock().now());
    let view = |event: &super::EventDefinition| {
        let data = event.sample_data(workspace);
        let id: WebhookEventId = signals.db.ids().next();
        let envelope = Envelope::sample(id.to_string(), event.name, now, app, workspace, &data);
        let sample_payload = serde_json::to_value(envelope).map_err(kernel::Error::internal)?;
        Ok(EventTypeView { name: event.name, category: event.category, description: event.description, sample_payload })
    };
    Ok(Json(EventTypes { events: TYPES.iter().map(view).collect::<Result<_>>()? }))
}
