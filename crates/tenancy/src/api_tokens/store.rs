//! The SQL of API tokens.

use ::store::{FromRow, Row};
use kernel::{Error, Result};

use super::ApiTokenRecord;

pub(super) const FIND: &str =
    "SELECT id, app_id, tenant_id, name, privileges, expire_at, last_used_at, created_at FROM api_tokens WHERE id = $1";

impl FromRow for ApiTokenRecord {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let privileges: String = row.get("privileges")?;
        Ok(Self {
            id: row.get("id")?,
            app: row.get("app_id")?,
            name: row.get("name")?,
            privileges: serde_json::from_str(&privileges).map_err(Error::internal)?,
            tenant_id: row.get("tenant_id")?,
            expire_at: row.get("expire_at")?,
            last_used_at: row.get("last_used_at")?,
            created_at: row.get("created_at")?,
        })
    }
}
