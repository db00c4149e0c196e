//! Becoming a member without being asked, for one person or many.

use std::slice;

use ::store::Tx;
use kernel::{Code, Error, MemberId, Result, TenantId, Timestamp, email_key, text::one_line};
use serde_json::json;
use spine::emit_all;

use super::{Member, invitations, password_link, store, told};
use crate::{
    App, Tenancy,
    apps::parameters::Parameters,
    facts::TenantUserCreated,
    links::LinkPurpose,
    mails::{self, AppMail},
    people::{self, Newcomer, User},
    roles::Role,
    workspaces::Tenant,
};

/// A person who joins a workspace.
#[derive(Clone, Copy, Debug)]
pub struct Joining<'a> {
    pub email: &'a str,
    pub first_name: &'a str,
    pub last_name: &'a str,
    pub role: &'a Role,
    /// Whether they have done what the app asks of newcomers.
    pub onboarded: bool,
    pub parameters: &'a Parameters,
    /// Whether the address counts as proven, should there be nobody who has it.
    pub email_verified: bool,
    /// Whether they are told by mail, with a link that sets their password.
    pub invite: bool,
}

impl Joining<'_> {
    fn newcomer(&self) -> Newcomer<'_> {
        Newcomer {
            email: self.email,
            first_name: self.first_name.trim(),
            last_name: self.last_name.trim(),
            email_verified: self.email_verified,
        }
    }

    fn member(&self, id: MemberId, user: &User, tenant: TenantId, now: Timestamp) -> Member {
        let User { id: user_id, email, first_name, last_name, phone_number } = user.clone();
        Member {
            id,
            user_id,
            tenant_id: tenant,
            role: self.role.key.clone(),
            role_id: self.role.id,
            email,
            first_name,
            last_name,
            phone_number,
            onboarded: self.onboarded,
            consents_to_privacy_policy: false,
            enabled: true,
            teams: Vec::new(),
            parameters: self.parameters.clone(),
            last_seen: None,
            created_at: now,
        }
    }
}

/// A person who has just joined.
#[derive(Clone, Debug)]
pub struct Joined {
    pub member: Member,
    /// Whether nobody had their address before.
    pub is_new_person: bool,
}

/// Makes the person a member. The caller holds the workspace's lock, or has just made the workspace.
pub fn add(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, tenant: &Tenant, joining: &Joining<'_>) -> Result<Joined> {
    let joined = add_all(tx, tenancy, app, tenant, slice::from_ref(joining))?.pop().flatten();
    joined.ok_or_else(|| already_member(joining.email))
}

pub fn already_member(email: &str) -> Error {
    Error::new(Code::MemberExists, format!("{email} is already a member of this workspace."))
}

/// The same for several people, in their order; `None` for those who are members already.
pub fn add_all(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    tenant: &Tenant,
    joining: &[Joining<'_>],
) -> Result<Vec<Option<Joined>>> {
    let newcomers: Vec<_> = joining.iter().map(Joining::newcomer).collect();
    let people = people::find_or_create_all(tx, app.id, &newcomers)?;
    // Invitations that they had are settled by this.
    let keys: Vec<String> = joining.iter().map(|one| email_key(one.email)).collect();
    let mut invited = invitations::settle(tx, app.id, tenant.id, &keys)?;
    let mut members = Vec::with_capacity(joining.len());
    for ((one, key), (user, _)) in joining.iter().zip(&keys).zip(&people) {
        let id = invited.remove(key).unwrap_or_else(|| tx.new_id());
        members.push(one.member(id, user, tenant.id, tx.now()));
    }
    let stored = store::insert_new(tx, app.id, &members)?;
    let is_stored = |member: &&Member| stored.contains(&member.id);
    let facts: Vec<_> = members.iter().filter(is_stored).map(|member| TenantUserCreated(told(member))).collect();
    emit_all(tx, (app.id, tenant.id), &facts)?;
    let mut joined = Vec::with_capacity(joining.len());
    for ((one, member), (_, is_new_person)) in joining.iter().zip(members).zip(people) {
        let new = stored.contains(&member.id).then_some(Joined { member, is_new_person });
        if let Some(new) = new.as_ref().filter(|_| one.invite) {
            welcome(tx, tenancy, app, tenant, new)?;
        }
        joined.push(new);
    }
    Ok(joined)
}

/// Tells somebody by mail that they have joined.
fn welcome(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App, tenant: &Tenant, joined: &Joined) -> Result<()> {
    let (member, workspace) = (&joined.member, one_line(&tenant.name));
    // Such mails are kept and passed on: for somebody who has an account they open nothing.
    let link = if people::has_proven_address(tx, app.id, member.user_id)? {
        way_in(tenancy, app)
    } else {
        let payload = json!({ "tenantId": tenant.id, "memberId": member.id });
        password_link(tx, tenancy, app.id, LinkPurpose::Invitation, member.user_id, &payload)?
    };
    let mail = match joined.is_new_person {
        true => AppMail::InviteNew { workspace, link },
        false => AppMail::InviteExisting { workspace, link },
    };
    mails::queue(tx, tenancy, app, &member.email, &mail)
}

/// Where somebody who has an account signs in.
fn way_in(tenancy: &Tenancy, app: &App) -> String {
    let profile = &app.profile;
    let own = profile.ui_url.as_ref().or(profile.website_url.as_ref()).map(ToString::to_string);
    own.unwrap_or_else(|| format!("{}/auth/url/login/{}", tenancy.base_url, app.id))
}
