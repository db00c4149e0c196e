//! The SQL of app API keys.

use ::store::{FromRow, Row, Tx, args};
use kernel::{AppId, Error, KeyId, Result};

use super::KeyRecord;

pub(super) const FIND: &str = "SELECT id, app_id, name, privileges, created_at FROM app_keys WHERE digest = $1";

impl FromRow for KeyRecord {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let privileges: String = row.get("privileges")?;
        Ok(Self {
            id: row.get("id")?,
            app: row.get("app_id")?,
            name: row.get("name")?,
            privileges: serde_json::from_str(&privileges).map_err(Error::internal)?,
            created_at: row.get("created_at")?,
        })
    }
}

pub(super) fn insert(tx: &mut Tx<'_>, record: &KeyRecord, digest: &str) -> Result<()> {
    let privileges = serde_json::to_string(&record.privileges).map_err(Error::internal)?;
    tx.run(
        "INSERT INTO app_keys (id, app_id, name, digest, privileges, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
        &args![record.id, record.app, record.name, digest, privileges, record.created_at],
    )
}

pub(super) fn list(tx: &mut Tx<'_>, app: AppId) -> Result<Vec<KeyRecord>> {
    tx.all(
        "SELECT id, app_id, name, privileges, created_at FROM app_keys WHERE app_id = $1 ORDER BY id DESC",
        &args![app],
    )
}

pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, id: KeyId) -> Result<bool> {
    tx.changes_one("DELETE FROM app_keys WHERE app_id = $1 AND id = $2", &args![app, id])
}

pub(super) fn delete_all(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    tx.run("DELETE FROM app_keys WHERE app_id = $1", &args![app])
}
