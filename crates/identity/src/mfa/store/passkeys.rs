//! Passkeys, kept as the library writes them. Each counts as two factors.

use ::store::{Tx, args};
use kernel::{AppId, Error, Result, Timestamp, UserId};
use webauthn_rs::prelude::Passkey;

fn to_text(passkey: &Passkey) -> Result<String> {
    serde_json::to_string(passkey).map_err(Error::internal)
}

fn read(text: &str) -> Result<Passkey> {
    serde_json::from_str(text).map_err(Error::internal)
}

/// Those of one page's host.
pub(crate) fn of_user(tx: &mut Tx<'_>, app: AppId, user: UserId, rp_id: &str) -> Result<Vec<Passkey>> {
    let rows: Vec<(String,)> = tx.all(
        "SELECT credential FROM passkeys WHERE app_id = $1 AND user_id = $2 AND rp_id = $3 ORDER BY id LIMIT 100",
        &args![app, user, rp_id],
    )?;
    rows.iter().map(|(text,)| read(text)).collect()
}

/// Whether the person has one for a page's host.
pub(crate) fn has_any(tx: &mut Tx<'_>, app: AppId, user: UserId, rp_id: &str) -> Result<bool> {
    tx.exists(
        "SELECT 1 FROM passkeys WHERE app_id = $1 AND user_id = $2 AND rp_id = $3 LIMIT 1",
        &args![app, user, rp_id],
    )
}

/// Whether the person has one, whatever page it is for.
pub(crate) fn has_one(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<bool> {
    tx.exists("SELECT 1 FROM passkeys WHERE app_id = $1 AND user_id = $2 LIMIT 1", &args![app, user])
}

/// Whether the person has one that may stand for a second factor.
pub(in crate::mfa) fn has_proven(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<bool> {
    tx.exists(
        "SELECT 1 FROM passkeys WHERE app_id = $1 AND user_id = $2 AND unproven = FALSE LIMIT 1",
        &args![app, user],
    )
}

/// A passkey, and the text it was read from.
pub(crate) fn find(
    tx: &mut Tx<'_>,
    app: AppId,
    user: UserId,
    rp_id: &str,
    id: &str,
) -> Result<Option<(String, Passkey)>> {
    let row: Option<(String,)> = tx.opt(
        "SELECT credential FROM passkeys WHERE app_id = $1 AND user_id = $2 AND rp_id = $3 AND id = $4",
        &args![app, user, rp_id, id],
    )?;
    row.map(|(text,)| read(&text).map(|passkey| (text, passkey))).transpose()
}

/// False when the credential is known already.
pub(crate) fn insert(
    tx: &mut Tx<'_>,
    app: AppId,
    user: UserId,
    rp_id: &str,
    id: &str,
    passkey: &Passkey,
    unproven: bool,
) -> Result<bool> {
    tx.changes_one(
        "INSERT INTO passkeys (id, app_id, user_id, rp_id, credential, unproven, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING",
        &args![id, app, user, rp_id, to_text(passkey)?, unproven, tx.now()],
    )
}

/// Notes a use with its counter; whether the passkey is unproven. `None` when another use came in between, whose counter
/// this one has not seen.
pub(crate) fn used(tx: &mut Tx<'_>, app: AppId, id: &str, before: &str, passkey: &Passkey) -> Result<Option<bool>> {
    let noted: Option<(bool,)> = tx.opt(
        "UPDATE passkeys SET credential = $4, last_used_at = $5 WHERE app_id = $1 AND id = $2 AND credential = $3 \
         RETURNING unproven",
        &args![app, id, before, to_text(passkey)?, tx.now()],
    )?;
    Ok(noted.map(|(unproven,)| unproven))
}

/// Those of a person: id, host, when it was made, when it was last used.
pub(crate) type Listed = (String, String, Timestamp, Option<Timestamp>);

pub(crate) fn list(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<Vec<Listed>> {
    tx.all(
        "SELECT id, rp_id, created_at, last_used_at FROM passkeys WHERE app_id = $1 AND user_id = $2 \
         ORDER BY created_at DESC, id LIMIT 100",
        &args![app, user],
    )
}

/// False when the person has no such passkey.
pub(crate) fn delete(tx: &mut Tx<'_>, app: AppId, user: UserId, id: &str) -> Result<bool> {
    tx.changes_one("DELETE FROM passkeys WHERE app_id = $1 AND user_id = $2 AND id = $3", &args![app, user, id])
}

/// How many there were.
pub(in crate::mfa) fn delete_all(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<u64> {
    tx.exec("DELETE FROM passkeys WHERE app_id = $1 AND user_id = $2", &args![app, user])
}
