//! Roles of an app and what each may do.

use ::store::{FromRow, Row, Tx, args};
use kernel::{AppId, Result, id_kinds};

use crate::callers::privileges::{BUILT_IN, is_destructive};

id_kinds! {
    RoleId(RoleKind) = "role";
    PrivilegeId(PrivilegeKind) = "privilege";
}

pub const OWNER: &str = "OWNER";

#[derive(Clone, Debug)]
pub struct Role {
    pub id: RoleId,
    pub name: String,
    pub key: String,
    pub is_default: bool,
}

impl FromRow for Role {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            name: row.get("name")?,
            key: row.get("key")?,
            is_default: row.get("is_default")?,
        })
    }
}

pub fn seed(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    let mut privileges = Vec::new();
    for known in BUILT_IN {
        let id: PrivilegeId = tx.new_id();
        tx.exec(
            "INSERT INTO privileges (id, app_id, key, description, created_at) VALUES ($1, $2, $3, $4, $5)",
            &args![id, app, known.key, known.description, tx.now()],
        )?;
        privileges.push((known.key, id));
    }
    for (key, name) in [("OWNER", "Owner"), ("ADMIN", "Admin"), ("MEMBER", "Member")] {
        let id: RoleId = tx.new_id();
        tx.exec(
            "INSERT INTO roles (id, app_id, key, name, description, is_default, created_at) \
             VALUES ($1, $2, $3, $4, '', $5, $6)",
            &args![id, app, key, name, key == "MEMBER", tx.now()],
        )?;
        for (privilege, privilege_id) in &privileges {
            let granted = match key {
                "OWNER" => !is_destructive(privilege) || *privilege == "TENANT_DELETE",
                "ADMIN" => !is_destructive(privilege),
                _ => matches!(*privilege, "AUTHENTICATED" | "USER_READ" | "TENANT_READ"),
            };
            if granted {
                tx.exec(
                    "INSERT INTO role_privileges (role_id, privilege_id, app_id) VALUES ($1, $2, $3)",
                    &args![id, privilege_id, app],
                )?;
            }
        }
    }
    Ok(())
}

pub fn find_by_key(tx: &mut Tx<'_>, app: AppId, key: &str) -> Result<Option<Role>> {
    tx.opt("SELECT id, name, key, is_default FROM roles WHERE app_id = $1 AND key = $2", &args![app, key])
}

pub fn default_role(tx: &mut Tx<'_>, app: AppId) -> Result<Role> {
    tx.one("SELECT id, name, key, is_default FROM roles WHERE app_id = $1 AND is_default", &args![app])
}
