//! The SQL of app API keys.

use ::store::{Json, Tx, args, row, sql};
use kernel::{AppId, KeyId, Page, Result};

use super::KeyRecord;

row! { KeyRecord = "app_keys" { id, app: "app_id", name, privileges as Json, unrestricted, created_at } }

pub(super) const FIND: &str = sql!("SELECT ", KeyRecord::COLUMNS, " FROM app_keys WHERE digest = $1");

pub(super) fn insert(tx: &mut Tx<'_>, record: &KeyRecord, digest: &str) -> Result<()> {
    tx.run(
        "INSERT INTO app_keys (id, app_id, name, digest, privileges, unrestricted, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &args![
            record.id,
            record.app,
            record.name,
            digest,
            Json(&record.privileges),
            record.unrestricted,
            record.created_at
        ],
    )
}

pub(super) fn list(tx: &mut Tx<'_>, app: AppId, page: Page) -> Result<Vec<KeyRecord>> {
    tx.all(
        sql!("SELECT ", KeyRecord::COLUMNS, " FROM app_keys WHERE app_id = $1 ORDER BY id DESC LIMIT $2 OFFSET $3"),
        &args![app, page.limit_or_all(), page.offset()],
    )
}

pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, id: KeyId) -> Result<bool> {
    tx.changes_one("DELETE FROM app_keys WHERE app_id = $1 AND id = $2", &args![app, id])
}

pub(super) fn delete_all(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    tx.run("DELETE FROM app_keys WHERE app_id = $1", &args![app])
}
