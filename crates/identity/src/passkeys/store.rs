//! The SQL of passkeys.

use ::store::{FromRow, Row, Tx, args};
use kernel::{AppId, Error, Result, UserId};
use webauthn_rs::prelude::Passkey;

use super::to_text;

/// A passkey with the text it was read from.
struct StoredPasskey(String, Passkey);

impl FromRow for StoredPasskey {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let text: String = row.get("credential")?;
        let passkey = serde_json::from_str(&text).map_err(Error::internal)?;
        Ok(Self(text, passkey))
    }
}

pub(super) fn of_user(tx: &mut Tx<'_>, app: AppId, user: UserId, rp_id: &str) -> Result<Vec<Passkey>> {
    let rows: Vec<StoredPasskey> = tx.all(
        "SELECT credential FROM passkeys WHERE app_id = $1 AND user_id = $2 AND rp_id = $3 ORDER BY id LIMIT 100",
        &args![app, user, rp_id],
    )?;
    Ok(rows.into_iter().map(|StoredPasskey(_, passkey)| passkey).collect())
}

pub(super) fn find(
    tx: &mut Tx<'_>,
    app: AppId,
    user: UserId,
    rp_id: &str,
    id: &str,
) -> Result<Option<(String, Passkey)>> {
    let row: Option<StoredPasskey> = tx.opt(
        "SELECT credential FROM passkeys WHERE app_id = $1 AND user_id = $2 AND rp_id = $3 AND id = $4",
        &args![app, user, rp_id, id],
    )?;
    Ok(row.map(|StoredPasskey(text, passkey)| (text, passkey)))
}

/// False when the credential is known already.
pub(super) fn insert(
    tx: &mut Tx<'_>,
    app: AppId,
    user: UserId,
    rp_id: &str,
    id: &str,
    passkey: &Passkey,
    unproven: bool,
) -> Result<bool> {
    let inserted = tx.exec(
        "INSERT INTO passkeys (id, app_id, user_id, rp_id, credential, unproven, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING",
        &args![id, app, user, rp_id, to_text(passkey)?, unproven, tx.now()],
    )?;
    Ok(inserted == 1)
}

/// Notes a use with its counter; whether the passkey is unproven. `None` when another use came in between, whose counter
/// this one has not seen.
pub(super) fn used(tx: &mut Tx<'_>, app: AppId, id: &str, before: &str, passkey: &Passkey) -> Result<Option<bool>> {
    let noted: Option<(bool,)> = tx.opt(
        "UPDATE passkeys SET credential = $4, last_used_at = $5 WHERE app_id = $1 AND id = $2 AND credential = $3 \
         RETURNING unproven",
        &args![app, id, before, to_text(passkey)?, tx.now()],
    )?;
    Ok(noted.map(|(unproven,)| unproven))
}
