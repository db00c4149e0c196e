//! `/account/role` and `/account/role/privilege`.

use kernel::Result;
use web::{Json, Page, Params, Path, Routes, State, Success, Valid};

use super::{NewPrivilege, NewRole, PrivilegeChange, PrivilegeId, PrivilegeRecord, Role, RoleChange, RoleId};
use crate::{
    Authority, Tenancy,
    callers::{AppCaller, AppRead, AppWrite},
};

/// What may come of giving more than one has.
const BEYOND: &str = "The role would get a privilege that the caller does not have";
const ROLE_CONFLICT: &str =
    "The key is taken, OWNER's key would change, or the app would be left without a default role";
const ROLE_STAYS: &str = "It is the default role or OWNER, or members still have it";
const PRIVILEGE_CONFLICT: &str = "The key is taken, or the privilege is built in";
const PRIVILEGE_STAYS: &str = "It is built in, or a role would be left without any privilege";

pub fn routes() -> Routes<Tenancy> {
    Routes::new("Roles and privileges")
        .get("/account/role", list, "List roles, newest first")
        .post("/account/role", create, "Create a role")
        .answers(403, BEYOND)
        .answers(409, "Another role already has this key")
        .get("/account/role/{role_id}", get, "Get a role")
        .put("/account/role/{role_id}", update, "Change a role; members have its privileges at once")
        .answers(403, BEYOND)
        .answers(409, ROLE_CONFLICT)
        .delete("/account/role/{role_id}", delete, "Delete a role; its privileges are kept")
        .answers(409, ROLE_STAYS)
        .get("/account/role/privilege", list_privileges, "List privileges, newest first")
        .post("/account/role/privilege", create_privilege, "Create a privilege")
        .answers(409, "Another privilege already has this key")
        .get("/account/role/privilege/{privilege_id}", get_privilege, "Get a privilege")
        .put("/account/role/privilege/{privilege_id}", update_privilege, "Change a privilege")
        .answers(403, BEYOND)
        .answers(409, PRIVILEGE_CONFLICT)
        .delete("/account/role/privilege/{privilege_id}", delete_privilege, "Delete a privilege; it leaves every role")
        .answers(409, PRIVILEGE_STAYS)
}

async fn list(
    caller: AppCaller<AppRead>,
    State(tenancy): State<Tenancy>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<Role>>> {
    let app = caller.app_id();
    let roles = tenancy.db.snapshot(move |tx| super::list(tx, app, page)).await?;
    Ok(Json(roles))
}

async fn create(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Valid(new): Valid<NewRole>,
) -> Result<Json<Role>> {
    let (app, authority) = (caller.app_id(), Authority::of_key(&caller));
    Ok(Json(tenancy.db.by(&caller).write(move |tx| super::create(tx, app, &authority, &new)).await?))
}

async fn get(caller: AppCaller<AppRead>, State(tenancy): State<Tenancy>, Path(id): Path<RoleId>) -> Result<Json<Role>> {
    let app = caller.app_id();
    Ok(Json(tenancy.db.snapshot(move |tx| super::get(tx, app, id)).await?))
}

async fn update(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Path(id): Path<RoleId>,
    Valid(change): Valid<RoleChange>,
) -> Result<Json<Role>> {
    let (app, authority, tokens) = (caller.app_id(), Authority::of_key(&caller), tenancy.api_tokens.clone());
    Ok(Json(tenancy.db.by(&caller).write(move |tx| super::update(tx, &tokens, app, &authority, id, &change)).await?))
}

async fn delete(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Path(id): Path<RoleId>,
) -> Result<Success> {
    let app = caller.app_id();
    tenancy.db.by(&caller).write(move |tx| super::delete(tx, app, id)).await?;
    Ok(Success)
}

async fn list_privileges(
    caller: AppCaller<AppRead>,
    State(tenancy): State<Tenancy>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<PrivilegeRecord>>> {
    let app = caller.app_id();
    let read = move |tx: &mut store::Tx<'_>| super::list_privileges(tx, app, page);
    Ok(Json(tenancy.db.read(read).await?))
}

async fn create_privilege(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Valid(new): Valid<NewPrivilege>,
) -> Result<Json<PrivilegeRecord>> {
    let app = caller.app_id();
    Ok(Json(tenancy.db.by(&caller).write(move |tx| super::create_privilege(tx, app, &new)).await?))
}

async fn get_privilege(
    caller: AppCaller<AppRead>,
    State(tenancy): State<Tenancy>,
    Path(id): Path<PrivilegeId>,
) -> Result<Json<PrivilegeRecord>> {
    let app = caller.app_id();
    Ok(Json(tenancy.db.read(move |tx| super::get_privilege(tx, app, id)).await?))
}

async fn update_privilege(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Path(id): Path<PrivilegeId>,
    Valid(change): Valid<PrivilegeChange>,
) -> Result<Json<PrivilegeRecord>> {
    let (app, authority) = (caller.app_id(), Authority::of_key(&caller));
    let Tenancy { db, api_tokens, .. } = tenancy;
    let changed = db.by(&caller).write(move |tx| {
        // Tokens name privileges by key: one with another key is no longer theirs.
        api_tokens.forget_all_on_commit(tx);
        super::update_privilege(tx, app, &authority, id, &change)
    });
    Ok(Json(changed.await?))
}

async fn delete_privilege(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Path(id): Path<PrivilegeId>,
) -> Result<Success> {
    let app = caller.app_id();
    let Tenancy { db, api_tokens, .. } = tenancy;
    let deleted = db.by(&caller).write(move |tx| {
        api_tokens.forget_all_on_commit(tx);
        super::delete_privilege(tx, app, id)
    });
    deleted.await?;
    Ok(Success)
}
