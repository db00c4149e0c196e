//! Creating, changing and removing users as a directory asks for it.

use ::store::Tx;
use kernel::{Code, Email, Error, MemberId, OptionalName, Result, Words, email_key, text::NOT_BLANK, text_types};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use spine::emit;
use tenancy::{
    Authority,
    facts::Change,
    members::{
        self, Listed, MemberChanges, MemberRef,
        provisioning::{self, Provision, Renamed},
    },
    people,
    roles::{self, OWNER, Role},
};
use web::{Given, Patch, Validate, from_value};

use super::{ScimUser, UserRow, forget, get, own_role, store};
use crate::{
    directory::Directory,
    facts::ScimUserChanged,
    groups,
    http::Versions,
    patch::{self, PatchOperation},
    schema::USER,
};

text_types! {
    /// What a directory calls a resource.
    ExternalId {
        "pattern": NOT_BLANK,
        "maxLength": 500,
    }
}

/// What a body says of a user, by the schema's names.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UserBody {
    user_name: Email,
    external_id: Option<ExternalId>,
    active: Option<bool>,
    name: Option<NameBody>,
    roles: Option<Vec<RoleBody>>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct NameBody {
    given_name: Option<OptionalName>,
    family_name: Option<OptionalName>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct RoleBody {
    value: Words,
}

impl Validate for UserBody {}

impl UserBody {
    fn read(content: Map<String, Value>) -> Result<Self> {
        let body: Self = from_value(&Value::Object(content))?;
        match body.roles.as_ref().is_some_and(|roles| roles.len() > 1) {
            true => Err(Error::invalid("roles", "must have one entry: a member has one role")),
            false => Ok(body),
        }
    }

    fn role(&self) -> Option<&str> {
        self.roles.as_ref()?.first().map(|role| role.value.as_str())
    }

    /// First and last name, when they are said.
    fn names(&self) -> Option<(String, String)> {
        let text = |name: &Option<OptionalName>| name.as_deref().unwrap_or_default().trim().to_owned();
        self.name.as_ref().map(|name| (text(&name.given_name), text(&name.family_name)))
    }

    fn external_id(&self) -> Option<String> {
        self.external_id.as_ref().map(ToString::to_string)
    }
}

/// The role that a directory gives: never OWNER, and none beyond what its token's maker held.
fn given(tx: &mut Tx<'_>, directory: &Directory, key: Option<&str>) -> Result<Role> {
    let role = roles::assign(tx, directory.app(), key)
        .map_err(|error| if error.code() == Code::ValidationFailed { unknown_role() } else { error })?;
    if role.key == OWNER {
        return Err(Error::new(Code::Forbidden, "A directory cannot make anybody OWNER."));
    }
    directory.authority.may_give(&role)?;
    Ok(role)
}

fn unknown_role() -> Error {
    Error::invalid("roles", "must have the key of a role of this app")
}

pub(crate) fn create(tx: &mut Tx<'_>, directory: &Directory, body: &Map<String, Value>) -> Result<ScimUser> {
    let body = UserBody::read(body.clone())?;
    let tenant = directory.hold(tx)?;
    let role = given(tx, directory, body.role())?;
    let (first_name, last_name) = body.names().unwrap_or_default();
    let provision = Provision { email: &body.user_name, first_name: &first_name, last_name: &last_name, role: &role };
    let listed = provisioning::provision(tx, &directory.tenancy, &directory.app, &tenant, &provision)?;
    if body.active == Some(false) {
        let disabled = MemberChanges { enabled: Given(Some(false)), ..MemberChanges::default() };
        update(tx, directory, listed.id, &directory.authority, &disabled)?;
    }
    let row = UserRow { external_id: body.external_id(), ..UserRow::default() };
    store::save(tx, directory.app(), directory.tenant, listed.id, &row)?;
    let user = get(tx, directory, listed.id)?;
    tell(tx, directory, &user, Change::Created)?;
    Ok(user)
}

/// What is not said of names, role and activity stays as it is.
pub(crate) fn replace(
    tx: &mut Tx<'_>,
    directory: &Directory,
    id: MemberId,
    versions: &Versions,
    body: &Map<String, Value>,
) -> Result<ScimUser> {
    directory.hold(tx)?;
    let before = get(tx, directory, id)?;
    versions.allow(&before.written(&directory.base()))?;
    change(tx, directory, &before, &UserBody::read(body.clone())?)
}

pub(crate) fn patch(
    tx: &mut Tx<'_>,
    directory: &Directory,
    id: MemberId,
    versions: &Versions,
    operations: &[PatchOperation],
) -> Result<ScimUser> {
    directory.hold(tx)?;
    let before = get(tx, directory, id)?;
    versions.allow(&before.written(&directory.base()))?;
    let mut content = before.content();
    patch::apply(&USER, &mut content, operations)?;
    let mut body = UserBody::read(USER.read(&Value::Object(content))?)?;
    // What was removed is empty, or as for somebody new.
    body.name.get_or_insert_default();
    if body.role().is_none() {
        let role = roles::default_role(tx, directory.app())?.key.parse().map_err(Error::internal)?;
        body.roles = Some(vec![RoleBody { value: role }]);
    }
    change(tx, directory, &before, &body)
}

fn change(tx: &mut Tx<'_>, directory: &Directory, before: &ScimUser, body: &UserBody) -> Result<ScimUser> {
    let (app, id) = (directory.app(), before.listed.id);
    let is_renamed = email_key(&body.user_name) != email_key(&before.listed.email);
    if let Some(person) = before.listed.user_id.filter(|_| is_renamed) {
        // The workspace's lock does not keep them from joining another one.
        people::hold(tx, app, person)?;
    }
    let is_elsewhere = provisioning::is_elsewhere(tx, app, &before.listed)?;
    if is_renamed {
        rename(tx, directory, &before.listed, is_elsewhere, &body.user_name)?;
    }
    let mut changes = MemberChanges { enabled: Given(body.active), ..MemberChanges::default() };
    // The names of somebody who belongs elsewhere too are not this directory's to say.
    if let Some((first, last)) = body.names().filter(|_| !is_elsewhere && !before.reserved) {
        changes.first_name = Patch::Value(first.parse().map_err(Error::internal)?);
        changes.last_name = Patch::Value(last.parse().map_err(Error::internal)?);
    }
    if before.listed.enabled && body.active == Some(false) {
        end_sign_ins(tx, directory, &before.listed)?;
    }
    update(tx, directory, id, &directory.authority, &changes)?;
    let row = UserRow { external_id: body.external_id(), ..before.row.clone() };
    if row != before.row {
        store::save(tx, app, directory.tenant, id, &row)?;
    }
    if let Some(key) = body.role().filter(|key| *key != before.listed.role) {
        let role = given(tx, directory, Some(key))?;
        settle_role(tx, directory, id, Some(&role))?;
    }
    let after = get(tx, directory, id)?;
    let base = directory.base();
    if after.written(&base).version != before.written(&base).version {
        tell(tx, directory, &after, Change::Updated)?;
    }
    Ok(after)
}

fn rename(tx: &mut Tx<'_>, directory: &Directory, user: &Listed, is_elsewhere: bool, email: &str) -> Result<()> {
    if is_elsewhere {
        let message = "userName cannot be changed: this user belongs to other workspaces too.";
        return Err(Error::new(Code::ReadOnly, message));
    }
    let tenant = tenancy::workspaces::get(tx, directory.app(), directory.tenant)?;
    let (tenancy, app) = (&directory.tenancy, directory.app());
    match provisioning::rename(tx, tenancy, app, &directory.authority, &tenant, user, email)? {
        Renamed::Invited(_) => Ok(()),
        // Password, factors and logins belong to whoever had the former address.
        Renamed::Person(member) => identity::federation::forget_former_address(tx, app, member.user_id),
    }
}

fn update(
    tx: &mut Tx<'_>,
    directory: &Directory,
    id: MemberId,
    authority: &Authority,
    changes: &MemberChanges,
) -> Result<Listed> {
    let (tenancy, app, tenant) = (&directory.tenancy, directory.app(), directory.tenant);
    members::update(tx, tenancy, app, authority, tenant, MemberRef::Member(id), changes)
}

fn end_sign_ins(tx: &mut Tx<'_>, directory: &Directory, user: &Listed) -> Result<()> {
    match user.user_id {
        Some(person) => identity::login::end_membership(tx, directory.app(), person, user.id),
        None => Ok(()),
    }
}

pub(crate) fn remove(tx: &mut Tx<'_>, directory: &Directory, id: MemberId, versions: &Versions) -> Result<()> {
    directory.hold(tx)?;
    let user = get(tx, directory, id)?;
    versions.allow(&user.written(&directory.base()))?;
    end_sign_ins(tx, directory, &user.listed)?;
    let (tenancy, app, tenant) = (&directory.tenancy, directory.app(), directory.tenant);
    members::remove(tx, tenancy, app, tenant, MemberRef::Member(id))?;
    forget(tx, app, tenant, id)?;
    tell(tx, directory, &user, Change::Deleted)
}

fn tell(tx: &mut Tx<'_>, directory: &Directory, user: &ScimUser, change: Change) -> Result<()> {
    let fact = ScimUserChanged {
        tenant_user_id: user.listed.id,
        user_name: user.listed.email.clone(),
        active: user.listed.enabled,
        change,
    };
    emit(tx, (directory.app(), directory.tenant), &fact)
}

/// Gives a user the role that follows from their groups and from the one they have without, which `own` replaces. An OWNER
/// stays what they are whatever their groups say.
fn settle_role(tx: &mut Tx<'_>, directory: &Directory, id: MemberId, own: Option<&Role>) -> Result<()> {
    save_roles(tx, directory, id, own, None)
}

/// The same together with the teams that a change of groups leaves.
pub(crate) fn save_roles(
    tx: &mut Tx<'_>,
    directory: &Directory,
    id: MemberId,
    own: Option<&Role>,
    teams: Option<Vec<kernel::Name>>,
) -> Result<()> {
    let (app, tenant) = (directory.app(), directory.tenant);
    let user = provisioning::get(tx, app, tenant, id)?;
    let row = super::row(tx, app, tenant, id)?;
    let mut changes = MemberChanges { teams: teams.map_or(Patch::Missing, Patch::Value), ..MemberChanges::default() };
    let by_group = match provisioning::is_owner(&user) {
        true => None,
        false => groups::strongest_role(tx, app, tenant, id)?,
    };
    let former = match own {
        Some(own) => own.id,
        None => own_role(&user, &row),
    };
    let (role, authority) = match (&by_group, own) {
        (Some(role), _) => (Some(role.clone()), directory.authority.clone()),
        (None, Some(own)) => (Some(own.clone()), directory.authority.clone()),
        // What they had before is given back, not given; if it is gone by now, they are like somebody new.
        (None, None) if former != user.role_id => {
            let role = match roles::find(tx, app, former)? {
                Some(role) => role,
                None => roles::default_role(tx, app)?,
            };
            (Some(role), Authority::unlimited())
        }
        (None, None) => (None, directory.authority.clone()),
    };
    if let Some(role) = role.filter(|role| role.id != user.role_id) {
        changes.role = Given(Some(role.key.parse().map_err(Error::internal)?));
    }
    update(tx, directory, id, &authority, &changes)?;
    let after = UserRow {
        given_role_id: by_group.as_ref().map(|role| role.id),
        former_role_id: by_group.as_ref().map(|_| former),
        ..row.clone()
    };
    if after == row { Ok(()) } else { store::save(tx, app, tenant, id, &after) }
}
