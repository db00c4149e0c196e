//! The SQL of credentials: one row per app and name.

use ::store::{Json, Tx, args};
use kernel::{AppId, Result};

use super::Credential;
use crate::apps::Profile;

pub(super) fn names(tx: &mut Tx<'_>, app: AppId) -> Result<Vec<String>> {
    let names: Vec<(String,)> = tx.all("SELECT name FROM app_credentials WHERE app_id = $1", &args![app])?;
    Ok(names.into_iter().map(|(name,)| name).collect())
}

pub(super) fn find(tx: &mut Tx<'_>, app: AppId, name: Credential) -> Result<Option<String>> {
    let found: Option<(String,)> =
        tx.opt("SELECT sealed FROM app_credentials WHERE app_id = $1 AND name = $2", &args![app, name])?;
    Ok(found.map(|(sealed,)| sealed))
}

/// The app's settings, if it has this credential.
pub(super) fn profile_with(tx: &mut Tx<'_>, app: AppId, name: Credential) -> Result<Option<Profile>> {
    let found: Option<(Json<Profile>,)> = tx.opt(
        "SELECT apps.profile FROM apps JOIN app_credentials ON app_credentials.app_id = apps.id \
         WHERE apps.id = $1 AND app_credentials.name = $2",
        &args![app, name],
    )?;
    Ok(found.map(|(Json(profile),)| profile))
}

pub(super) fn put(tx: &mut Tx<'_>, app: AppId, name: Credential, sealed: &str) -> Result<()> {
    tx.run(
        "INSERT INTO app_credentials (app_id, name, sealed, updated_at) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (app_id, name) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at",
        &args![app, name, sealed, tx.now()],
    )
}

pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, name: Credential) -> Result<()> {
    tx.run("DELETE FROM app_credentials WHERE app_id = $1 AND name = $2", &args![app, name])
}

/// At most a handful of rows.
pub(super) fn purge(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    tx.run("DELETE FROM app_credentials WHERE app_id = $1", &args![app])
}
