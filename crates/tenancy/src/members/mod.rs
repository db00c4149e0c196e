//! Members: what a person is in one workspace; `tenantUser` on the wire. A workspace always keeps an enabled OWNER:
//! every change that could take the last one away is refused. Whom a workspace wants as a member is invited until they
//! agree; the app itself makes members at once.

pub mod http;
pub mod invitations;
mod joining;
mod member_ref;
pub mod provisioning;
mod rules;
mod store;
mod wire;

use std::time::Duration;

use ::store::Tx;
use kernel::{AppId, Code, Error, MemberId, Page, Result, TenantId, Timestamp, UserId};
use serde_json::json;
use spine::emit;

pub use joining::{Joined, Joining, add, add_all, already_member};
pub use member_ref::MemberRef;
pub use rules::{MemberChanges, NewMember};
pub use wire::{Association, TenantUser};

use crate::{
    App, Authority, Tenancy, api_tokens,
    apps::{
        self,
        parameters::{self, EditableBy, Parameters},
    },
    facts::{MemberData, PasswordLinkCreated, PersonRemoved, TenantUserDeleted, TenantUserUpdated},
    federation::ConnectionId,
    links::{self, LinkPurpose},
    mails::{self, AppMail},
    paths,
    people::{self, User},
    roles::{self, RoleId},
    standing::Standing,
    workspaces::{self, Tenant},
};

/// A member with what is known of the person.
#[derive(Clone, Debug, PartialEq)]
pub struct Member<U = UserId> {
    pub id: MemberId,
    /// The person, the same in all their workspaces.
    pub user_id: U,
    pub tenant_id: TenantId,
    /// The role's key.
    pub role: String,
    pub role_id: RoleId,
    pub email: String,
    pub first_name: String,
    pub last_name: String,
    pub phone_number: Option<String>,
    pub onboarded: bool,
    pub consents_to_privacy_policy: bool,
    /// Whether they can sign in to this workspace.
    pub enabled: bool,
    pub teams: Vec<String>,
    /// What the app keeps about them.
    pub parameters: Parameters,
    pub last_seen: Option<Timestamp>,
    pub created_at: Timestamp,
}

/// Somebody in a workspace's list: nobody's person while they are only invited.
pub type Listed = Member<Option<UserId>>;

impl From<Member> for Listed {
    fn from(member: Member) -> Self {
        let user = member.user_id;
        member.with_person(Some(user))
    }
}

impl<U> Member<U> {
    fn with_person<V>(self, user_id: V) -> Member<V> {
        Member {
            id: self.id,
            user_id,
            tenant_id: self.tenant_id,
            role: self.role,
            role_id: self.role_id,
            email: self.email,
            first_name: self.first_name,
            last_name: self.last_name,
            phone_number: self.phone_number,
            onboarded: self.onboarded,
            consents_to_privacy_policy: self.consents_to_privacy_policy,
            enabled: self.enabled,
            teams: self.teams,
            parameters: self.parameters,
            last_seen: self.last_seen,
            created_at: self.created_at,
        }
    }
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

/// Makes a member as a key of the whole app asks for it, or invites somebody for a caller of one workspace.
pub fn create(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    authority: &Authority,
    tenant: TenantId,
    new: &NewMember,
) -> Result<(Listed, Tenant)> {
    workspaces::lock(tx, tenant)?;
    let tenant = workspaces::get(tx, app.id, tenant)?;
    let role = roles::assign(tx, app.id, new.role.as_deref())?;
    authority.may_give(&role)?;
    let (none, given) = (Parameters::default(), new.parameters.clone().unwrap_or_default());
    parameters::may_become(&app.profile.user_parameters, editor(authority), &none, &given)?;
    if authority.workspace().is_some() {
        let invited = invitations::invite(tx, tenancy, app, authority, &tenant, &role, new)?;
        return Ok((invited, tenant));
    }
    let joining = Joining {
        email: &new.username,
        first_name: new.first_name.as_deref().unwrap_or_default(),
        last_name: new.last_name.as_deref().unwrap_or_default(),
        role: &role,
        onboarded: false,
        parameters: &given,
        email_verified: false,
        invite: !new.mute_notifications.unwrap_or_default(),
    };
    let joined = add(tx, tenancy, app, &tenant, &joining)?;
    Ok((joined.member.into(), tenant))
}

pub fn find(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, who: MemberRef) -> Result<Option<Member>> {
    store::find(tx, app, tenant, who)
}

/// 409 for somebody who is only invited: nothing can be done to a person who has not come.
pub fn get(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, who: MemberRef) -> Result<Member> {
    if let Some(member) = find(tx, app, tenant, who)? {
        return Ok(member);
    }
    match invitations::find(tx, app, tenant, who)? {
        Some(_) => Err(Error::new(Code::InvitationPending, "This user has not accepted the invitation yet.")),
        None => Err(no_user()),
    }
}

/// A member, or somebody who is invited.
pub fn get_listed(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, who: MemberRef) -> Result<Listed> {
    match find(tx, app, tenant, who)? {
        Some(member) => Ok(member.into()),
        None => invitations::find(tx, app, tenant, who)?.ok_or_else(no_user),
    }
}

fn no_user() -> Error {
    Error::not_found("user in this workspace")
}

/// Members and those who are invited, newest first.
pub fn list(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, page: Page) -> Result<Vec<Listed>> {
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

/// Whether a person belongs to a workspace that does not use this connection.
pub fn belongs_outside(tx: &mut Tx<'_>, app: AppId, user: UserId, connection: ConnectionId) -> Result<bool> {
    store::belongs_outside(tx, app, user, connection)
}

/// Whether somebody with this address is an enabled OWNER of a workspace that uses this connection.
pub fn owns_through(tx: &mut Tx<'_>, app: AppId, connection: ConnectionId, email_key: &str) -> Result<bool> {
    store::owns_through(tx, app, connection, email_key)
}

/// Changes what the person is in the workspace, and the person where the changes name something of them. A member who is
/// disabled loses the tokens that they made; one with another role, those that do more than the role.
pub fn update(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: AppId,
    authority: &Authority,
    tenant: TenantId,
    who: MemberRef,
    changes: &MemberChanges,
) -> Result<Listed> {
    workspaces::lock(tx, tenant)?;
    if let Some(invited) = invitations::find(tx, app, tenant, who)? {
        return invitations::update(tx, app, authority, &invited, changes);
    }
    let mut before = get(tx, app, tenant, who)?;
    if changes.name_the_person() {
        // The workspace's lock does not keep other workspaces from changing the same person.
        people::hold(tx, app, before.user_id)?;
        before = get(tx, app, tenant, who)?;
    }
    let role = changes.role.value().map(|key| roles::assign(tx, app, Some(key))).transpose()?;
    let after = changes.apply(&before, role.as_ref());
    if after == before {
        return Ok(after.into());
    }
    let role = role.filter(|role| role.id != before.role_id);
    if let Some(role) = &role {
        authority.may_give(role)?;
    }
    check_parameters(tx, app, editor(authority), &before.parameters, &after.parameters)?;
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
    } else if let Some(role) = &role {
        let had = roles::get(tx, app, before.role_id)?;
        api_tokens::revoke_beyond_role(tx, &tenancy.api_tokens, app, after.id, (&had, role))?;
    }
    emit(tx, (app, tenant), &TenantUserUpdated(told(&after)))?;
    Ok(after.into())
}

/// Changes what a person says of themselves, and those of their parameters in the workspace that are theirs to change.
pub fn update_self(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    user: UserId,
    changes: &MemberChanges,
) -> Result<Member> {
    workspaces::lock(tx, tenant)?;
    people::hold(tx, app, user)?;
    let before = get(tx, app, tenant, MemberRef::User(user))?;
    let after = changes.apply(&before, None);
    if after == before {
        return Ok(after);
    }
    check_parameters(tx, app, EditableBy::User, &before.parameters, &after.parameters)?;
    if rules::is_another_person(&before, &after) {
        people::update(tx, app, &after.person())?;
    }
    store::update(tx, app, &after)?;
    emit(tx, (app, tenant), &TenantUserUpdated(told(&after)))?;
    Ok(after)
}

/// On whose behalf somebody with this authority changes parameters.
fn editor(authority: &Authority) -> EditableBy {
    if authority.workspace().is_none() { EditableBy::App } else { EditableBy::Owner }
}

/// Judges parameters that change, by what the app defines now.
fn check_parameters(
    tx: &mut Tx<'_>,
    app: AppId,
    editor: EditableBy,
    before: &Parameters,
    after: &Parameters,
) -> Result<()> {
    if before == after {
        return Ok(());
    }
    let definitions = apps::get(tx, app)?.profile.user_parameters;
    parameters::may_become(&definitions, editor, before, after)
}

/// Notes that somebody with other workspaces belongs to this one because a connection says so. Until they come by themselves,
/// the workspace learns nothing of them and asks nothing of their other logins.
pub fn vouch(tx: &mut Tx<'_>, app: AppId, member: MemberId, connection: ConnectionId) -> Result<()> {
    store::set_vouched(tx, app, member, Some(connection))
}

/// They came by themselves.
pub fn confirm(tx: &mut Tx<'_>, app: AppId, member: MemberId) -> Result<()> {
    store::set_vouched(tx, app, member, None)
}

/// Gives a person another address, which is not proven; 409 when somebody has it.
pub fn change_address(tx: &mut Tx<'_>, app: AppId, user: UserId, email: &str) -> Result<()> {
    people::change_address(tx, app, user, email)?;
    for association in store::associations(tx, app, user)? {
        let member = get(tx, app, association.tenant_id, MemberRef::User(user))?;
        emit(tx, (app, member.tenant_id), &TenantUserUpdated(told(&member)))?;
    }
    Ok(())
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
    if let Some(invited) = invitations::find(tx, app, tenant, who)? {
        return invitations::withdraw(tx, app, &invited);
    }
    let member = get(tx, app, tenant, who)?;
    if rules::is_active_owner(&member) {
        keep_an_owner(tx, app, &member)?;
    }
    people::hold(tx, app, member.user_id)?;
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
    links::keep_newest(tx, app, LinkPurpose::PasswordReset, member.user_id)?;
    let payload = json!({ "tenantId": member.tenant_id, "memberId": member.id });
    password_link(tx, tenancy, app, LinkPurpose::PasswordReset, member.user_id, &payload)
}

fn tell_of_link(tx: &mut Tx<'_>, app: AppId, member: &Member, mailed: bool) -> Result<()> {
    let told = PasswordLinkCreated { tenant_user_id: member.id, user_id: member.user_id, mailed };
    emit(tx, (app, member.tenant_id), &told)
}

/// Mails such a link.
pub fn send_reset_mail(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, member: &Member) -> Result<()> {
    mails::budget::count(tx, app.id, &member.email)?;
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
