//! Roles and privileges of an app: what the tokens' room needs of them.

use ::store::{FromRow, Row, Tx, args};
use kernel::{AppId, Result, id_kinds};
use schemars::JsonSchema;
use serde::Serialize;

use crate::callers::privileges::{BUILT_IN, is_destructive};

id_kinds! {
    /// A role of an app.
    RoleId(Role) = "role";
    /// A privilege of an app.
    PrivilegeId(Privilege) = "privilege";
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PrivilegeRecord {
    pub id: PrivilegeId,
    pub key: String,
    pub description: String,
}

impl FromRow for PrivilegeRecord {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self { id: row.get("id")?, key: row.get("key")?, description: row.get("description")? })
    }
}

/// The built-in privileges and the roles of a new app.
pub fn seed(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    let mut privileges: Vec<(PrivilegeId, &str)> = Vec::new();
    for built_in in BUILT_IN {
        let id: PrivilegeId = tx.new_id();
        tx.exec(
            "INSERT INTO privileges (id, app_id, key, description, created_at) VALUES ($1, $2, $3, $4, $5)",
            &args![id, app, built_in.key, built_in.description, tx.now()],
        )?;
        privileges.push((id, built_in.key));
    }
    for (key, name) in [("OWNER", "Owner"), ("ADMIN", "Admin"), ("MEMBER", "Member")] {
        let role: RoleId = tx.new_id();
        tx.exec(
            "INSERT INTO roles (id, app_id, key, name, description, is_default, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            &args![role, app, key, name, "", key == "MEMBER", tx.now()],
        )?;
        let held = |privilege: &str| match key {
            "OWNER" => !is_destructive(privilege) || privilege == "TENANT_DELETE",
            "ADMIN" => !is_destructive(privilege),
            _ => matches!(privilege, "AUTHENTICATED" | "USER_READ" | "TENANT_READ"),
        };
        for (privilege, _) in privileges.iter().filter(|(_, key)| held(key)) {
            tx.exec(
                "INSERT INTO role_privileges (role_id, privilege_id, app_id) VALUES ($1, $2, $3)",
                &args![role, *privilege, app],
            )?;
        }
    }
    Ok(())
}

/// Every privilege that the app defines.
pub fn defined_privileges(tx: &mut Tx<'_>, app: AppId) -> Result<Vec<PrivilegeRecord>> {
    tx.all("SELECT id, key, description FROM privileges WHERE app_id = $1 ORDER BY id", &args![app])
}
