//! `/admin/apps/{app_id}/keys`.

use kernel::{AppId, KeyId, Result};
use schemars::JsonSchema;
use serde::Serialize;
use web::{Created as CreatedAnswer, Json, Page, Params, Path, Routes, State, Success, Valid};

use super::{KeyRecord, NewKey};
use crate::{Tenancy, apps, callers::Operator};

pub fn routes() -> Routes<Tenancy> {
    Routes::new("Apps")
        .get("/admin/apps/{app_id}/keys", list, "List an app's API keys, newest first")
        .post("/admin/apps/{app_id}/keys", create, "Create an API key, shown this once")
        .delete("/admin/apps/{app_id}/keys/{key_id}", revoke, "Revoke an API key at once")
}

/// The one time that the key is shown.
#[derive(Serialize, JsonSchema)]
pub struct CreatedKey {
    key: String,
    record: KeyRecord,
}

async fn list(
    _: Operator,
    State(tenancy): State<Tenancy>,
    Path(app): Path<AppId>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<KeyRecord>>> {
    let records = tenancy
        .db
        .read(move |tx| {
            apps::get(tx, app)?;
            super::list(tx, app, page)
        })
        .await?;
    Ok(Json(records))
}

async fn create(
    caller: Operator,
    State(tenancy): State<Tenancy>,
    Path(app): Path<AppId>,
    Valid(new): Valid<NewKey>,
) -> Result<CreatedAnswer<CreatedKey>> {
    let created = tenancy
        .db
        .by(&caller)
        .write(move |tx| {
            // Not beside a deletion of the app, which would leave the key behind.
            apps::hold(tx, app)?;
            super::create(tx, app, &new)
        })
        .await?;
    Ok(CreatedAnswer(CreatedKey { key: created.key, record: created.record }))
}

async fn revoke(
    caller: Operator,
    State(tenancy): State<Tenancy>,
    Path((app, id)): Path<(AppId, KeyId)>,
) -> Result<Success> {
    let Tenancy { db, keys, .. } = tenancy;
    db.by(&caller).write(move |tx| super::revoke(tx, &keys, app, id)).await?;
    Ok(Success)
}
