//! The SQL of SCIM tokens.

use ::store::{Json, Tx, args, row, sql};
use kernel::{AppId, Page, Result, TenantId, Timestamp};

use super::{ScimTokenId, ScimTokenOrigin, ScimTokenRecord};

row! { ScimTokenOrigin = "scim_tokens" { key: "made_by_key", token: "made_by_token" } }
row! {
    ScimTokenRecord = "scim_tokens" {
        id,
        app: "app_id",
        name,
        tenant_id,
        expire_at,
        last_used_at,
        origin of ScimTokenOrigin,
        created_at,
        privileges as Json,
    }
}

/// What a token made ends with it.
macro_rules! maker_is_there {
    () => {
        "(scim_tokens.made_by_token IS NULL OR EXISTS (SELECT 1 FROM api_tokens JOIN app_secrets \
         ON app_secrets.id = api_tokens.secret_id WHERE api_tokens.id = scim_tokens.made_by_token \
         AND app_secrets.retired_at IS NULL))"
    };
}

pub(super) const FIND: &str = sql!(
    "SELECT ",
    ScimTokenRecord::COLUMNS,
    " FROM scim_tokens WHERE digest = $1 AND EXISTS (SELECT 1 FROM tenants WHERE tenants.id = scim_tokens.tenant_id \
     AND tenants.app_id = scim_tokens.app_id) AND ",
    maker_is_there!()
);

pub(super) fn insert(tx: &mut Tx<'_>, record: &ScimTokenRecord, digest: &str) -> Result<()> {
    tx.run(
        "INSERT INTO scim_tokens (id, app_id, tenant_id, digest, name, privileges, made_by_key, made_by_token, \
         expire_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        &args![
            record.id,
            record.app,
            record.tenant_id,
            digest,
            record.name,
            Json(&record.privileges),
            record.origin.key,
            record.origin.token,
            record.expire_at,
            record.created_at
        ],
    )
}

pub(super) fn list(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, page: Page) -> Result<Vec<ScimTokenRecord>> {
    tx.all(
        sql!(
            "SELECT ",
            ScimTokenRecord::COLUMNS,
            " FROM scim_tokens WHERE app_id = $1 AND tenant_id = $2 AND ",
            maker_is_there!(),
            " ORDER BY id DESC LIMIT $3 OFFSET $4"
        ),
        &args![app, tenant, page.limit_or_all(), page.offset()],
    )
}

/// The name that it had.
pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, tenant: TenantId, id: ScimTokenId) -> Result<Option<String>> {
    let deleted: Option<(String,)> = tx.opt(
        "DELETE FROM scim_tokens WHERE app_id = $1 AND tenant_id = $2 AND id = $3 RETURNING name",
        &args![app, tenant, id],
    )?;
    Ok(deleted.map(|(name,)| name))
}

pub(super) fn used(tx: &mut Tx<'_>, app: AppId, id: ScimTokenId, not_since: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE scim_tokens SET last_used_at = $3 WHERE app_id = $1 AND id = $2 \
         AND (last_used_at IS NULL OR last_used_at <= $4)",
        &args![app, id, tx.now(), not_since],
    )
}
