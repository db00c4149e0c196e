//! The SQL of groups.

use std::collections::HashMap;

use ::store::{Tx, args, row, sql};
use kernel::{AppId, MemberId, Result, TenantId};
use tenancy::roles::RoleId;

use super::{Group, ScimGroupId};

row! { Group = "scim_groups" { id, display_name, external_id, role_id, version, created_at } }

pub(super) fn find(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, id: ScimGroupId) -> Result<Option<Group>> {
    tx.opt(
        sql!("SELECT ", Group::COLUMNS, " FROM scim_groups WHERE app_id = $1 AND tenant_id = $2 AND id = $3"),
        &args![app, tenant, id],
    )
}

pub(super) fn list(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Vec<Group>> {
    tx.all(
        sql!("SELECT ", Group::COLUMNS, " FROM scim_groups WHERE app_id = $1 AND tenant_id = $2 ORDER BY id"),
        &args![app, tenant],
    )
}

pub(super) fn count(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<i64> {
    let (count,): (i64,) =
        tx.one("SELECT count(*) FROM scim_groups WHERE app_id = $1 AND tenant_id = $2", &args![app, tenant])?;
    Ok(count)
}

/// Whether another group has this name.
pub(super) fn is_named(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    key: &str,
    except: Option<ScimGroupId>,
) -> Result<bool> {
    let found: Option<(ScimGroupId,)> = tx.opt(
        "SELECT id FROM scim_groups WHERE app_id = $1 AND tenant_id = $2 AND name_key = $3",
        &args![app, tenant, key],
    )?;
    Ok(found.is_some_and(|(id,)| Some(id) != except))
}

pub(super) fn insert(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, group: &Group, key: &str) -> Result<()> {
    tx.run(
        "INSERT INTO scim_groups (id, app_id, tenant_id, display_name, name_key, external_id, role_id, version, \
         created_at) VALUES ($1, $2, $3, $4, $5, $6, NULL, $7, $8)",
        &args![group.id, app, tenant, group.display_name, key, group.external_id, group.version, group.created_at],
    )
}

pub(super) fn update(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, group: &Group, key: &str) -> Result<()> {
    tx.run(
        "UPDATE scim_groups SET display_name = $4, name_key = $5, external_id = $6, role_id = $7, version = $8 \
         WHERE app_id = $1 AND tenant_id = $2 AND id = $3",
        &args![app, tenant, group.id, group.display_name, key, group.external_id, group.role_id, group.version],
    )
}

pub(super) fn bump(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, id: ScimGroupId) -> Result<()> {
    tx.run(
        "UPDATE scim_groups SET version = version + 1 WHERE app_id = $1 AND tenant_id = $2 AND id = $3",
        &args![app, tenant, id],
    )
}

pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, id: ScimGroupId) -> Result<()> {
    tx.run("DELETE FROM scim_groups WHERE app_id = $1 AND tenant_id = $2 AND id = $3", &args![app, tenant, id])
}

pub(super) fn member_ids(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, group: ScimGroupId) -> Result<Vec<MemberId>> {
    let rows: Vec<(MemberId,)> = tx.all(
        "SELECT member_id FROM scim_group_members WHERE app_id = $1 AND tenant_id = $2 AND group_id = $3 \
         ORDER BY member_id",
        &args![app, tenant, group],
    )?;
    Ok(rows.into_iter().map(|(id,)| id).collect())
}

/// The ids after this one, at most `limit`.
pub(super) fn member_ids_after(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    group: ScimGroupId,
    after: Option<MemberId>,
    limit: i64,
) -> Result<Vec<MemberId>> {
    let after = after.map_or_else(String::new, |id| id.to_string());
    let rows: Vec<(MemberId,)> = tx.all(
        "SELECT member_id FROM scim_group_members WHERE app_id = $1 AND tenant_id = $2 AND group_id = $3 \
         AND member_id > $4 ORDER BY member_id LIMIT $5",
        &args![app, tenant, group, after, limit],
    )?;
    Ok(rows.into_iter().map(|(id,)| id).collect())
}

pub(super) fn add_member(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    group: ScimGroupId,
    member: MemberId,
) -> Result<()> {
    tx.run(
        "INSERT INTO scim_group_members (group_id, member_id, app_id, tenant_id) VALUES ($1, $2, $3, $4)",
        &args![group, member, app, tenant],
    )
}

pub(super) fn remove_member(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    group: ScimGroupId,
    member: MemberId,
) -> Result<()> {
    tx.run(
        "DELETE FROM scim_group_members WHERE app_id = $1 AND tenant_id = $2 AND group_id = $3 AND member_id = $4",
        &args![app, tenant, group, member],
    )
}

/// The groups of each of these users, by name.
pub(crate) fn of_users(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    members: &[MemberId],
) -> Result<HashMap<MemberId, Vec<(ScimGroupId, String)>>> {
    let rows: Vec<(MemberId, ScimGroupId, String)> = tx.all(
        "SELECT scim_group_members.member_id, scim_groups.id, scim_groups.display_name FROM scim_group_members \
         JOIN scim_groups ON scim_groups.id = scim_group_members.group_id WHERE scim_group_members.app_id = $1 \
         AND scim_group_members.tenant_id = $2 AND scim_group_members.member_id = ANY($3) \
         ORDER BY scim_groups.name_key",
        &args![app, tenant, members],
    )?;
    let mut groups: HashMap<MemberId, Vec<(ScimGroupId, String)>> = HashMap::new();
    for (member, group, name) in rows {
        groups.entry(member).or_default().push((group, name));
    }
    Ok(groups)
}

pub(super) fn roles_of(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, member: MemberId) -> Result<Vec<RoleId>> {
    let rows: Vec<(RoleId,)> = tx.all(
        "SELECT DISTINCT scim_groups.role_id FROM scim_group_members JOIN scim_groups \
         ON scim_groups.id = scim_group_members.group_id WHERE scim_group_members.app_id = $1 \
         AND scim_group_members.tenant_id = $2 AND scim_group_members.member_id = $3 AND scim_groups.role_id IS NOT NULL",
        &args![app, tenant, member],
    )?;
    Ok(rows.into_iter().map(|(id,)| id).collect())
}
