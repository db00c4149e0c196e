//! `/admin/apps/{app_id}/webhook/…` for the operator: the signing secret, and all deliveries of an app.

use kernel::{AppId, Error, Result, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::{
    apps::{self, EventType},
    callers::Operator,
};
use web::{Json, Page, Params, Path, Routes, State};

use super::{
    Delivery, DeliveryId, DeliveryRow, DeliveryStatus, DetailedDelivery, delivery_of, http::Replayed, replay, store,
};
use crate::{
    Signals,
    endpoints::{EndpointId, of_profile},
    secrets::{self, SecretView},
};

pub(super) fn routes() -> Routes<Signals> {
    Routes::new("Webhooks")
        .get("/admin/apps/{app_id}/webhook/secret", secret, "Get the secret that signs an app's deliveries")
        .post("/admin/apps/{app_id}/webhook/secret/rotate", rotate, "Replace the secret that signs an app's deliveries")
        .description("The previous secret signs beside the new one for five minutes.")
        .get(
            "/admin/apps/{app_id}/webhook/deliveries",
            list,
            "List an app's deliveries, newest first; 20 without a limit",
        )
        .get("/admin/apps/{app_id}/webhook/deliveries/{delivery_id}", get, "Get a delivery with every attempt")
        .post(
            "/admin/apps/{app_id}/webhook/deliveries/{delivery_id}/replay",
            replay_one,
            "Send a delivery again, as a new one",
        )
        .answers(409, "There is no URL to send to, or the webhook is disabled")
}

async fn secret(_: Operator, State(signals): State<Signals>, Path(app): Path<AppId>) -> Result<Json<SecretView>> {
    let keyring = signals.tenancy.keyring.clone();
    let secret = signals.db.write(move |tx| {
        apps::hold(tx, app)?;
        secrets::current(tx, &keyring, app, of_profile(app))
    });
    Ok(Json(secret.await?))
}

async fn rotate(caller: Operator, State(signals): State<Signals>, Path(app): Path<AppId>) -> Result<Json<SecretView>> {
    let keyring = signals.tenancy.keyring.clone();
    let rotated = signals.db.by(&caller).write(move |tx| {
        apps::hold(tx, app)?;
        secrets::rotate(tx, &keyring, app, of_profile(app))
    });
    Ok(Json(rotated.await?))
}

/// Which deliveries are listed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeliveryFilter {
    status: Option<DeliveryStatus>,
    event_type: Option<EventType>,
    tenant_id: Option<TenantId>,
    endpoint_id: Option<EndpointId>,
    /// Made at this time or later.
    from: Option<Timestamp>,
    /// Made at this time or earlier.
    to: Option<Timestamp>,
}

async fn list(
    _: Operator,
    State(signals): State<Signals>,
    Path(app): Path<AppId>,
    Params(filter): Params<DeliveryFilter>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<Delivery>>> {
    let wanted = store::Wanted {
        status: filter.status,
        event_type: filter.event_type.map(|name| name.to_string()),
        tenant: filter.tenant_id,
        endpoint: filter.endpoint_id,
        from: filter.from,
        to: filter.to,
    };
    let rows = signals.db.read(move |tx| {
        apps::get(tx, app)?;
        store::list(tx, app, &wanted, page)
    });
    Ok(Json(rows.await?.into_iter().map(DeliveryRow::view).collect()))
}

async fn get(
    _: Operator,
    State(signals): State<Signals>,
    Path((app, id)): Path<(AppId, DeliveryId)>,
) -> Result<Json<DetailedDelivery>> {
    let found = signals.db.read(move |tx| delivery_of(tx, app, id)).await?;
    Ok(Json(found.ok_or_else(|| Error::not_found("delivery"))?.detailed()))
}

async fn replay_one(
    caller: Operator,
    State(signals): State<Signals>,
    Path((app, id)): Path<(AppId, DeliveryId)>,
) -> Result<Json<Replayed>> {
    let due = signals.due.clone();
    let replayed = signals.db.by(&caller).write(move |tx| replay::replay(tx, &due, app, None, id));
    Ok(Json(Replayed { ok: true, delivery_id: replayed.await? }))
}
