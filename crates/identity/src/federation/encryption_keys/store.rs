//! The SQL of the keys that assertions are encrypted for.

use ::store::{Tx, WholeDatabase, args, row, sql};
use kernel::{Result, Timestamp};

use super::{SamlKey, SealedKey};

row! { SamlKey = "saml_keys" { id, created_at, retires_at } }

row! { SealedKey = "saml_keys" { about of SamlKey, sealed: "sealed_key" } }

/// Held while deciding whether a key is needed.
pub(super) fn lock(tx: &mut Tx<'_>) -> Result<()> {
    tx.lock(&WholeDatabase("saml_keys"))
}

/// The newest first.
pub(crate) fn unretired(tx: &mut Tx<'_>) -> Result<Vec<SealedKey>> {
    let now = tx.now();
    tx.all(
        sql!(
            "SELECT ",
            SealedKey::COLUMNS,
            " FROM saml_keys WHERE retires_at IS NULL OR retires_at > $1 ORDER BY created_at DESC, id DESC"
        ),
        &args![now],
    )
}

pub(super) fn insert(tx: &mut Tx<'_>, key: &SealedKey) -> Result<()> {
    tx.run(
        "INSERT INTO saml_keys (id, app_id, sealed_key, created_at, retires_at) VALUES ($1, NULL, $2, $3, NULL)",
        &args![key.about.id, key.sealed, key.about.created_at],
    )
}

/// Gives every key that has no end yet this one.
pub(super) fn retire_all(tx: &mut Tx<'_>, at: Timestamp) -> Result<()> {
    tx.run("UPDATE saml_keys SET retires_at = $1 WHERE retires_at IS NULL", &args![at])
}
