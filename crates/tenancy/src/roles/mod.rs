//! Roles and the privileges they grant. An app always has exactly one default role, a role always has a privilege, and
//! the built-in privileges, which operations ask for, always exist.
//!
//! Nothing here is cached: a signed-in user's privileges are read on every call, so that a change counts at once. They
//! stand in `roles.privilege_keys`, which triggers keep equal to what the other two tables say.

pub mod http;
mod rules;
mod store;

use ::store::Tx;
use kernel::{AppId, Code, Error, Page, Problems, Result, id_kinds};
use schemars::JsonSchema;
use serde::Serialize;
use spine::emit;

pub use rules::{NewPrivilege, NewRole, OIDC_SCOPES, PrivilegeChange, RoleChange};

use crate::{
    Authority,
    api_tokens::{self, ApiTokens},
    apps,
    callers::privileges::{BUILT_IN, is_destructive},
    facts::{Change, PrivilegeChanged, RoleChanged},
    locks::Lock,
};

id_kinds! {
    RoleId(RoleKind) = "role";
    PrivilegeId(PrivilegeKind) = "privilege";
}

/// The key of the role that runs a workspace.
pub const OWNER: &str = "OWNER";
pub(crate) const ADMIN: &str = "ADMIN";
const MEMBER: &str = "MEMBER";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Role {
    pub id: RoleId,
    pub name: String,
    /// Unique in the app.
    pub key: String,
    pub description: String,
    pub privileges: Vec<PrivilegeRecord>,
    /// Whether people who join without a role of their own get this one.
    pub is_default: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Privilege")]
pub struct PrivilegeRecord {
    pub id: PrivilegeId,
    /// Unique in the app.
    pub key: String,
    pub description: String,
}

/// Gives a new app the built-in privileges and the roles OWNER, ADMIN and MEMBER.
pub fn seed(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    // Lists show the newest first; made in this order they read from the plainest privilege and the mightiest role on.
    let mut privileges = Vec::new();
    for built_in in BUILT_IN.iter().rev() {
        let record = PrivilegeRecord {
            id: tx.new_id(),
            key: built_in.key.to_owned(),
            description: built_in.description.to_owned(),
        };
        store::insert_privilege(tx, app, &record)?;
        privileges.push(record);
    }
    for first in FIRST_ROLES {
        let granted = privileges.iter().filter(|privilege| (first.grants)(&privilege.key)).cloned().collect();
        let role = Role {
            id: tx.new_id(),
            name: first.name.to_owned(),
            key: first.key.to_owned(),
            description: first.description.to_owned(),
            privileges: granted,
            is_default: first.key == MEMBER,
        };
        store::insert(tx, app, &role)?;
    }
    Ok(())
}

struct FirstRole {
    key: &'static str,
    name: &'static str,
    description: &'static str,
    grants: fn(&str) -> bool,
}

const FIRST_ROLES: [FirstRole; 3] = [
    FirstRole {
        key: MEMBER,
        name: "Member",
        description: "Works in the workspace",
        grants: |key| matches!(key, "AUTHENTICATED" | "USER_READ" | "TENANT_READ"),
    },
    FirstRole {
        key: ADMIN,
        name: "Admin",
        description: "Manages the workspace and its members",
        grants: |key| !is_destructive(key),
    },
    FirstRole {
        key: OWNER,
        name: "Owner",
        description: "Runs the workspace and may delete it",
        grants: |key| !is_destructive(key) || key == "TENANT_DELETE",
    },
];

/// Newest first.
pub fn list(tx: &mut Tx<'_>, app: AppId, page: Page) -> Result<Vec<Role>> {
    store::list(tx, app, page)
}

pub fn find(tx: &mut Tx<'_>, app: AppId, id: RoleId) -> Result<Option<Role>> {
    store::find(tx, app, id)
}

pub fn find_by_key(tx: &mut Tx<'_>, app: AppId, key: &str) -> Result<Option<Role>> {
    store::find_by_key(tx, app, key)
}

pub fn get(tx: &mut Tx<'_>, app: AppId, id: RoleId) -> Result<Role> {
    find(tx, app, id)?.ok_or_else(|| Error::not_found("role"))
}

/// The role of people who join without one of their own.
pub fn default_role(tx: &mut Tx<'_>, app: AppId) -> Result<Role> {
    store::find_default(tx, app)?.ok_or_else(|| Error::internal(format!("{app} has no default role")))
}

/// The role for a member who is about to get it, kept from being deleted until this transaction ends. Without a key,
/// the default role; an unknown key is an invalid `role`.
pub fn assign(tx: &mut Tx<'_>, app: AppId, key: Option<&str>) -> Result<Role> {
    let find = |tx: &mut Tx<'_>| match key {
        Some(key) => {
            find_by_key(tx, app, key)?.ok_or_else(|| Error::invalid("role", "is not the key of a role of this app"))
        }
        None => default_role(tx, app),
    };
    let role = find(tx)?;
    tx.lock(&Lock::MembersOfRole(role.id.to_string()))?;
    // Looked at again, since it may have gone while this waited for the lock.
    find(tx)
}

pub fn create(tx: &mut Tx<'_>, app: AppId, authority: &Authority, new: &NewRole) -> Result<Role> {
    apps::hold(tx, app)?;
    let privileges = known_privileges(tx, app, &new.privileges)?;
    let role = Role {
        id: tx.new_id(),
        name: new.name.to_string(),
        key: new.key.to_string(),
        description: new.description.clone().unwrap_or_default().into(),
        privileges,
        is_default: new.is_default.unwrap_or(false),
    };
    authority.may_define(None, &role)?;
    if role.is_default {
        store::clear_default(tx, app)?;
    }
    if !store::insert(tx, app, &role)? {
        return Err(key_taken(&role.key));
    }
    role_changed(tx, app, &role, Change::Created)?;
    Ok(role)
}

pub fn update(
    tx: &mut Tx<'_>,
    tokens: &ApiTokens,
    app: AppId,
    authority: &Authority,
    id: RoleId,
    change: &RoleChange,
) -> Result<Role> {
    apps::hold(tx, app)?;
    let role = get(tx, app, id)?;
    rules::check_change(&role, change)?;
    let mut changed = change.applied_to(role.clone());
    if changed.key != role.key && find_by_key(tx, app, &changed.key)?.is_some() {
        return Err(key_taken(&changed.key));
    }
    if let Some(ids) = change.privileges.value() {
        changed.privileges = known_privileges(tx, app, ids)?;
    }
    authority.may_define(Some(&role), &changed)?;
    if changed.privileges != role.privileges {
        store::replace_privileges(tx, app, &changed)?;
        api_tokens::revoke_beyond_changed_role(tx, tokens, app, (&role, &changed))?;
    }
    if changed.is_default && !role.is_default {
        store::clear_default(tx, app)?;
    }
    store::update(tx, app, &changed)?;
    let former_key = (changed.key != role.key).then_some(role.key);
    let key = changed.key.clone();
    emit(tx, app, &RoleChanged { role_id: id, key, former_key, change: Change::Updated })?;
    Ok(changed)
}

pub fn delete(tx: &mut Tx<'_>, app: AppId, id: RoleId) -> Result<()> {
    apps::hold(tx, app)?;
    tx.lock(&Lock::MembersOfRole(id.to_string()))?;
    let role = get(tx, app, id)?;
    let held = store::is_held(tx, app, id)?;
    rules::check_deletion(&role, held)?;
    store::delete(tx, app, id)?;
    role_changed(tx, app, &role, Change::Deleted)
}

/// Every privilege that the app defines, newest first.
pub fn defined_privileges(tx: &mut Tx<'_>, app: AppId) -> Result<Vec<PrivilegeRecord>> {
    list_privileges(tx, app, Page::ALL)
}

pub fn list_privileges(tx: &mut Tx<'_>, app: AppId, page: Page) -> Result<Vec<PrivilegeRecord>> {
    store::list_privileges(tx, app, page)
}

pub fn get_privilege(tx: &mut Tx<'_>, app: AppId, id: PrivilegeId) -> Result<PrivilegeRecord> {
    store::find_privilege(tx, app, id)?.ok_or_else(|| Error::not_found("privilege"))
}

pub fn create_privilege(tx: &mut Tx<'_>, app: AppId, new: &NewPrivilege) -> Result<PrivilegeRecord> {
    apps::hold(tx, app)?;
    let record = PrivilegeRecord {
        id: tx.new_id(),
        key: new.key.to_string(),
        description: new.description.clone().unwrap_or_default().into(),
    };
    if !store::insert_privilege(tx, app, &record)? {
        return Err(privilege_key_taken(&record.key));
    }
    privilege_changed(tx, app, &record, Change::Created)?;
    Ok(record)
}

/// The roles that have the privilege have it under its new key, which is why a caller has to hold that one.
pub fn update_privilege(
    tx: &mut Tx<'_>,
    app: AppId,
    authority: &Authority,
    id: PrivilegeId,
    change: &PrivilegeChange,
) -> Result<PrivilegeRecord> {
    apps::hold(tx, app)?;
    let record = get_privilege(tx, app, id)?;
    rules::check_privilege_change(&record, change)?;
    let changed = change.applied_to(record.clone());
    if changed.key != record.key && store::privilege_key_exists(tx, app, &changed.key)? {
        return Err(privilege_key_taken(&changed.key));
    }
    if changed.key != record.key {
        authority.may_grant([changed.key.as_str()])?;
    }
    store::update_privilege(tx, app, &changed)?;
    privilege_changed(tx, app, &changed, Change::Updated)?;
    Ok(changed)
}

/// The privilege leaves every role, none of which may be left without any.
pub fn delete_privilege(tx: &mut Tx<'_>, app: AppId, id: PrivilegeId) -> Result<()> {
    apps::hold(tx, app)?;
    let record = get_privilege(tx, app, id)?;
    let only_in = store::roles_with_only(tx, app, id)?;
    rules::check_privilege_deletion(&record, &only_in)?;
    store::delete_privilege(tx, app, id)?;
    privilege_changed(tx, app, &record, Change::Deleted)
}

/// Each id once; ids that the app does not define are named by their place in the request.
fn known_privileges(tx: &mut Tx<'_>, app: AppId, ids: &[PrivilegeId]) -> Result<Vec<PrivilegeRecord>> {
    let known = store::find_privileges(tx, app, ids)?;
    let mut problems = Problems::new();
    for (index, id) in ids.iter().enumerate() {
        if !known.iter().any(|privilege| privilege.id == *id) {
            problems.add(format!("privileges[{index}]"), "is not the id of a privilege of this app");
        }
    }
    problems.finish()?;
    Ok(known)
}

fn role_changed(tx: &mut Tx<'_>, app: AppId, role: &Role, change: Change) -> Result<()> {
    emit(tx, app, &RoleChanged { role_id: role.id, key: role.key.clone(), former_key: None, change })
}

fn privilege_changed(tx: &mut Tx<'_>, app: AppId, record: &PrivilegeRecord, change: Change) -> Result<()> {
    emit(tx, app, &PrivilegeChanged { privilege_id: record.id, key: record.key.clone(), change })
}

fn key_taken(key: &str) -> Error {
    Error::new(Code::RoleKeyTaken, format!("Another role already has the key {key}."))
}

fn privilege_key_taken(key: &str) -> Error {
    Error::new(Code::PrivilegeKeyTaken, format!("Another privilege already has the key {key}."))
}
