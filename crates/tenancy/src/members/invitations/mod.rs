//! Invitations: somebody whom a workspace wants as a member, and who has not agreed yet. All that is known of them is what
//! the workspace said: whether the address has an account is not looked at, and the person's login, workspaces and
//! factors are as if there were no invitation. Agreeing turns it into a membership with the same id.

pub mod http;
mod store;

use std::{collections::HashMap, time::Duration};

use ::store::Tx;
use kernel::{Actor, AppId, Code, Error, MemberId, Result, TenantId, UserId, email_key, text::one_line};
use serde_json::json;
use spine::emit;
use web::limited;

pub(super) use store::SELECT;

use super::{Listed, Member, MemberChanges, MemberRef, NewMember, provisioning::Provision, told};
use crate::{
    App, Authority, Tenancy,
    apps::parameters::Parameters,
    facts::{InvitationCreated, InvitationData, InvitationDeleted, InvitationUpdated, TenantUserCreated},
    links::{self, LinkPurpose, MailedLink},
    mails::{self, AppMail},
    paths, people,
    roles::{self, Role},
    workspaces::{self, Tenant},
};

/// In characters: a name, and no message.
const LONGEST_INVITER: usize = 60;
/// Mails about invitations that one workspace may send within an hour.
const MOST_AN_HOUR: i64 = 100;
const HOUR: Duration = Duration::from_secs(3600);

/// Invites somebody, whether the address is known or not. The caller holds the workspace's lock.
pub(super) fn invite(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    authority: &Authority,
    tenant: &Tenant,
    role: &Role,
    new: &NewMember,
) -> Result<Listed> {
    if new.mute_notifications == Some(true) {
        let message =
            "muteNotifications can only be set by a key of the whole app: without the email nobody could accept.";
        return Err(Error::new(Code::Forbidden, message));
    }
    let invited = Listed {
        id: tx.new_id(),
        user_id: None,
        tenant_id: tenant.id,
        role: role.key.clone(),
        role_id: role.id,
        email: new.username.to_string(),
        first_name: new.first_name.as_deref().unwrap_or_default().trim().to_owned(),
        last_name: new.last_name.as_deref().unwrap_or_default().trim().to_owned(),
        phone_number: None,
        onboarded: false,
        consents_to_privacy_policy: false,
        enabled: true,
        teams: Vec::new(),
        parameters: new.parameters.clone().unwrap_or_default(),
        last_seen: None,
        created_at: tx.now(),
    };
    insert(tx, app.id, &invited, authority.member())?;
    mail(tx, tenancy, app, &invited)?;
    Ok(invited)
}

/// 409 for somebody who is a member already, or invited.
fn insert(tx: &mut Tx<'_>, app: AppId, invited: &Listed, by: Option<MemberId>) -> Result<()> {
    let key = email_key(&invited.email);
    if store::is_member(tx, app, invited.tenant_id, &key)? || !store::insert(tx, app, invited, &key, by)? {
        return Err(exists(&invited.email));
    }
    emit(tx, (app, invited.tenant_id), &InvitationCreated(data(invited)))
}

pub(super) fn exists(email: &str) -> Error {
    Error::new(Code::MemberExists, format!("{email} is already a member of this workspace, or invited to it."))
}

/// Invites somebody for the workspace's directory, without a mail: they come in through its connection. The caller holds the
/// workspace's lock.
pub(super) fn invite_quietly(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    provision: &Provision<'_>,
) -> Result<Listed> {
    let invited = Listed {
        id: tx.new_id(),
        user_id: None,
        tenant_id: tenant,
        role: provision.role.key.clone(),
        role_id: provision.role.id,
        email: provision.email.to_owned(),
        first_name: provision.first_name.trim().to_owned(),
        last_name: provision.last_name.trim().to_owned(),
        phone_number: None,
        onboarded: false,
        consents_to_privacy_policy: false,
        enabled: true,
        teams: Vec::new(),
        parameters: Parameters::default(),
        last_seen: None,
        created_at: tx.now(),
    };
    insert(tx, app, &invited, None)?;
    Ok(invited)
}

/// Puts an invitation in the place of a membership that ended, with all that the workspace said. The caller holds the
/// workspace's lock.
pub(super) fn put(tx: &mut Tx<'_>, app: AppId, invited: &Listed) -> Result<()> {
    insert(tx, app, invited, None)?;
    store::update(tx, app, invited)
}

/// Gives an invitation another address, to which nothing is mailed; links of the former one open nothing any more. The caller
/// holds the workspace's lock and has seen that the address is free.
pub(super) fn readdress(tx: &mut Tx<'_>, app: AppId, invited: &Listed, email: &str) -> Result<Listed> {
    let after = Listed { email: email.to_owned(), ..invited.clone() };
    store::readdress(tx, app, invited.id, email, &email_key(email))?;
    emit(tx, (app, after.tenant_id), &InvitationUpdated(data(&after)))?;
    Ok(after)
}

pub(super) fn find_by_address(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    email_key: &str,
) -> Result<Option<Listed>> {
    store::find_by_address(tx, app, tenant, email_key)
}

/// Mails the invitation, for the first time or once more.
pub(super) fn mail(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, invited: &Listed) -> Result<()> {
    let (count, since) = store::count_mail(tx, app.id, invited.tenant_id, tx.now().minus(HOUR))?;
    if count > MOST_AN_HOUR {
        let message = "This workspace has sent too many invitations. Try again after the seconds in Retry-After.";
        return Err(limited("invitation", message, since.plus(HOUR).since(tx.now())));
    }
    mails::budget::count(tx, app.id, &invited.email)?;
    let payload = json!({ "tenantId": invited.tenant_id, "memberId": invited.id, "email": invited.email });
    let token = links::create(tx, app.id, LinkPurpose::Invitation, None, &payload)?;
    let link = format!("{}{}?token={token}", tenancy.base_url, paths::SET_PASSWORD);
    let workspace = one_line(&workspaces::get(tx, app.id, invited.tenant_id)?.name);
    let inviter = store::inviter(tx, app.id, invited.id)?;
    let inviter = inviter.map(|(first, last)| people::full_name(&first, &last)).filter(|name| !name.is_empty());
    let inviter: String =
        one_line(inviter.as_deref().unwrap_or(&app.profile.name)).chars().take(LONGEST_INVITER).collect();
    mails::queue(tx, tenancy, app, &invited.email, &AppMail::Invitation { workspace, inviter, link })
}

/// Mails an invitation once more; 404 when there is none.
pub fn mail_again(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, tenant: TenantId, id: MemberId) -> Result<()> {
    workspaces::lock(tx, tenant)?;
    let invited = store::find(tx, app.id, tenant, id)?.ok_or_else(|| Error::not_found("invitation"))?;
    mail(tx, tenancy, app, &invited)
}

/// The invitation with this id. Nobody can be found by a person before they came.
pub(super) fn find(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, who: MemberRef) -> Result<Option<Listed>> {
    match who {
        MemberRef::Member(id) => store::find(tx, app, tenant, id),
        MemberRef::User(_) => Ok(None),
    }
}

/// Changes what the workspace says of somebody who has not come. The caller holds the workspace's lock.
pub(super) fn update(
    tx: &mut Tx<'_>,
    app: AppId,
    authority: &Authority,
    before: &Listed,
    changes: &MemberChanges,
) -> Result<Listed> {
    let role = changes.role.value().map(|key| roles::assign(tx, app, Some(key))).transpose()?;
    let after = changes.apply(before, role.as_ref());
    if after == *before {
        return Ok(after);
    }
    if let Some(role) = role.filter(|role| role.id != before.role_id) {
        authority.may_give(&role)?;
    }
    super::check_parameters(tx, app, super::editor(authority), &before.parameters, &after.parameters)?;
    store::update(tx, app, &after)?;
    emit(tx, (app, after.tenant_id), &InvitationUpdated(data(&after)))?;
    Ok(after)
}

/// Takes the invitation back. The caller holds the workspace's lock.
pub(super) fn withdraw(tx: &mut Tx<'_>, app: AppId, invited: &Listed) -> Result<()> {
    end(tx, app, invited, false)
}

fn end(tx: &mut Tx<'_>, app: AppId, invited: &Listed, declined: bool) -> Result<()> {
    store::delete(tx, app, invited.id)?;
    emit(tx, (app, invited.tenant_id), &InvitationDeleted { invitation: data(invited), declined })
}

/// Part of making people members without being asked: their invitations are over, and the memberships take the ids. By address.
pub(super) fn settle(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    email_keys: &[String],
) -> Result<HashMap<String, MemberId>> {
    Ok(store::take_all(tx, app, tenant, email_keys)?.into_iter().collect())
}

/// An invitation in the hands of whoever has its link.
#[derive(Clone, Debug)]
pub struct Offer {
    pub invited: Listed,
    pub workspace: String,
}

/// What a link offers; `None` for the link of a membership that exists already. 401 once it was taken back.
pub fn offered(tx: &mut Tx<'_>, link: &MailedLink) -> Result<Option<Offer>> {
    if link.user.is_some() {
        return Ok(None);
    }
    pending(tx, link).map(Some)
}

/// 401 when the invitation is over, suspended, or for another address by now; a workspace that was deleted leaves its
/// invitations behind for a while.
fn pending(tx: &mut Tx<'_>, link: &MailedLink) -> Result<Offer> {
    let (app, (tenant, id)) = (link.app, ids(link)?);
    let mailed_to = |invited: &Listed| link.payload["email"].as_str().is_none_or(|to| to == invited.email);
    let invited = store::find(tx, app, tenant, id)?.filter(|invited| invited.enabled && mailed_to(invited));
    let invited = invited.ok_or_else(links::invalid)?;
    match workspaces::get(tx, app, tenant) {
        Ok(tenant) => Ok(Offer { invited, workspace: tenant.name }),
        Err(error) if error.code() == Code::NotFound => Err(links::invalid()),
        Err(error) => Err(error),
    }
}

/// Makes whoever has the invitation's address a member; the person is made if there is none. The caller has used up the
/// invitation's link. With `by`, 403 unless it is this person's address.
pub fn accept(tx: &mut Tx<'_>, link: &MailedLink, by: Option<UserId>) -> Result<Member> {
    let (app, (tenant, id)) = (link.app, ids(link)?);
    let invited = held(tx, link)?;
    let (user, _) = people::find_or_create(tx, app, &invited.email, &invited.first_name, &invited.last_name)?;
    if by.is_some_and(|by| by != user.id) {
        return Err(not_yours());
    }
    tx.acting_as(Actor::user(user.id));
    store::delete(tx, app, id)?;
    // The phone number is the workspace's word about somebody, and stays behind with the invitation.
    store::join(tx, app, &invited, user.id)?;
    people::verify_email(tx, app, user.id)?;
    let member = super::get(tx, app, tenant, MemberRef::Member(id))?;
    emit(tx, (app, tenant), &TenantUserCreated(told(&member)))?;
    Ok(member)
}

/// Makes whoever comes in through the workspace's identity provider the member that they were invited to be; `None` when they were not.
/// Nothing is said of the address, which no mail has proven. The caller holds the workspace's lock.
pub fn accept_through_connection(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, email: &str) -> Result<Option<Member>> {
    let Some(invited) = store::find_by_address(tx, app, tenant, &email_key(email))? else { return Ok(None) };
    let (user, _) = people::find_or_create(tx, app, &invited.email, &invited.first_name, &invited.last_name)?;
    store::delete(tx, app, invited.id)?;
    store::join(tx, app, &invited, user.id)?;
    let member = super::get(tx, app, tenant, MemberRef::Member(invited.id))?;
    emit(tx, (app, tenant), &TenantUserCreated(told(&member)))?;
    Ok(Some(member))
}

/// Says no for whoever has the invitation's address. The caller has used up the link.
pub fn decline(tx: &mut Tx<'_>, link: &MailedLink) -> Result<()> {
    let invited = held(tx, link)?;
    end(tx, link.app, &invited, true)
}

/// The invitation under its workspace's lock.
fn held(tx: &mut Tx<'_>, link: &MailedLink) -> Result<Listed> {
    workspaces::lock(tx, ids(link)?.0)?;
    Ok(pending(tx, link)?.invited)
}

fn ids(link: &MailedLink) -> Result<(TenantId, MemberId)> {
    let id = |name: &str| link.payload[name].as_str().unwrap_or_default();
    let (tenant, member) = (id("tenantId").parse(), id("memberId").parse());
    tenant.ok().zip(member.ok()).ok_or_else(|| Error::internal("an invitation's link without ids"))
}

fn not_yours() -> Error {
    Error::new(
        Code::Forbidden,
        "This invitation was sent to another email address. Sign in with that one to accept it.",
    )
}

fn data(invited: &Listed) -> InvitationData {
    InvitationData {
        workspace_id: invited.tenant_id,
        tenant_user_id: invited.id,
        email: invited.email.clone(),
        role: invited.role.clone(),
    }
}
