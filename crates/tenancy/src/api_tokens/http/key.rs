//! Tokens by key: those of a workspace, and all of the app.

use kernel::{Key, Name, Problems, Result, Timestamp, Words};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{Created, Json, Page, Params, Path, Routes, State, Success, Valid, Validate};

use super::NOT_GRANTED;
use crate::{
    Tenancy,
    api_tokens::{self, ApiTokenId, ApiTokenRecord, CreatedToken, Maker, NewApiToken, store},
    callers::{AppCaller, AppRead, AppWrite, TenantCaller, TenantRead, TenantWrite},
};

pub(super) fn routes() -> Routes<Tenancy> {
    Routes::new("API tokens")
        .post(
            "/account/api-token/workspace",
            create_in_workspace,
            "Create an API token of a workspace, shown this once",
        )
        .answers(403, "The member is not an OWNER or ADMIN of the workspace, or a privilege may not be granted")
        .get("/account/api-token/workspace", list_of_workspace, "List a workspace's API tokens, newest first")
        .delete("/account/api-token/workspace/{token_id}", revoke_in_workspace, "Revoke an API token of a workspace")
        .get("/account/api-token/app", list, "List all API tokens, those of workspaces included, newest first")
        .post("/account/api-token/app", create, "Create an API token of the whole app, shown this once")
        .answers(403, NOT_GRANTED)
        .delete("/account/api-token/app/{token_id}", revoke, "Revoke any API token of the app")
}

/// The body of `POST /account/api-token/workspace`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NewWorkspaceToken {
    name: Name,
    /// Keys of privileges that the app defines. Destructive ones are granted by naming them.
    #[schemars(length(min = 1), extend("examples" = [["TENANT_READ"]]))]
    privileges: Vec<Key>,
    /// Left out or `null`: the token does not expire.
    #[serde(default)]
    expire_at: Option<Timestamp>,
    /// The member in whose name the token is made, and with whom it ends: an OWNER or ADMIN of the workspace.
    tenant_user_id: Words,
}

impl NewWorkspaceToken {
    fn token(&self) -> NewApiToken {
        let Self { name, privileges, expire_at, .. } = self.clone();
        NewApiToken { name, privileges, expire_at }
    }
}

impl Validate for NewWorkspaceToken {
    fn validate(&self, problems: &mut Problems) {
        self.token().validate(problems);
    }
}

async fn create_in_workspace(
    caller: TenantCaller<TenantWrite>,
    State(tenancy): State<Tenancy>,
    Valid(new): Valid<NewWorkspaceToken>,
) -> Result<Created<CreatedToken>> {
    let (app, tenant, keyring) = (caller.app_id(), caller.tenant(), tenancy.keyring.clone());
    let (maker, new) = (Maker::key(&caller).in_name_of(&new.tenant_user_id), new.token());
    let created =
        tenancy.db.by(&caller).write(move |tx| api_tokens::create(tx, &keyring, app, Some(tenant), &maker, &new));
    Ok(Created(created.await?))
}

async fn list_of_workspace(
    caller: TenantCaller<TenantRead>,
    State(tenancy): State<Tenancy>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<ApiTokenRecord>>> {
    let (app, tenant) = (caller.app_id(), caller.tenant());
    Ok(Json(tenancy.db.read(move |tx| store::list(tx, app, Some(tenant), page)).await?))
}

async fn revoke_in_workspace(
    caller: TenantCaller<TenantWrite>,
    State(tenancy): State<Tenancy>,
    Path(id): Path<ApiTokenId>,
) -> Result<Success> {
    let (app, tenant) = (caller.app_id(), caller.tenant());
    let Tenancy { db, api_tokens, .. } = tenancy;
    db.by(&caller).write(move |tx| api_tokens::revoke(tx, &api_tokens, app, Some(tenant), id)).await?;
    Ok(Success)
}

async fn list(
    caller: AppCaller<AppRead>,
    State(tenancy): State<Tenancy>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<ApiTokenRecord>>> {
    let app = caller.app_id();
    Ok(Json(tenancy.db.read(move |tx| store::list(tx, app, None, page)).await?))
}

async fn create(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Valid(new): Valid<NewApiToken>,
) -> Result<Created<CreatedToken>> {
    let (app, maker, keyring) = (caller.app_id(), Maker::key(&caller), tenancy.keyring.clone());
    let created = tenancy.db.by(&caller).write(move |tx| api_tokens::create(tx, &keyring, app, None, &maker, &new));
    Ok(Created(created.await?))
}

async fn revoke(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Path(id): Path<ApiTokenId>,
) -> Result<Success> {
    let app = caller.app_id();
    let Tenancy { db, api_tokens, .. } = tenancy;
    db.by(&caller).write(move |tx| api_tokens::revoke(tx, &api_tokens, app, None, id)).await?;
    Ok(Success)
}
