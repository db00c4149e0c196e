//! `/account/tenant/user`: the members of the workspace that the caller acts in.

use std::sync::Arc;

use ::store::Tx;
use kernel::{AppId, Error, Result, TenantId};
use web::{Created, Empty, Json, Page, Params, Path, Routes, State, Success, Valid};

use super::{Association, Listed, MemberChanges, MemberRef, NewMember, TenantUser, invitations, store};
use crate::{
    Authority, Tenancy,
    callers::{TenantCaller, UserRead, UserWrite},
    mails::budget::TOO_MANY_MAILS,
    people, workspaces,
};

/// What may come of acting on somebody who was only invited.
const NOT_THERE_YET: &str = "The user has not accepted the invitation yet";

pub fn routes() -> Routes<Tenancy> {
    Routes::new("Workspace users")
        .get("/account/tenant/user", list, "List the workspace's users, newest first")
        .post("/account/tenant/user", create, "Add a user and email them an invitation")
        .description(
            "A key of the whole app makes the person a member at once. A workspace-scoped token invites them: the answer \
             has the status `invited` and says what was sent and nothing else, until the person accepts.",
        )
        .answers(403, "A role beyond the caller's privileges, or muteNotifications from a workspace-scoped token")
        .answers(409, "The person is already a member of this workspace, or invited to it")
        .answers(429, TOO_MANY_MAILS)
        .get("/account/tenant/user/{user_id}", get, "Get a user")
        .put("/account/tenant/user/{user_id}", update, "Change a user")
        .answers(409, "The last enabled OWNER keeps role and access")
        .delete("/account/tenant/user/{user_id}", remove, "Remove a user from the workspace")
        .answers(409, "The last enabled OWNER cannot be removed")
        .get("/account/tenant/user/{user_id}/associations", associations, "List the workspaces a user belongs to")
        .post("/account/tenant/user/{user_id}/password", send_reset_mail, "Email a password reset link")
        .description("Somebody who was only invited gets the invitation again.")
        .answers(429, TOO_MANY_MAILS)
        .get("/account/tenant/user/{user_id}/passwordLink", reset_link, "Create a password reset link")
        .answers(403, "The person has a role with a privilege that the caller does not have")
        .answers(409, NOT_THERE_YET)
        .delete("/account/tenant/user/{user_id}/sessions", end_sessions, "Sign a user out everywhere")
        .answers(409, NOT_THERE_YET)
}

async fn list(
    caller: TenantCaller<UserRead>,
    State(tenancy): State<Tenancy>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<TenantUser>>> {
    let (app, tenant, is_scoped) = (caller.app_id(), caller.tenant(), caller.scoped_to().is_some());
    let users = tenancy
        .db
        .scan(move |tx| {
            let members = super::list(tx, app, tenant, page)?;
            shown(tx, app, tenant, is_scoped, members)
        })
        .await?;
    Ok(Json(users))
}

async fn get(
    caller: TenantCaller<UserRead>,
    State(tenancy): State<Tenancy>,
    Path(who): Path<MemberRef>,
) -> Result<Json<TenantUser>> {
    let (app, tenant, is_scoped) = (caller.app_id(), caller.tenant(), caller.scoped_to().is_some());
    let user = tenancy
        .db
        .read(move |tx| {
            let user = super::get_listed(tx, app, tenant, who)?;
            shown_alone(tx, app, tenant, is_scoped, user)
        })
        .await?;
    Ok(Json(user))
}

/// As the caller sees them: somebody who has not come by themselves is nobody to a caller of the workspace, beyond their
/// address.
pub fn shown(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    is_scoped: bool,
    listed: Vec<Listed>,
) -> Result<Vec<TenantUser>> {
    let workspace = Arc::new(workspaces::get(tx, app, tenant)?);
    let vouched = if is_scoped { store::vouched(tx, app, tenant)? } else { Vec::new() };
    let shown = listed.into_iter().map(|user| TenantUser::new(user, workspace.clone()));
    Ok(shown.map(|user| if vouched.contains(&user.id) { user.reserved() } else { user }).collect())
}

fn shown_alone(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, is_scoped: bool, listed: Listed) -> Result<TenantUser> {
    let shown = shown(tx, app, tenant, is_scoped, vec![listed])?.pop();
    shown.ok_or_else(|| Error::internal("somebody who was found is not shown"))
}

/// A workspace-scoped token learns nothing of other workspaces, and nobody of those of somebody who was only invited.
async fn associations(
    caller: TenantCaller<UserRead>,
    State(tenancy): State<Tenancy>,
    Path(who): Path<MemberRef>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<Association>>> {
    let (app, tenant, only) = (caller.app_id(), caller.tenant(), caller.scoped_to());
    let associations = tenancy
        .db
        .read(move |tx| {
            let Some(user) = super::get_listed(tx, app, tenant, who)?.user_id else { return Ok(Vec::new()) };
            let all = super::associations(tx, app, user)?;
            Ok(page.of(all.into_iter().filter(|one| only.is_none_or(|own| own == one.tenant_id))))
        })
        .await?;
    Ok(Json(associations))
}

async fn create(
    caller: TenantCaller<UserWrite>,
    State(tenancy): State<Tenancy>,
    Valid(new): Valid<NewMember>,
) -> Result<Created<TenantUser>> {
    let (app, tenant, db) = (caller.app.clone(), caller.tenant(), tenancy.db.by(&caller));
    let authority = Authority::of_key(&caller);
    let (user, tenant) = db.write(move |tx| super::create(tx, &tenancy, &app, &authority, tenant, &new)).await?;
    Ok(Created(TenantUser::new(user, Arc::new(tenant))))
}

async fn update(
    caller: TenantCaller<UserWrite>,
    State(tenancy): State<Tenancy>,
    Path(who): Path<MemberRef>,
    Valid(changes): Valid<MemberChanges>,
) -> Result<Json<TenantUser>> {
    let (app, tenant, authority) = (caller.app_id(), caller.tenant(), Authority::of_key(&caller));
    let is_scoped = caller.scoped_to().is_some();
    let user = tenancy
        .db
        .by(&caller)
        .write(move |tx| {
            let user = super::update(tx, &tenancy, app, &authority, tenant, who, &changes)?;
            shown_alone(tx, app, tenant, is_scoped, user)
        })
        .await?;
    Ok(Json(user))
}

async fn remove(
    caller: TenantCaller<UserWrite>,
    State(tenancy): State<Tenancy>,
    Path(who): Path<MemberRef>,
) -> Result<Empty> {
    let (app, tenant, db) = (caller.app_id(), caller.tenant(), tenancy.db.by(&caller));
    db.write(move |tx| super::remove(tx, &tenancy, app, tenant, who)).await?;
    Ok(Empty)
}

async fn send_reset_mail(
    caller: TenantCaller<UserWrite>,
    State(tenancy): State<Tenancy>,
    Path(who): Path<MemberRef>,
) -> Result<Empty> {
    let (app, tenant, db) = (caller.app.clone(), caller.tenant(), tenancy.db.by(&caller));
    db.write(move |tx| {
        // Not beside a removal, which would leave a link of nobody behind.
        workspaces::lock(tx, tenant)?;
        if let Some(invited) = invitations::find(tx, app.id, tenant, who)? {
            return invitations::mail(tx, &tenancy, &app, &invited);
        }
        let member = super::get(tx, app.id, tenant, who)?;
        super::send_reset_mail(tx, &tenancy, &app, &member)
    })
    .await?;
    Ok(Empty)
}

/// Whoever has the link can become the person, everywhere and without the mailbox: a key of the whole app's business.
async fn reset_link(
    caller: TenantCaller<UserWrite>,
    State(tenancy): State<Tenancy>,
    Path(who): Path<MemberRef>,
) -> Result<Json<String>> {
    caller.for_whole_app()?;
    let (app, tenant, db) = (caller.app_id(), caller.tenant(), tenancy.db.by(&caller));
    let authority = Authority::of_key(&caller);
    let link = db
        .write(move |tx| {
            workspaces::lock(tx, tenant)?;
            let member = super::get(tx, app, tenant, who)?;
            authority.may_become(tx, app, member.user_id)?;
            super::reset_link(tx, &tenancy, app, &member)
        })
        .await?;
    Ok(Json(link))
}

async fn end_sessions(
    caller: TenantCaller<UserWrite>,
    State(tenancy): State<Tenancy>,
    Path(who): Path<MemberRef>,
) -> Result<Success> {
    let (app, tenant, authority) = (caller.app_id(), caller.tenant(), Authority::of_key(&caller));
    tenancy
        .db
        .by(&caller)
        .write(move |tx| {
            let member = super::get(tx, app, tenant, who)?;
            authority.may_change_person(tx, app, member.user_id)?;
            people::end_sessions(tx, app, member.user_id)
        })
        .await?;
    Ok(Success)
}
