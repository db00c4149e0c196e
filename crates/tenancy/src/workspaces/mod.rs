//! Workspaces: the customers of an app. `tenant` on the wire.

use ::store::{Db, args};
use kernel::{AppId, Result, TenantId};

/// Whether the workspace exists in this app.
pub async fn exists(db: &Db, app: AppId, tenant: TenantId) -> Result<bool> {
    let found: Option<(i64,)> =
        db.get_one("SELECT CAST(1 AS BIGINT) FROM tenants WHERE app_id = $1 AND id = $2", &args![app, tenant]).await?;
    Ok(found.is_some())
}
