//! `POST /admin/apps/{app_id}/webhook/test`: sends a sample now and says what the receiver made of it. Nothing is kept.

use kernel::{AppId, Code, Error, Result, TenantId, WebUrl};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::{
    apps::{self, EventType},
    callers::Operator,
};
use web::{Json, Path, Routes, State, ValidOrNone, Validate};

use crate::{
    Signals,
    endpoints::of_profile,
    events::{Envelope, EventDefinition, TYPES, TestEventId},
    secrets,
    sender::{Parcel, send},
};

pub(super) fn routes() -> Routes<Signals> {
    Routes::new("Webhooks")
        .post("/admin/apps/{app_id}/webhook/test", test, "Send a signed sample to the receiver now")
        .description("Signed with the app's secret, also for another URL, and kept nowhere.")
        .answers(409, "There is no URL to send to")
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct TestDelivery {
    /// `tenant.created` without it.
    #[serde(rename = "type")]
    event_type: Option<EventType>,
    /// The app's webhook without it.
    url: Option<WebUrl>,
}

impl Validate for TestDelivery {}

/// What the receiver made of it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TestOutcome {
    delivered: bool,
    /// `null` without an answer.
    response_code: Option<i64>,
    #[schemars(range(min = 0))]
    latency_ms: i64,
    /// `null` when it was delivered; else what went wrong, with the beginning of what the receiver said.
    error: Option<String>,
}

async fn test(
    _: Operator,
    State(signals): State<Signals>,
    Path(app): Path<AppId>,
    ValidOrNone(wanted): ValidOrNone<TestDelivery>,
) -> Result<Json<TestOutcome>> {
    let wanted = wanted.unwrap_or_default();
    let keyring = signals.tenancy.keyring.clone();
    let prepared = signals.db.write(move |tx| {
        let url = apps::get(tx, app)?.profile.webhook_url;
        let endpoint = of_profile(app);
        secrets::ensure(tx, &keyring, app, endpoint)?;
        let secrets = secrets::signing(tx, &keyring, &[endpoint])?;
        Ok((url, secrets.into_iter().map(|(_, secret)| secret).collect()))
    });
    let (url, secrets) = prepared.await?;
    let url = wanted.url.map(String::from).or(url);
    let url = url.ok_or_else(|| Error::new(Code::NoWebhookUrl, "The app has no webhook URL. Set one, or send one."))?;
    let name = wanted.event_type.map(|name| name.to_string());
    let event = name.as_deref().and_then(EventDefinition::find).unwrap_or(&TYPES[0]);
    let (id, workspace): (TestEventId, TenantId) = (signals.db.ids().next(), signals.db.ids().next());
    let data = event.sample_data(workspace);
    let now = signals.db.clock().now();
    let body = Envelope::sample(id.to_string(), event.name, now, app, workspace, &data).to_json()?;
    let parcel = Parcel { event_id: id.to_string(), event_type: event.name.to_owned(), url, body, secrets };
    let answer = send(&signals.outbound, now, parcel).await;
    let error = match (&answer.error, answer.said.trim()) {
        (None, _) => None,
        (Some(error), "") => Some(error.clone()),
        (Some(error), said) => Some(format!("{error} It said: {said}")),
    };
    Ok(Json(TestOutcome {
        delivered: error.is_none(),
        response_code: answer.response_code,
        latency_ms: answer.latency_ms,
        error,
    }))
}
