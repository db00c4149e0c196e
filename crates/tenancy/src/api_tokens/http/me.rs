//! Tokens by signed-in users: those of their own workspace, or of the whole app for members of its operator workspace.

use ::store::Tx;
use kernel::{Result, TenantId};
use schemars::JsonSchema;
use serde::Serialize;
use web::{Created, Json, Page, Params, Path, Routes, State, Success, Valid};

use super::NOT_GRANTED;
use crate::{
    Authority, Tenancy,
    api_tokens::{self, ApiTokenId, ApiTokenRecord, CreatedToken, Maker, NewApiToken, store},
    apps,
    callers::{AnyMember, BearerCaller, OwnerOrAdmin, SignedIn, TokenMaker},
};

pub(super) fn routes() -> Routes<Tenancy> {
    Routes::new("API tokens")
        .get("/account/api-token/me/app/available-privileges", available, "List the privileges you can grant to a token")
        .get("/account/api-token/me/app", list, "List your workspace's API tokens, newest first")
        .description("Members of the app's operatorTenantId see all tokens of the app.")
        .post("/account/api-token/me/app", create, "Create an API token of your workspace, shown this once")
        .description(
            "For an OWNER or ADMIN. For members of the app's operatorTenantId it is a token of the whole app. Nobody can \
             grant more privileges than they have.",
        )
        .answers(403, NOT_GRANTED)
        .delete("/account/api-token/me/app/{token_id}", revoke, "Revoke an API token of your workspace")
        .description("For an OWNER or ADMIN. Members of the app's operatorTenantId can revoke any token of the app.")
}

/// A privilege that can be granted.
#[derive(Serialize, JsonSchema)]
struct AvailablePrivilege {
    key: String,
    description: String,
}

/// The workspace whose tokens the user manages; `None` for all of the app.
fn reach(tx: &mut Tx<'_>, user: &SignedIn) -> Result<Option<TenantId>> {
    let acts_for_app = apps::get(tx, user.app())?.profile.operator_tenant_id == Some(user.tenant());
    Ok((!acts_for_app).then(|| user.tenant()))
}

async fn available(
    BearerCaller(user, _): BearerCaller<AnyMember>,
    State(tenancy): State<Tenancy>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<AvailablePrivilege>>> {
    let (app, authority) = (user.app(), Authority::of_user(&user));
    let grantable = tenancy.db.read(move |tx| api_tokens::grantable(tx, app, &authority)).await?;
    let shown = page.of(grantable).into_iter();
    Ok(Json(shown.map(|one| AvailablePrivilege { key: one.key, description: one.description }).collect()))
}

async fn list(
    BearerCaller(user, _): BearerCaller<AnyMember>,
    State(tenancy): State<Tenancy>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<ApiTokenRecord>>> {
    let list = tenancy.db.read(move |tx| {
        let tenant = reach(tx, &user)?;
        store::list(tx, user.app(), tenant, page)
    });
    Ok(Json(list.await?))
}

async fn create(
    BearerCaller(user, _): BearerCaller<TokenMaker>,
    State(tenancy): State<Tenancy>,
    Valid(new): Valid<NewApiToken>,
) -> Result<Created<CreatedToken>> {
    let keyring = tenancy.keyring.clone();
    let created = tenancy.db.by(&user).write(move |tx| {
        // Held before it is asked whether the workspace acts for the app.
        apps::hold(tx, user.app())?;
        let tenant = reach(tx, &user)?;
        api_tokens::create(tx, &keyring, user.app(), tenant, &Maker::user(&user), &new)
    });
    Ok(Created(created.await?))
}

async fn revoke(
    BearerCaller(user, _): BearerCaller<OwnerOrAdmin>,
    State(tenancy): State<Tenancy>,
    Path(id): Path<ApiTokenId>,
) -> Result<Success> {
    let Tenancy { db, api_tokens, .. } = tenancy;
    let revoked = db.by(&user).write(move |tx| {
        let tenant = reach(tx, &user)?;
        api_tokens::revoke(tx, &api_tokens, user.app(), tenant, id)
    });
    revoked.await?;
    Ok(Success)
}
