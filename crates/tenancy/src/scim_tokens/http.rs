//! `/account/scim/token`: the SCIM tokens of a workspace.

use kernel::Result;
use web::{Created, Json, Page, Params, Path, Routes, State, Success, Valid};

use super::{CreatedScimToken, NewScimToken, ScimTokenId, ScimTokenRecord};
use crate::{
    Tenancy,
    callers::{TenantCaller, TenantRead, TenantWrite},
    scim_tokens,
};

pub fn routes() -> Routes<Tenancy> {
    Routes::new("Provisioning")
        .post("/account/scim/token", create, "Create a SCIM token of a workspace, shown this once")
        .get("/account/scim/token", list, "List a workspace's SCIM tokens, newest first")
        .delete("/account/scim/token/{token_id}", revoke, "Revoke a SCIM token of a workspace")
}

async fn create(
    caller: TenantCaller<TenantWrite>,
    State(tenancy): State<Tenancy>,
    Valid(new): Valid<NewScimToken>,
) -> Result<Created<CreatedScimToken>> {
    let (app, tenant, maker) = (caller.app_id(), caller.tenant(), (*caller).clone());
    let created = tenancy.db.by(&caller).write(move |tx| scim_tokens::create(tx, app, tenant, &maker, &new));
    Ok(Created(created.await?))
}

async fn list(
    caller: TenantCaller<TenantRead>,
    State(tenancy): State<Tenancy>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<ScimTokenRecord>>> {
    let (app, tenant) = (caller.app_id(), caller.tenant());
    Ok(Json(tenancy.db.read(move |tx| scim_tokens::list(tx, app, tenant, page)).await?))
}

async fn revoke(
    caller: TenantCaller<TenantWrite>,
    State(tenancy): State<Tenancy>,
    Path(id): Path<ScimTokenId>,
) -> Result<Success> {
    let (app, tenant) = (caller.app_id(), caller.tenant());
    tenancy.db.by(&caller).write(move |tx| scim_tokens::revoke(tx, app, tenant, id)).await?;
    Ok(Success)
}
