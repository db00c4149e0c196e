//! The SQL of roles and privileges.
//!
//! While a role is there, SQLite writes its list of keys anew for each grant that comes or goes. So a role comes after what it
//! grants and goes before it, and is told when a change of many begins and ends.

use std::collections::HashMap;

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Page, Result};

use super::{PrivilegeId, PrivilegeRecord, Role, RoleId};

row! {
    Role = "roles" { id, name, key, description, is_default }
    // Read by a statement of their own.
    privileges: Vec::new(),
}

row! { PrivilegeRecord = "privileges" { id, key, description } }

/// A privilege and a role that has it.
struct Granted {
    role: RoleId,
    privilege: PrivilegeRecord,
}

row! { Granted = "role_privileges" { role: "role_id", privilege of PrivilegeRecord } }

pub(super) fn list(tx: &mut Tx<'_>, app: AppId, page: Page) -> Result<Vec<Role>> {
    let roles = tx.all(
        sql!("SELECT ", Role::COLUMNS, " FROM roles WHERE app_id = $1 ORDER BY id DESC LIMIT $2 OFFSET $3"),
        &args![app, page.limit_or_all(), page.offset()],
    )?;
    with_privileges(tx, app, roles)
}

pub(super) fn find(tx: &mut Tx<'_>, app: AppId, id: RoleId) -> Result<Option<Role>> {
    let role = tx.opt(sql!("SELECT ", Role::COLUMNS, " FROM roles WHERE app_id = $1 AND id = $2"), &args![app, id])?;
    one_with_privileges(tx, app, role)
}

pub(super) fn find_by_key(tx: &mut Tx<'_>, app: AppId, key: &str) -> Result<Option<Role>> {
    let role =
        tx.opt(sql!("SELECT ", Role::COLUMNS, " FROM roles WHERE app_id = $1 AND key = $2"), &args![app, key])?;
    one_with_privileges(tx, app, role)
}

pub(super) fn find_default(tx: &mut Tx<'_>, app: AppId) -> Result<Option<Role>> {
    let role =
        tx.opt(sql!("SELECT ", Role::COLUMNS, " FROM roles WHERE app_id = $1 AND is_default = TRUE"), &args![app])?;
    one_with_privileges(tx, app, role)
}

fn one_with_privileges(tx: &mut Tx<'_>, app: AppId, role: Option<Role>) -> Result<Option<Role>> {
    Ok(with_privileges(tx, app, role.into_iter().collect())?.pop())
}

fn with_privileges(tx: &mut Tx<'_>, app: AppId, mut roles: Vec<Role>) -> Result<Vec<Role>> {
    if roles.is_empty() {
        return Ok(roles);
    }
    let ids: Vec<RoleId> = roles.iter().map(|role| role.id).collect();
    let granted: Vec<Granted> = tx.all(
        sql!(
            "SELECT ",
            Granted::COLUMNS,
            " FROM role_privileges JOIN privileges ON privileges.id = role_privileges.privilege_id \
             WHERE role_privileges.app_id = $1 AND role_privileges.role_id = ANY($2) ORDER BY privileges.id DESC"
        ),
        &args![app, ids],
    )?;
    let mut by_role: HashMap<RoleId, Vec<PrivilegeRecord>> = HashMap::new();
    for Granted { role, privilege } in granted {
        by_role.entry(role).or_default().push(privilege);
    }
    for role in &mut roles {
        role.privileges = by_role.remove(&role.id).unwrap_or_default();
    }
    Ok(roles)
}

/// False when the key is taken. Then the transaction must be given up.
pub(super) fn insert(tx: &mut Tx<'_>, app: AppId, role: &Role) -> Result<bool> {
    grant(tx, app, role)?;
    tx.changes_one(
        "INSERT INTO roles (id, app_id, key, name, description, is_default, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (app_id, key) DO NOTHING",
        &args![role.id, app, role.key, role.name, role.description, role.is_default, tx.now()],
    )
}

pub(super) fn update(tx: &mut Tx<'_>, app: AppId, role: &Role) -> Result<()> {
    tx.run(
        "UPDATE roles SET key = $3, name = $4, description = $5, is_default = $6 WHERE app_id = $1 AND id = $2",
        &args![app, role.id, role.key, role.name, role.description, role.is_default],
    )
}

/// Before another role becomes the default one.
pub(super) fn clear_default(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    tx.run("UPDATE roles SET is_default = FALSE WHERE app_id = $1 AND is_default = TRUE", &args![app])
}

pub(super) fn replace_privileges(tx: &mut Tx<'_>, app: AppId, role: &Role) -> Result<()> {
    // The list stays as it is until something else is written into it, and then it is what was granted.
    const CHANGING: &str = " ";
    const CHANGED: &str = "";
    const LIST: &str = "UPDATE roles SET privilege_keys = $3 WHERE app_id = $1 AND id = $2";
    tx.run(LIST, &args![app, role.id, CHANGING])?;
    tx.run("DELETE FROM role_privileges WHERE app_id = $1 AND role_id = $2", &args![app, role.id])?;
    grant(tx, app, role)?;
    tx.run(LIST, &args![app, role.id, CHANGED])
}

fn grant(tx: &mut Tx<'_>, app: AppId, role: &Role) -> Result<()> {
    let rows: Vec<_> = role.privileges.iter().map(|privilege| (role.id, privilege.id, app)).collect();
    tx.insert_all(
        "INSERT INTO role_privileges (role_id, privilege_id, app_id) SELECT role_id, privilege_id, app_id FROM {rows} \
         WHERE true",
        ["role_id", "privilege_id", "app_id"],
        &rows,
    )
}

/// Whether a member has the role, or somebody is invited to it.
pub(super) fn is_held(tx: &mut Tx<'_>, app: AppId, role: RoleId) -> Result<bool> {
    tx.exists(
        "SELECT id FROM members WHERE app_id = $1 AND role_id = $2 \
         UNION ALL SELECT id FROM invitations WHERE app_id = $1 AND role_id = $2 LIMIT 1",
        &args![app, role],
    )
}

pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, role: RoleId) -> Result<()> {
    tx.run("DELETE FROM roles WHERE app_id = $1 AND id = $2", &args![app, role])?;
    tx.run("DELETE FROM role_privileges WHERE app_id = $1 AND role_id = $2", &args![app, role])
}

pub(super) fn list_privileges(tx: &mut Tx<'_>, app: AppId, page: Page) -> Result<Vec<PrivilegeRecord>> {
    tx.all(
        sql!(
            "SELECT ",
            PrivilegeRecord::COLUMNS,
            " FROM privileges WHERE app_id = $1 ORDER BY id DESC LIMIT $2 OFFSET $3"
        ),
        &args![app, page.limit_or_all(), page.offset()],
    )
}

pub(super) fn find_privileges(tx: &mut Tx<'_>, app: AppId, ids: &[PrivilegeId]) -> Result<Vec<PrivilegeRecord>> {
    tx.all(
        sql!(
            "SELECT ",
            PrivilegeRecord::COLUMNS,
            " FROM privileges WHERE app_id = $1 AND id = ANY($2) ORDER BY id DESC"
        ),
        &args![app, ids],
    )
}

pub(super) fn find_privilege(tx: &mut Tx<'_>, app: AppId, id: PrivilegeId) -> Result<Option<PrivilegeRecord>> {
    tx.opt(sql!("SELECT ", PrivilegeRecord::COLUMNS, " FROM privileges WHERE app_id = $1 AND id = $2"), &args![app, id])
}

pub(super) fn privilege_key_exists(tx: &mut Tx<'_>, app: AppId, key: &str) -> Result<bool> {
    tx.exists("SELECT id FROM privileges WHERE app_id = $1 AND key = $2", &args![app, key])
}

/// False when the key is taken.
pub(super) fn insert_privilege(tx: &mut Tx<'_>, app: AppId, record: &PrivilegeRecord) -> Result<bool> {
    tx.changes_one(
        "INSERT INTO privileges (id, app_id, key, description, created_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (app_id, key) DO NOTHING",
        &args![record.id, app, record.key, record.description, tx.now()],
    )
}

pub(super) fn update_privilege(tx: &mut Tx<'_>, app: AppId, record: &PrivilegeRecord) -> Result<()> {
    tx.run(
        "UPDATE privileges SET key = $3, description = $4 WHERE app_id = $1 AND id = $2",
        &args![app, record.id, record.key, record.description],
    )
}

/// The keys of the roles that have this privilege and no other.
pub(super) fn roles_with_only(tx: &mut Tx<'_>, app: AppId, privilege: PrivilegeId) -> Result<Vec<String>> {
    let keys: Vec<(String,)> = tx.all(
        "SELECT roles.key FROM roles JOIN role_privileges ON role_privileges.role_id = roles.id \
         WHERE roles.app_id = $1 AND role_privileges.privilege_id = $2 \
         AND (SELECT count(*) FROM role_privileges AS held WHERE held.role_id = roles.id) = 1 ORDER BY roles.key",
        &args![app, privilege],
    )?;
    Ok(keys.into_iter().map(|(key,)| key).collect())
}

pub(super) fn delete_privilege(tx: &mut Tx<'_>, app: AppId, privilege: PrivilegeId) -> Result<()> {
    tx.run("DELETE FROM role_privileges WHERE app_id = $1 AND privilege_id = $2", &args![app, privilege])?;
    tx.run("DELETE FROM privileges WHERE app_id = $1 AND id = $2", &args![app, privilege])
}
