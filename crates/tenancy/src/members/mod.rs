//! Members: what a person is in one workspace; `tenantUser` on the wire. A workspace always keeps an enabled OWNER:
//! every change that could take the last one away is refused.

pub mod http;
mod member_ref;
mod rules;
mod store;

use std::{sync::Arc, time::Duration};

use ::store::Tx;
use kernel::{AppId, Code, Error, MemberId, Page, Result, TenantId, Timestamp, UserId, text::one_line};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use spine::emit;

pub use member_ref::MemberRef;
pub use rules::{MemberChanges, NewMember};

use crate::{
    App, Authority, Tenancy, api_tokens,
    facts::{MemberData, PasswordLinkCreated, PersonRemoved, TenantUserCreated, TenantUserDeleted, TenantUserUpdated},
    links::{self, LinkPurpose},
    mails::{self, AppMail},
    paths,
    people::{self, User},
    roles::{self, Role, RoleId},
    standing::Standing,
    workspaces::{self, Tenant},
};

/// A member with what is known of the person.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    pub id: MemberId,
    /// The person, the same in all their workspaces.
    pub user_id: UserId,
    #[serde(skip)]
    pub tenant_id: TenantId,
    /// The role's key.
    pub role: String,
    #[serde(skip)]
    pub role_id: RoleId,
    pub email: String,
    /// The email address.
    pub username: String,
    pub first_name: String,
    pub last_name: String,
    pub full_name: String,
    pub phone_number: Option<String>,
    pub onboarded: bool,
    pub consents_to_privacy_policy: bool,
    /// Whether they can sign in to this workspace.
    pub enabled: bool,
    pub teams: Vec<String>,
    pub last_seen: Option<Timestamp>,
    pub created_at: Timestamp,
}

impl Member {
    fn person(&self) -> User {
        User {
            id: self.user_id,
            email: self.email.clone(),
            first_name: self.first_name.clone(),
            last_name: self.last_name.clone(),
            phone_number: self.phone_number.clone(),
        }
    }
}

/// A member together with the workspace, as it goes over the wire.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TenantUser {
    #[serde(flatten)]
    pub member: Member,
    pub tenant: Arc<Tenant>,
}

/// One of the workspaces that a person belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Association {
    pub tenant_id: TenantId,
    pub tenant_name: String,
    /// The role's key.
    pub role: String,
}

/// A person who joins a workspace.
#[derive(Clone, Copy, Debug)]
pub struct Joining<'a> {
    pub email: &'a str,
    pub first_name: &'a str,
    pub last_name: &'a str,
    pub role: &'a Role,
    /// Whether they are told by mail, with a link that sets their password.
    pub invite: bool,
}

/// Makes the person a member. The caller holds the workspace's lock, or has just made the workspace.
pub fn add(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, tenant: &Tenant, joining: &Joining<'_>) -> Result<Member> {
    let Joining { email, first_name, last_name, role, invite } = *joining;
    let (user, is_new) = people::find_or_create(tx, app.id, email, first_name.trim(), last_name.trim())?;
    let id: MemberId = tx.new_id();
    if !store::insert(tx, app.id, tenant.id, id, user.id, role.id)? {
        return Err(Error::new(Code::MemberExists, format!("{email} is already a member of this workspace.")));
    }
    let member = get(tx, app.id, tenant.id, MemberRef::Member(id))?;
    emit(tx, (app.id, tenant.id), &TenantUserCreated(told(&member)))?;
    if invite {
        let payload = json!({ "tenantId": tenant.id, "memberId": id });
        let link = password_link(tx, tenancy, app.id, LinkPurpose::Invitation, user.id, &payload)?;
        let workspace = one_line(&tenant.name);
        let mail = match is_new {
            true => AppMail::InviteNew { workspace, link },
            false => AppMail::InviteExisting { workspace, link },
        };
        mails::queue(tx, tenancy, app, &user.email, &mail)?;
    }
    Ok(member)
}

/// Makes a member as a key asks for it.
pub fn create(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    authority: &Authority,
    tenant: TenantId,
    new: &NewMember,
) -> Result<(Member, Tenant)> {
    workspaces::lock(tx, tenant)?;
    let tenant = workspaces::get(tx, app.id, tenant)?;
    let role = roles::assign(tx, app.id, new.role.as_deref())?;
    authority.may_give(&role)?;
    let joining = Joining {
        email: &new.username,
        first_name: new.first_name.as_deref().unwrap_or_default(),
        last_name: new.last_name.as_deref().unwrap_or_default(),
        role: &role,
        invite: !new.mute_notifications.unwrap_or_default(),
    };
    let member = add(tx, tenancy, app, &tenant, &joining)?;
    Ok((member, tenant))
}

pub fn find(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, who: MemberRef) -> Result<Option<Member>> {
    store::find(tx, app, tenant, who)
}

pub fn get(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, who: MemberRef) -> Result<Member> {
    find(tx, app, tenant, who)?.ok_or_else(|| Error::not_found("user in this workspace"))
}

/// Newest first.
pub fn list(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, page: Page) -> Result<Vec<Member>> {
    store::list(tx, app, tenant, page)
}

/// The workspaces of this app that a person belongs to, newest first.
pub fn associations(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<Vec<Association>> {
    store::associations(tx, app, user)
}

/// The roles that a person has in the workspaces of this app, each once.
pub(crate) fn roles_of(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<Vec<RoleId>> {
    store::roles_of(tx, app, user)
}

pub(crate) fn belongs_to_several(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<bool> {
    store::belongs_to_several(tx, app, user)
}

/// Changes what the person is in the workspace, and the person where the changes name something of them. A member who is
/// disabled loses the tokens that they made.
pub fn update(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: AppId,
    authority: &Authority,
    tenant: TenantId,
    who: MemberRef,
    changes: &MemberChanges,
) -> Result<Member> {
    workspaces::lock(tx, tenant)?;
    let mut before = get(tx, app, tenant, who)?;
    if changes.name_the_person() {
        // The workspace's lock does not keep other workspaces from changing the same person.
        people::hold(tx, app, before.user_id)?;
        before = get(tx, app, tenant, who)?;
    }
    let role = changes.role.value().map(|key| roles::assign(tx, app, Some(key))).transpose()?;
    let after = changes.apply(&before, role.as_ref());
    if after == before {
        return Ok(after);
    }
    if let Some(role) = role.filter(|role| role.id != before.role_id) {
        authority.may_give(&role)?;
    }
    if rules::is_active_owner(&before) && !rules::is_active_owner(&after) {
        keep_an_owner(tx, app, &before)?;
    }
    if rules::is_another_person(&before, &after) {
        authority.may_change_person(tx, app, before.user_id)?;
        people::update(tx, app, &after.person())?;
    }
    store::update(tx, app, &after)?;
    if before.enabled && !after.enabled {
        api_tokens::revoke_of_member(tx, &tenancy.api_tokens, app, after.id)?;
    }
    emit(tx, (app, tenant), &TenantUserUpdated(told(&after)))?;
    Ok(after)
}

/// How often it is noted that somebody was seen: to the minute is all that anybody wants to know.
const SEEN_EVERY: Duration = Duration::from_secs(60);

/// Notes that the member got tokens.
pub fn seen(tx: &mut Tx<'_>, app: AppId, standing: &Standing) -> Result<()> {
    let not_since = tx.now().minus(SEEN_EVERY);
    match standing.last_seen_at.is_some_and(|at| at > not_since) {
        true => Ok(()),
        false => store::seen(tx, app, standing.member, not_since),
    }
}

/// Takes a member out of the workspace, with the tokens that they made. A person who belongs nowhere else is gone too.
pub fn remove(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, tenant: TenantId, who: MemberRef) -> Result<()> {
    workspaces::lock(tx, tenant)?;
    let member = get(tx, app, tenant, who)?;
    if rules::is_active_owner(&member) {
        keep_an_owner(tx, app, &member)?;
    }
    store::delete(tx, app, &member)?;
    api_tokens::revoke_of_member(tx, &tenancy.api_tokens, app, member.id)?;
    let is_gone = people::delete_if_nowhere(tx, app, member.user_id)?;
    emit(tx, (app, tenant), &TenantUserDeleted(told(&member)))?;
    if is_gone { emit(tx, app, &PersonRemoved { user_id: member.user_id }) } else { Ok(()) }
}

/// A link with which the person sets a new password.
pub fn reset_link(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, member: &Member) -> Result<String> {
    tell_of_link(tx, app, member, false)?;
    new_reset_link(tx, tenancy, app, member)
}

fn new_reset_link(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, member: &Member) -> Result<String> {
    let payload = json!({ "tenantId": member.tenant_id, "memberId": member.id });
    password_link(tx, tenancy, app, LinkPurpose::PasswordReset, member.user_id, &payload)
}

fn tell_of_link(tx: &mut Tx<'_>, app: AppId, member: &Member, mailed: bool) -> Result<()> {
    let told = PasswordLinkCreated { tenant_user_id: member.id, user_id: member.user_id, mailed };
    emit(tx, (app, member.tenant_id), &told)
}

/// Mails such a link, which takes the place of earlier ones.
pub fn send_reset_mail(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, member: &Member) -> Result<()> {
    links::revoke(tx, app.id, LinkPurpose::PasswordReset, member.user_id)?;
    tell_of_link(tx, app.id, member, true)?;
    let link = new_reset_link(tx, tenancy, app.id, member)?;
    mails::queue(tx, tenancy, app, &member.email, &AppMail::ResetPassword { link })
}

fn password_link(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: AppId,
    purpose: LinkPurpose,
    user: UserId,
    payload: &serde_json::Value,
) -> Result<String> {
    let token = links::create(tx, app, purpose, Some(user), payload)?;
    Ok(format!("{}{}?token={token}", tenancy.base_url, paths::SET_PASSWORD))
}

/// Where to reach those who run the workspace: its enabled OWNERs, at most a hundred.
pub fn owner_addresses(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Vec<String>> {
    store::owner_addresses(tx, app, tenant)
}

/// 409 unless somebody else is an enabled OWNER. Asked under the workspace's lock.
fn keep_an_owner(tx: &mut Tx<'_>, app: AppId, leaving: &Member) -> Result<()> {
    if store::other_active_owners(tx, app, leaving)? > 0 {
        return Ok(());
    }
    let message = "This is the last enabled OWNER of the workspace. Make another member OWNER first.";
    Err(Error::new(Code::LastOwner, message))
}

/// What others are told of them.
fn told(member: &Member) -> MemberData {
    MemberData {
        workspace_id: member.tenant_id,
        tenant_user_id: member.id,
        user_id: member.user_id,
        email: member.email.clone(),
        role: member.role.clone(),
        enabled: member.enabled,
    }
}
