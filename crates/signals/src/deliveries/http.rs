//! `/webhooks/…` for OWNERs and ADMINs. They see what concerns their workspace; those of the app's operator workspace act
//! for the whole app.

use kernel::{Code, Error, Result, TenantId};
use schemars::JsonSchema;
use serde::Serialize;
use tenancy::{
    apps,
    callers::{OwnerOrAdmin, SignedIn, UserCaller},
};
use web::{Json, Page, Params, Path, Routes, State};

use super::{Delivery, DeliveryId, DeliveryRow, replay, store};
use crate::{
    Signals,
    endpoints::of_profile,
    secrets::{self, SecretView},
};

pub(super) fn routes() -> Routes<Signals> {
    Routes::new("Webhooks")
        .get("/webhooks/deliveries/{app_id}", list, "List deliveries, newest first; 20 without a limit")
        .description(
            "The deliveries of the caller's workspace; members of the app's operator workspace see those of the whole app.",
        )
        .answers(400, OTHER_APP)
        .post("/webhooks/deliveries/{delivery_id}/replay", replay_one, "Send a delivery again, as a new one")
        .answers(409, "There is no URL to send to, or the webhook is disabled")
        .post("/webhooks/secrets/rotate/{app_id}", rotate, "Replace the signing secret")
        .description(
            "The previous secret signs beside the new one for five minutes. Once the app has an operator workspace, only \
             its members may do this.",
        )
        .answers(400, OTHER_APP)
}

const OTHER_APP: &str = "The app in the path is not the caller's, or another parameter is invalid";

/// 400 unless the path names the caller's own app.
fn require_own_app(user: &SignedIn, named: &str) -> Result<()> {
    if named.parse() == Ok(user.app()) {
        return Ok(());
    }
    Err(Error::invalid("app_id", "must be the app of the access token"))
}

/// The workspace that the caller is confined to; `None` for those who act for the whole app.
async fn confined_to(signals: &Signals, user: &SignedIn) -> Result<Option<TenantId>> {
    let operators = operator_tenant(signals, user).await?;
    Ok((operators != Some(user.tenant())).then(|| user.tenant()))
}

async fn operator_tenant(signals: &Signals, user: &SignedIn) -> Result<Option<TenantId>> {
    let app = user.app();
    Ok(signals.db.read(move |tx| apps::get(tx, app)).await?.profile.operator_tenant_id)
}

async fn list(
    UserCaller(user, _): UserCaller<OwnerOrAdmin>,
    State(signals): State<Signals>,
    Path(app): Path<String>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<Delivery>>> {
    require_own_app(&user, &app)?;
    let (app, tenant) = (user.app(), confined_to(&signals, &user).await?);
    let wanted = store::Wanted { tenant, ..store::Wanted::default() };
    let rows = signals.db.read(move |tx| store::list(tx, app, &wanted, page)).await?;
    let views = rows.into_iter().map(DeliveryRow::view);
    Ok(Json(if tenant.is_some() { views.map(Delivery::for_workspace).collect() } else { views.collect() }))
}

/// The delivery that repeats it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Replayed {
    pub(super) ok: bool,
    /// The new delivery.
    pub(super) delivery_id: DeliveryId,
}

async fn replay_one(
    UserCaller(user, _): UserCaller<OwnerOrAdmin>,
    State(signals): State<Signals>,
    Path(id): Path<DeliveryId>,
) -> Result<Json<Replayed>> {
    let (app, within) = (user.app(), confined_to(&signals, &user).await?);
    let due = signals.due.clone();
    let replayed = signals.db.by(&user).write(move |tx| replay::replay(tx, &due, app, within, id));
    Ok(Json(Replayed { ok: true, delivery_id: replayed.await? }))
}

async fn rotate(
    UserCaller(user, _): UserCaller<OwnerOrAdmin>,
    State(signals): State<Signals>,
    Path(app): Path<String>,
) -> Result<Json<SecretView>> {
    require_own_app(&user, &app)?;
    let (app, tenant, keyring) = (user.app(), user.tenant(), signals.tenancy.keyring.clone());
    let rotated = signals.db.by(&user).write(move |tx| {
        apps::hold(tx, app)?;
        let operators = apps::get(tx, app)?.profile.operator_tenant_id;
        if operators.is_some_and(|operators| operators != tenant) {
            let message = "Only members of the app's operator workspace may rotate the signing secret.";
            return Err(Error::new(Code::Forbidden, message));
        }
        secrets::rotate(tx, &keyring, app, of_profile(app))
    });
    Ok(Json(rotated.await?))
}
