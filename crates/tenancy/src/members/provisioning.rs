//! People whom a workspace's directory provisions. It can assert any address, so it makes members only of addresses in the
//! domains of the workspace's connection, which the app has given it; everybody else is invited, without a mail, until they
//! come in through that connection. Nothing here tells whether an address is known elsewhere.

use ::store::Tx;
use kernel::{AppId, Code, Error, MemberId, Result, TenantId, email_key};

use super::{Joining, Listed, Member, MemberRef, invitations, store};
use crate::{
    App, Authority, Tenancy,
    apps::parameters::Parameters,
    federation::{self, ConnectionId},
    people,
    roles::{self, OWNER, Role},
    workspaces::Tenant,
};

/// Somebody whom a directory wants in the workspace.
#[derive(Clone, Copy, Debug)]
pub struct Provision<'a> {
    pub email: &'a str,
    pub first_name: &'a str,
    pub last_name: &'a str,
    pub role: &'a Role,
}

/// Makes somebody a member, or invites them. The caller holds the workspace's lock.
pub fn provision(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: &App,
    tenant: &Tenant,
    provision: &Provision<'_>,
) -> Result<Listed> {
    let Provision { email, first_name, last_name, role } = *provision;
    let Some(connection) = connection_of_address(tx, app.id, tenant, email)? else {
        return invitations::invite_quietly(tx, app.id, tenant.id, provision);
    };
    let known = people::find_by_email(tx, app.id, email)?;
    let is_known_elsewhere = match &known {
        Some(known) => store::belongs_outside(tx, app.id, known.id, connection)?,
        None => false,
    };
    // Whoever belongs elsewhere is not named by this directory, not even when they have no name yet.
    let (first_name, last_name) = if is_known_elsewhere { ("", "") } else { (first_name, last_name) };
    let parameters = &Parameters::default();
    let joining = Joining {
        email,
        first_name,
        last_name,
        role,
        onboarded: false,
        parameters,
        email_verified: false,
        invite: false,
    };
    if invitations::find_by_address(tx, app.id, tenant.id, &email_key(email))?.is_some() {
        return Err(invitations::exists(email));
    }
    let member = super::add(tx, tenancy, app, tenant, &joining)?.member;
    if is_known_elsewhere {
        super::vouch(tx, app.id, member.id, connection)?;
    }
    Ok(member.into())
}

/// The workspace's connection, when the address is in one of its domains.
fn connection_of_address(tx: &mut Tx<'_>, app: AppId, tenant: &Tenant, email: &str) -> Result<Option<ConnectionId>> {
    let own = tenant.federation_connection.as_deref();
    let of_domain = federation::connection_of_domain(tx, app, email)?;
    Ok(of_domain.filter(|id| own == Some(id.to_string().as_str())))
}

/// What became of an address that a directory changed.
#[derive(Clone, Debug)]
pub enum Renamed {
    /// The invitation is for the new address.
    Invited(Listed),
    /// The person has the new address, and whatever proved the former one has to end.
    Person(Member),
}

/// Gives a user of the workspace another address, by the rule by which somebody with that address would be provisioned: a
/// person is renamed within the domains of the workspace's connection; outside of them the former person leaves, and the
/// new address is invited under the same id. The caller holds the workspace's lock and has checked that the former person
/// belongs nowhere else.
pub fn rename(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: AppId,
    authority: &Authority,
    tenant: &Tenant,
    user: &Listed,
    email: &str,
) -> Result<Renamed> {
    may_hand_over(tx, app, authority, user)?;
    if let Some(holder) = find_by_address(tx, app, tenant.id, email)?
        && holder.id != user.id
    {
        return Err(invitations::exists(email));
    }
    let Some(person) = user.user_id else {
        return invitations::readdress(tx, app, user, email).map(Renamed::Invited);
    };
    if connection_of_address(tx, app, tenant, email)?.is_some() {
        if people::find_by_email(tx, app, email)?.is_some() {
            return Err(invitations::exists(email));
        }
        super::change_address(tx, app, person, email)?;
        return Ok(Renamed::Person(super::get(tx, app, tenant.id, MemberRef::Member(user.id))?));
    }
    super::remove(tx, tenancy, app, tenant.id, MemberRef::Member(user.id))?;
    let invited =
        Listed { email: email.to_owned(), user_id: None, last_seen: None, phone_number: None, ..user.clone() };
    invitations::put(tx, app, &invited)?;
    Ok(Renamed::Invited(invited))
}

/// 403 for somebody whose role the caller could not give: another address may be another person.
fn may_hand_over(tx: &mut Tx<'_>, app: AppId, authority: &Authority, user: &Listed) -> Result<()> {
    if user.role == OWNER {
        let message = "The address of an OWNER cannot be changed by a directory.";
        return Err(Error::new(Code::Forbidden, message));
    }
    authority.may_give(&roles::get(tx, app, user.role_id)?)
}

/// The user of the workspace with this address, member or invited.
pub fn find_by_address(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, email: &str) -> Result<Option<Listed>> {
    let key = email_key(email);
    if let Some(member) = store::find_by_address(tx, app, tenant, &key)? {
        return Ok(Some(member.into()));
    }
    invitations::find_by_address(tx, app, tenant, &key)
}

/// Those of these ids that are users of the workspace, in the order of their ids.
pub fn find_all(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, ids: &[MemberId]) -> Result<Vec<Listed>> {
    store::find_all(tx, app, tenant, ids)
}

/// The users after this one in the order of their ids, at most `limit`.
pub fn after(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    after: Option<MemberId>,
    limit: i64,
) -> Result<Vec<Listed>> {
    store::after(tx, app, tenant, after, limit)
}

/// The users from the n-th on in the order of their ids.
pub fn from_place(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, place: i64, limit: i64) -> Result<Vec<Listed>> {
    store::from_place(tx, app, tenant, place, limit)
}

/// How many users the workspace has.
pub fn count(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<i64> {
    store::count(tx, app, tenant)
}

/// Who belongs to the workspace on its identity provider's or directory's word alone, and is known to it by address only.
pub fn vouched(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Vec<MemberId>> {
    store::vouched(tx, app, tenant)
}

/// Whether names of this user are theirs in other workspaces too, and not the directory's to set.
pub fn is_elsewhere(tx: &mut Tx<'_>, app: AppId, user: &Listed) -> Result<bool> {
    match user.user_id {
        Some(person) => store::belongs_to_several(tx, app, person),
        None => Ok(false),
    }
}

/// The user with what they are now, by their id.
pub fn get(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, id: MemberId) -> Result<Listed> {
    super::get_listed(tx, app, tenant, MemberRef::Member(id))
}

/// Whether this is the role that only the workspace itself hands out.
pub fn is_owner(user: &Listed) -> bool {
    user.role == OWNER
}
