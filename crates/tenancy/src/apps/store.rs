//! The SQL of apps.

use ::store::{FromRow, Row, Tx, args};
use kernel::{AppId, Error, Page, Result, TenantId};

use super::App;

impl FromRow for App {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let profile: String = row.get("profile")?;
        Ok(Self {
            id: row.get("id")?,
            profile: serde_json::from_str(&profile).map_err(Error::internal)?,
            created_at: row.get("created_at")?,
            version: row.get("version")?,
        })
    }
}

pub(super) const VERSION: &str = "SELECT version FROM apps WHERE id = $1";

/// False when the domain is taken.
pub(super) fn insert(tx: &mut Tx<'_>, app: &App) -> Result<bool> {
    let profile = serde_json::to_string(&app.profile).map_err(Error::internal)?;
    tx.changes_one(
        "INSERT INTO apps (id, domain, profile, version, created_at) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (domain) DO NOTHING",
        &args![app.id, app.profile.domain, profile, app.version, app.created_at],
    )
}

pub(super) fn update(tx: &mut Tx<'_>, app: &App) -> Result<()> {
    let profile = serde_json::to_string(&app.profile).map_err(Error::internal)?;
    tx.run("UPDATE apps SET profile = $2, version = $3 WHERE id = $1", &args![app.id, profile, app.version])
}

pub(super) fn find(tx: &mut Tx<'_>, id: AppId) -> Result<Option<App>> {
    tx.opt("SELECT id, profile, version, created_at FROM apps WHERE id = $1", &args![id])
}

pub(super) fn list(tx: &mut Tx<'_>, page: Page) -> Result<Vec<App>> {
    tx.all(
        "SELECT id, profile, version, created_at FROM apps ORDER BY id DESC LIMIT $1 OFFSET $2",
        &args![page.limit_or_all(), page.offset()],
    )
}

pub(super) fn delete(tx: &mut Tx<'_>, id: AppId) -> Result<()> {
    tx.run("DELETE FROM apps WHERE id = $1", &args![id])
}

pub(super) fn has_workspace(tx: &mut Tx<'_>, app: AppId, tenant: TenantId) -> Result<bool> {
    tx.exists("SELECT id FROM tenants WHERE app_id = $1 AND id = $2", &args![app, tenant])
}
