//! `/admin/apps/{app_id}/webhook/endpoints` for the operator.

use kernel::{AppId, Result};
use schemars::JsonSchema;
use serde::Serialize;
use tenancy::{apps, callers::Operator};
use web::{Created, Json, Page, Params, Path, Routes, State, Success, Valid};

use super::{Endpoint, EndpointChange, EndpointId, NewEndpoint};
use crate::{
    Signals,
    secrets::{self, SecretView},
};

pub(crate) fn routes() -> Routes<Signals> {
    Routes::new("Webhooks")
        .get("/admin/apps/{app_id}/webhook/endpoints", list, "List an app's further endpoints, newest first")
        .post(
            "/admin/apps/{app_id}/webhook/endpoints",
            create,
            "Add an endpoint; its signing secret is shown this once",
        )
        .get("/admin/apps/{app_id}/webhook/endpoints/{endpoint_id}", get, "Get an endpoint")
        .put("/admin/apps/{app_id}/webhook/endpoints/{endpoint_id}", update, "Change an endpoint")
        .delete("/admin/apps/{app_id}/webhook/endpoints/{endpoint_id}", delete, "Delete an endpoint")
        .post(
            "/admin/apps/{app_id}/webhook/endpoints/{endpoint_id}/secret/rotate",
            rotate,
            "Replace an endpoint's signing secret",
        )
        .description("The previous secret signs beside the new one for five minutes.")
}

/// The one time that the secret is shown.
#[derive(Serialize, JsonSchema)]
struct CreatedEndpoint {
    #[serde(flatten)]
    endpoint: Endpoint,
    secret: String,
}

async fn list(
    _: Operator,
    State(signals): State<Signals>,
    Path(app): Path<AppId>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<Endpoint>>> {
    let listed = signals.db.read(move |tx| {
        apps::get(tx, app)?;
        super::list(tx, app, page)
    });
    Ok(Json(listed.await?))
}

async fn create(
    caller: Operator,
    State(signals): State<Signals>,
    Path(app): Path<AppId>,
    Valid(new): Valid<NewEndpoint>,
) -> Result<Created<CreatedEndpoint>> {
    let keyring = signals.tenancy.keyring.clone();
    let created = signals.db.by(&caller).write(move |tx| super::create(tx, &keyring, app, &new));
    let (endpoint, secret) = created.await?;
    Ok(Created(CreatedEndpoint { endpoint, secret }))
}

async fn get(
    _: Operator,
    State(signals): State<Signals>,
    Path((app, id)): Path<(AppId, EndpointId)>,
) -> Result<Json<Endpoint>> {
    Ok(Json(signals.db.read(move |tx| super::get(tx, app, id)).await?))
}

async fn update(
    caller: Operator,
    State(signals): State<Signals>,
    Path((app, id)): Path<(AppId, EndpointId)>,
    Valid(change): Valid<EndpointChange>,
) -> Result<Json<Endpoint>> {
    let changed = signals.db.by(&caller).write(move |tx| super::update(tx, app, id, change.clone()));
    Ok(Json(changed.await?))
}

async fn delete(
    caller: Operator,
    State(signals): State<Signals>,
    Path((app, id)): Path<(AppId, EndpointId)>,
) -> Result<Success> {
    signals.db.by(&caller).write(move |tx| super::delete(tx, app, id)).await?;
    Ok(Success)
}

async fn rotate(
    caller: Operator,
    State(signals): State<Signals>,
    Path((app, id)): Path<(AppId, EndpointId)>,
) -> Result<Json<SecretView>> {
    let keyring = signals.tenancy.keyring.clone();
    let rotated = signals.db.by(&caller).write(move |tx| {
        apps::hold(tx, app)?;
        super::get(tx, app, id)?;
        secrets::rotate(tx, &keyring, app, id)
    });
    Ok(Json(rotated.await?))
}
