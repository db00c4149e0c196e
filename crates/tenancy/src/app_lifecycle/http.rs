//! `/admin/apps` for the operator and `/account/app` for the app itself.

use std::sync::Arc;

use kernel::{AppId, Result};
use schemars::JsonSchema;
use serde::Serialize;
use web::{Created as CreatedAnswer, Json, Page, Params, Path, Routes, State, Success, Valid};

use super::{sender_page, webhook};
use crate::{
    Authority, Tenancy,
    apps::{
        self, App, NewApp, ProfileChange,
        parameters::{ParameterDefinition, ParameterDefinitions},
    },
    callers::{AppCaller, AppDelete, AppRead, AppWrite, Operator},
    mails::budget::TOO_MANY_MAILS,
};

pub fn routes() -> Routes<Tenancy> {
    Routes::new("Apps")
        .get("/admin/apps", list, "List apps, newest first")
        .post("/admin/apps", create, "Create an app and its first API key, shown this once")
        .answers(409, "Another app already has this domain")
        .get("/admin/apps/{app_id}", get, "Get an app")
        .put("/admin/apps/{app_id}", change, "Change an app's profile")
        .answers(429, TOO_MANY_MAILS)
        .delete("/admin/apps/{app_id}", delete, "Delete an app and everything in it")
        .merge(webhook::routes())
        .merge(own_routes())
        .merge(sender_page::routes())
}

fn own_routes() -> Routes<Tenancy> {
    Routes::new("App profile")
        .get("/account/app", own_profile, "Get the app profile")
        .put("/account/app", change_own_profile, "Change the app profile")
        .description(
            "A missing member keeps its value, `null` clears it where it may be absent, read-only members are ignored. \
             A new `emailSenderEmail` is sent an email with a verification link. What decides who can act for the app and \
             where people are sent (`operatorTenantId`, `allowedTokenPrivileges`, `redirectUris`, `defaultCallbackUri`, \
             `allowedOrigins`, an origin by `uiUrl`, `requirePkce`, `webhookUrl`, `emailSenderEmail`, `emailSenderName`) \
             can be changed by a caller with every built-in privilege but the destructive two.",
        )
        .answers(403, "A setting that requires every built-in privilege but the destructive two")
        .answers(429, TOO_MANY_MAILS)
        .get("/account/app/userParameters", user_parameters, "List the parameters that the app defines for users")
        .put("/account/app/userParameters", define_parameters, "Define all parameters of users")
        .delete("/account/app", delete_own, "Delete the app and everything in it")
}

/// The one time that the key is shown.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatedApp {
    app: App,
    api_key: String,
}

async fn list(_: Operator, State(tenancy): State<Tenancy>, Params(page): Params<Page>) -> Result<Json<Vec<App>>> {
    let apps = tenancy.db.read(move |tx| apps::list(tx, page)).await?;
    Ok(Json(apps))
}

async fn create(
    caller: Operator,
    State(tenancy): State<Tenancy>,
    Valid(new): Valid<NewApp>,
) -> Result<CreatedAnswer<CreatedApp>> {
    let db = tenancy.db.by(&caller);
    let created = db.write(move |tx| super::create(tx, &tenancy, &new)).await?;
    Ok(CreatedAnswer(CreatedApp { app: created.app, api_key: created.api_key }))
}

async fn get(_: Operator, State(tenancy): State<Tenancy>, Path(id): Path<AppId>) -> Result<Json<Arc<App>>> {
    Ok(Json(tenancy.apps.current(id).await?))
}

async fn change(
    caller: Operator,
    State(tenancy): State<Tenancy>,
    Path(id): Path<AppId>,
    Valid(change): Valid<ProfileChange>,
) -> Result<Json<App>> {
    let db = tenancy.db.by(&caller);
    let changed = db.write(move |tx| super::update(tx, &tenancy, id, &Authority::unlimited(), change.clone()));
    Ok(Json(changed.await?))
}

async fn delete(caller: Operator, State(tenancy): State<Tenancy>, Path(id): Path<AppId>) -> Result<Success> {
    let db = tenancy.db.by(&caller);
    db.write(move |tx| super::delete(tx, &tenancy, id)).await?;
    Ok(Success)
}

async fn own_profile(caller: AppCaller<AppRead>, State(tenancy): State<Tenancy>) -> Result<Json<Arc<App>>> {
    Ok(Json(tenancy.apps.current(caller.app_id()).await?))
}

async fn change_own_profile(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Valid(change): Valid<ProfileChange>,
) -> Result<Json<App>> {
    let (id, db, authority) = (caller.app_id(), tenancy.db.by(&caller), Authority::of_key(&caller));
    Ok(Json(db.write(move |tx| super::update(tx, &tenancy, id, &authority, change.clone())).await?))
}

async fn user_parameters(
    caller: AppCaller<AppRead>,
    State(tenancy): State<Tenancy>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<ParameterDefinition>>> {
    let app = tenancy.apps.current(caller.app_id()).await?;
    Ok(Json(page.of(app.profile.user_parameters.iter().cloned())))
}

async fn define_parameters(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Valid(ParameterDefinitions(definitions)): Valid<ParameterDefinitions>,
) -> Result<Json<Vec<ParameterDefinition>>> {
    let (id, db) = (caller.app_id(), tenancy.db.by(&caller));
    Ok(Json(db.write(move |tx| super::define_parameters(tx, &tenancy, id, &definitions)).await?))
}

async fn delete_own(caller: AppCaller<AppDelete>, State(tenancy): State<Tenancy>) -> Result<Success> {
    let (id, db) = (caller.app_id(), tenancy.db.by(&caller));
    db.write(move |tx| super::delete(tx, &tenancy, id)).await?;
    Ok(Success)
}
