//! `/admin/apps/{app_id}/secrets`: the secrets that sign an app's API tokens. They are listed and changed, never shown.

use kernel::{AppId, Result};
use web::{Created, Json, Page, Params, Path, Routes, State, Success};

use crate::{
    Tenancy,
    api_tokens::secrets::{self, SecretId, SecretRecord},
    apps,
    callers::Operator,
};

pub(super) fn routes() -> Routes<Tenancy> {
    Routes::new("Apps")
        .get("/admin/apps/{app_id}/secrets", list, "List the secrets that sign an app's API tokens, newest first")
        .post("/admin/apps/{app_id}/secrets/rotate", rotate, "Rotate the secret that signs the app's API tokens")
        .description("Tokens signed by older secrets remain valid until their secret is retired.")
        .answers(409, "The app has too many secrets; retire some first")
        .delete("/admin/apps/{app_id}/secrets/{secret_id}", retire, "Retire a secret and revoke the tokens it signed")
        .answers(409, "The secret signs new API tokens; rotate first")
}

async fn list(
    _: Operator,
    State(tenancy): State<Tenancy>,
    Path(app): Path<AppId>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<SecretRecord>>> {
    let records = tenancy.db.read(move |tx| {
        apps::get(tx, app)?;
        secrets::list(tx, app)
    });
    Ok(Json(page.of(records.await?)))
}

async fn rotate(
    caller: Operator,
    State(tenancy): State<Tenancy>,
    Path(app): Path<AppId>,
) -> Result<Created<SecretRecord>> {
    let keyring = tenancy.keyring.clone();
    let secret = tenancy.db.by(&caller).write(move |tx| {
        apps::hold(tx, app)?;
        secrets::rotate(tx, &keyring, app)
    });
    Ok(Created(secret.await?))
}

async fn retire(
    caller: Operator,
    State(tenancy): State<Tenancy>,
    Path((app, id)): Path<(AppId, SecretId)>,
) -> Result<Success> {
    let Tenancy { db, api_tokens, .. } = tenancy;
    let retired = db.by(&caller).write(move |tx| {
        apps::hold(tx, app)?;
        secrets::retire(tx, &api_tokens, app, id)
    });
    retired.await?;
    Ok(Success)
}
