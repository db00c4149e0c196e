//! The SQL of what a directory says of users.

use ::store::{Tx, args, row, sql};
use kernel::{AppId, MemberId, Result, TenantId};
use tenancy::roles::RoleId;

/// What is kept of a user beside the membership.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserRow {
    pub(crate) external_id: Option<String>,
    /// The role that groups give, and the one that the user has without.
    pub(crate) given_role_id: Option<RoleId>,
    pub(crate) former_role_id: Option<RoleId>,
}

row! { UserRow = "scim_users" { external_id, given_role_id, former_role_id } }

struct Keyed {
    id: MemberId,
    row: UserRow,
}

row! { Keyed = "scim_users" { id, row of UserRow } }

pub(super) fn find_all(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    ids: &[MemberId],
) -> Result<Vec<(MemberId, UserRow)>> {
    let rows: Vec<Keyed> = tx.all(
        sql!("SELECT ", Keyed::COLUMNS, " FROM scim_users WHERE app_id = $1 AND tenant_id = $2 AND id = ANY($3)"),
        &args![app, tenant, ids],
    )?;
    Ok(rows.into_iter().map(|Keyed { id, row }| (id, row)).collect())
}

pub(super) fn by_external_id(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, external: &str) -> Result<Vec<MemberId>> {
    let rows: Vec<(MemberId,)> = tx.all(
        "SELECT id FROM scim_users WHERE app_id = $1 AND tenant_id = $2 AND external_id = $3",
        &args![app, tenant, external],
    )?;
    Ok(rows.into_iter().map(|(id,)| id).collect())
}

pub(super) fn save(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, id: MemberId, row: &UserRow) -> Result<()> {
    tx.run(
        "INSERT INTO scim_users (id, app_id, tenant_id, external_id, given_role_id, former_role_id) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO UPDATE SET external_id = excluded.external_id, \
         given_role_id = excluded.given_role_id, former_role_id = excluded.former_role_id",
        &args![id, app, tenant, row.external_id, row.given_role_id, row.former_role_id],
    )
}

pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, id: MemberId) -> Result<()> {
    tx.run("DELETE FROM scim_users WHERE app_id = $1 AND tenant_id = $2 AND id = $3", &args![app, tenant, id])
}
