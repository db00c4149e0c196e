//! `/admin/apps` for the operator and `/account/app` for the app itself.

use kernel::{AppId, Result};
use schemars::JsonSchema;
use serde::Serialize;
use web::{Created as CreatedAnswer, Json, Page, Params, Path, Routes, State, Success, Valid};

use super::{App, NewApp};
use crate::{
    Tenancy,
    callers::{AppCaller, AppRead, Operator},
};

pub fn routes() -> Routes<Tenancy> {
    Routes::new("Apps")
        .get("/admin/apps", list, "List apps, newest first")
        .post("/admin/apps", create, "Create an app and its first API key, shown this once")
        .answers(409, "Another app already has this domain")
        .get("/admin/apps/{app_id}", get, "Get an app")
        .delete("/admin/apps/{app_id}", delete, "Delete an app and everything in it")
        .get("/account/app", own_profile, "Get the app profile")
}

/// The one time that the key is shown.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatedApp {
    app: App,
    api_key: String,
}

async fn list(_: Operator, State(tenancy): State<Tenancy>, Params(page): Params<Page>) -> Result<Json<Vec<App>>> {
    let apps = tenancy.db.read(move |tx| super::list(tx, page.limit_or_all(), page.offset())).await?;
    Ok(Json(apps))
}

async fn create(
    _: Operator,
    State(tenancy): State<Tenancy>,
    Valid(new): Valid<NewApp>,
) -> Result<CreatedAnswer<CreatedApp>> {
    let db = tenancy.db.clone();
    let created = db.write(move |tx| super::create(tx, &tenancy, &new)).await?;
    Ok(CreatedAnswer(CreatedApp { app: created.app, api_key: created.api_key }))
}

async fn get(_: Operator, State(tenancy): State<Tenancy>, Path(id): Path<AppId>) -> Result<Json<App>> {
    let app = tenancy.db.read(move |tx| super::get(tx, id)).await?;
    Ok(Json(app))
}

async fn delete(_: Operator, State(tenancy): State<Tenancy>, Path(id): Path<AppId>) -> Result<Success> {
    let db = tenancy.db.clone();
    db.write(move |tx| super::delete(tx, &tenancy, id)).await?;
    Ok(Success)
}

async fn own_profile(caller: AppCaller<AppRead>, State(tenancy): State<Tenancy>) -> Result<Json<App>> {
    let id = caller.app_id();
    let app = tenancy.db.read(move |tx| super::get(tx, id)).await?;
    Ok(Json(app))
}
