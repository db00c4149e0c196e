//! `/admin/apps/{app_id}/import` for the operator, as the command line calls it.

use ::store::Db;
use kernel::{AppId, Error, Result};
use tenancy::{Authority, callers::Operator};
use web::{Json, Params, Path, Routes, State};

use super::{
    ImportId,
    http::{
        Batch, IdempotencyKey, ImportAnswer, ImportQuery, ImportReport, ImportStatus, LONGEST, MAX_BYTES, Sender,
        import_batch, status_of, validate_batch,
    },
};
use crate::Imports;

pub(crate) fn routes() -> Routes<Imports> {
    Routes::new("Import")
        .post("/admin/apps/{app_id}/import/tenants", import, "Import workspaces and users into an app")
        .description("As `POST /account/import/tenants` does.")
        .body_limit(MAX_BYTES)
        .timeout(LONGEST)
        .streamed()
        .post("/admin/apps/{app_id}/import/validateTenants", validate, "Check a batch for an app without importing it")
        .body_limit(MAX_BYTES)
        .timeout(LONGEST)
        .streamed()
        .get("/admin/apps/{app_id}/import/status/{reference}", status, "Get how far an import of an app has come")
}

async fn sender(room: &Imports, app: AppId, db: Db) -> Result<Sender> {
    let app = room.tenancy.apps.find(app).await?.ok_or_else(|| Error::not_found("app"))?;
    Ok(Sender { app, authority: Authority::unlimited(), db })
}

async fn import(
    caller: Operator,
    State(room): State<Imports>,
    Path(app): Path<AppId>,
    Params(query): Params<ImportQuery>,
    repeat: IdempotencyKey,
    batch: Batch,
) -> Result<Json<ImportAnswer>> {
    let sender = sender(&room, app, room.tenancy.db.by(&caller)).await?;
    import_batch(&room, &sender, query, repeat, batch).await
}

async fn validate(
    caller: Operator,
    State(room): State<Imports>,
    Path(app): Path<AppId>,
    batch: Batch,
) -> Result<Json<ImportReport>> {
    validate_batch(&room, &sender(&room, app, room.tenancy.db.by(&caller)).await?, batch).await
}

async fn status(
    _: Operator,
    State(room): State<Imports>,
    Path((app, reference)): Path<(AppId, ImportId)>,
) -> Result<Json<ImportStatus>> {
    status_of(&room, app, reference).await
}
