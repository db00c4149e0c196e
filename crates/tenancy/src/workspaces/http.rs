//! `/account/tenant`: looking at workspaces and changing them. Making and deleting them spans rooms and is done by the
//! service's workflows.

use kernel::{Result, TenantId};
use web::{Json, Page, Params, Path, Routes, State, Valid};

use super::{Tenant, TenantChanges};
use crate::{
    Authority, Tenancy,
    callers::{KeyCaller, KeyOrUser, TenantRead, TenantWrite},
};

pub fn routes() -> Routes<Tenancy> {
    Routes::new("Workspaces")
        .get("/account/tenant", list, "List workspaces, newest first")
        .description(
            "A key of the whole app sees all of its workspaces, a workspace-scoped token its own one, and a signed-in \
             user those they belong to: with `metadata` and `signupBy` where their role has TENANT_READ and the login has \
             shown the second factor that the workspace asks for.",
        )
        .get("/account/tenant/byId/{tenant_id}", get, "Get a workspace")
        .put("/account/tenant/{tenant_id}", update, "Change a workspace")
        .description("`federationConnection` and `appMetadata` are set by a key of the whole app only.")
}

async fn list(
    caller: KeyOrUser<TenantRead>,
    State(tenancy): State<Tenancy>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<Tenant>>> {
    let tenants = match caller {
        KeyOrUser::Key(key, _) => {
            let (app, own) = (key.app_id(), key.tenant);
            let read = move |tx: &mut store::Tx<'_>| match own {
                Some(own) if page.offset() == 0 => super::get(tx, app, own).map(|tenant| vec![tenant]),
                Some(_) => Ok(Vec::new()),
                None => super::list(tx, app, page),
            };
            tenancy.db.scan(read).await?
        }
        KeyOrUser::User(user) => tenancy.db.read(move |tx| super::list_of(tx, &user, page)).await?,
    };
    Ok(Json(tenants))
}

async fn get(
    caller: KeyCaller<TenantRead>,
    State(tenancy): State<Tenancy>,
    Path(id): Path<TenantId>,
) -> Result<Json<Tenant>> {
    caller.in_workspace(id)?;
    let app = caller.app_id();
    Ok(Json(tenancy.db.read(move |tx| super::get(tx, app, id)).await?))
}

async fn update(
    caller: KeyCaller<TenantWrite>,
    State(tenancy): State<Tenancy>,
    Path(id): Path<TenantId>,
    Valid(changes): Valid<TenantChanges>,
) -> Result<Json<Tenant>> {
    caller.in_workspace(id)?;
    let (app, authority) = (caller.app_id(), Authority::of_key(&caller));
    Ok(Json(tenancy.db.by(&caller).write(move |tx| super::update(tx, app, &authority, id, &changes)).await?))
}
