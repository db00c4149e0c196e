//! The SQL of API tokens.

use std::sync::Arc;

use ::store::{FromRow, Json, Row, Tx, args, row, sql};
use kernel::{AppId, MemberId, Page, Result, TenantId, Timestamp};

use super::{ApiTokenId, ApiTokenRecord, LiveToken, MadeBy, SecretId, maker::Parent};
use crate::roles::RoleId;

row! {
    ApiTokenRecord = "api_tokens" {
        id,
        app: "app_id",
        name,
        privileges as Json,
        tenant_id,
        expire_at,
        last_used_at,
        made_by of MadeBy,
        created_at,
    }
}

/// All that decides whether a token counts, in one statement: its record, its secret, its app, and which privileges
/// the app still defines.
pub(super) const FIND_LIVE: &str = sql!(
    "SELECT ",
    ApiTokenRecord::COLUMNS,
    ", (SELECT string_agg(privileges.key, ' ') FROM privileges WHERE privileges.app_id = api_tokens.app_id) AS defined \
     FROM api_tokens JOIN app_secrets ON app_secrets.id = api_tokens.secret_id JOIN apps ON apps.id = api_tokens.app_id \
     WHERE api_tokens.id = $1 AND api_tokens.app_id = $2 AND app_secrets.id = $3 AND app_secrets.app_id = $2 \
     AND app_secrets.retired_at IS NULL AND (api_tokens.tenant_id IS NULL \
     OR EXISTS (SELECT 1 FROM tenants WHERE tenants.id = api_tokens.tenant_id))"
);

const LIST: &str =
    sql!("SELECT ", ApiTokenRecord::COLUMNS, " FROM api_tokens WHERE app_id = $1 ORDER BY id DESC LIMIT $2 OFFSET $3");
const LIST_OF_WORKSPACE: &str = sql!(
    "SELECT ",
    ApiTokenRecord::COLUMNS,
    " FROM api_tokens WHERE app_id = $1 AND tenant_id = $2 ORDER BY id DESC LIMIT $3 OFFSET $4"
);
const INSERT: &str = "INSERT INTO api_tokens (id, app_id, tenant_id, secret_id, name, privileges, expire_at, created_at, \
     made_by_key, made_by_token, made_by_member) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
const DELETE: &str = sql!("DELETE FROM api_tokens WHERE app_id = $1 AND id = $2 RETURNING ", ApiTokenRecord::COLUMNS);
const DELETE_IN_WORKSPACE: &str =
    sql!("DELETE FROM api_tokens WHERE app_id = $1 AND tenant_id = $2 AND id = $3 RETURNING ", ApiTokenRecord::COLUMNS);
const DELETE_OF_WORKSPACE: &str = "DELETE FROM api_tokens WHERE app_id = $1 AND tenant_id = $2";
const DELETE_OF_MEMBER: &str =
    sql!("DELETE FROM api_tokens WHERE app_id = $1 AND made_by_member = $2 RETURNING ", ApiTokenRecord::COLUMNS);
const MADE_BY_MEMBER: &str =
    sql!("SELECT ", ApiTokenRecord::COLUMNS, " FROM api_tokens WHERE app_id = $1 AND made_by_member = $2");
const MADE_BY_ROLE: &str = sql!(
    "SELECT ",
    ApiTokenRecord::COLUMNS,
    " FROM api_tokens WHERE app_id = $1 AND made_by_member IS NOT NULL \
     AND (SELECT members.role_id FROM members WHERE members.id = made_by_member) = $2"
);
const DELETE_OF_MEMBERS: &str = sql!(
    "DELETE FROM api_tokens WHERE app_id = $1 AND made_by_member IN (SELECT id FROM members WHERE tenant_id = $2) \
     RETURNING ",
    ApiTokenRecord::COLUMNS
);
const DELETE_MADE_BY: &str =
    sql!("DELETE FROM api_tokens WHERE app_id = $1 AND made_by_token = ANY($2) RETURNING ", ApiTokenRecord::COLUMNS);
const HOLD: &str = sql!("UPDATE api_tokens SET name = name WHERE app_id = $1 AND id = $2 RETURNING ", Parent::COLUMNS);
/// Not when a node has written a use within the last minute; nothing when the token was revoked meanwhile.
const USED: &str =
    "UPDATE api_tokens SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= $3)";
/// The person's id finds the member as well.
const ROLE: &str = "SELECT members.id, roles.key FROM members JOIN roles ON roles.id = members.role_id \
                    WHERE members.app_id = $1 AND members.tenant_id = $2 AND (members.id = $3 OR members.user_id = $3) \
                    AND members.enabled";
const WORKSPACE: &str = "SELECT id FROM tenants WHERE app_id = $1 AND id = $2";

impl FromRow for LiveToken {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let record = ApiTokenRecord::from_row(row)?;
        let defined = row.get::<Option<String>>("defined")?.unwrap_or_default();
        let is_defined = |key: &&String| defined.split(' ').any(|known| known == key.as_str());
        let privileges: Arc<[String]> = record.privileges.iter().filter(is_defined).cloned().collect();
        Ok(Self::new(record, privileges))
    }
}

pub(super) fn insert(tx: &mut Tx<'_>, record: &ApiTokenRecord, secret: SecretId) -> Result<()> {
    let ApiTokenRecord { id, app, tenant_id, name, privileges, expire_at, created_at, made_by, .. } = record;
    let MadeBy { key, token, member } = *made_by;
    tx.run(
        INSERT,
        &args![*id, *app, *tenant_id, secret, name, Json(privileges), *expire_at, *created_at, key, token, member],
    )
}

pub(super) fn list(tx: &mut Tx<'_>, app: AppId, tenant: Option<TenantId>, page: Page) -> Result<Vec<ApiTokenRecord>> {
    let (limit, offset) = (page.limit_or_all(), page.offset());
    match tenant {
        Some(tenant) => tx.all(LIST_OF_WORKSPACE, &args![app, tenant, limit, offset]),
        None => tx.all(LIST, &args![app, limit, offset]),
    }
}

pub(super) fn delete(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: Option<TenantId>,
    id: ApiTokenId,
) -> Result<Option<ApiTokenRecord>> {
    match tenant {
        Some(tenant) => tx.opt(DELETE_IN_WORKSPACE, &args![app, tenant, id]),
        None => tx.opt(DELETE, &args![app, id]),
    }
}

pub(super) fn delete_of_workspace(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<()> {
    tx.run(DELETE_OF_WORKSPACE, &args![app, tenant])
}

pub(super) fn delete_of_member(tx: &mut Tx<'_>, app: AppId, member: MemberId) -> Result<Vec<ApiTokenRecord>> {
    tx.all(DELETE_OF_MEMBER, &args![app, member])
}

pub(super) fn made_by_member(tx: &mut Tx<'_>, app: AppId, member: MemberId) -> Result<Vec<ApiTokenRecord>> {
    tx.all(MADE_BY_MEMBER, &args![app, member])
}

/// Those that members with this role made.
pub(super) fn made_by_role(tx: &mut Tx<'_>, app: AppId, role: RoleId) -> Result<Vec<ApiTokenRecord>> {
    tx.all(MADE_BY_ROLE, &args![app, role])
}

/// Those that members of a workspace made.
pub(super) fn delete_of_members(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<Vec<ApiTokenRecord>> {
    tx.all(DELETE_OF_MEMBERS, &args![app, tenant])
}

pub(super) fn delete_made_by(tx: &mut Tx<'_>, app: AppId, parents: &[ApiTokenId]) -> Result<Vec<ApiTokenRecord>> {
    tx.all(DELETE_MADE_BY, &args![app, parents])
}

/// Keeps a token from being revoked until the transaction ends.
pub(super) fn hold(tx: &mut Tx<'_>, app: AppId, id: ApiTokenId) -> Result<Option<Parent>> {
    tx.opt(HOLD, &args![app, id])
}

/// `unless_since`: a use that was written after this instant stands.
pub(super) fn used(tx: &mut Tx<'_>, id: ApiTokenId, at: Timestamp, unless_since: Timestamp) -> Result<()> {
    tx.run(USED, &args![id, at, unless_since])
}

/// The role of an enabled member of the workspace, by the member's or the person's id.
pub(super) fn role_of(
    tx: &mut Tx<'_>,
    app: AppId,
    tenant: TenantId,
    member: &str,
) -> Result<Option<(MemberId, String)>> {
    tx.opt(ROLE, &args![app, tenant, member])
}

pub(super) fn has_workspace(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<bool> {
    tx.exists(WORKSPACE, &args![app, tenant])
}
