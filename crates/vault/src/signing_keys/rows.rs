//! The table `signing_keys`.

use kernel::{Result, Timestamp};
use store::{Tx, args, row, sql};

use super::{SigningKey, SigningKeyId};
use crate::seal::{Keyring, Place};

/// Values sealed again in one transaction.
const RESEAL_BATCH: i64 = 50;

/// A row with its private key still sealed.
pub(super) struct StoredKey {
    pub(super) about: SigningKey,
    pub(super) sealed: String,
}

row! { SigningKey = "signing_keys" { kid, created_at, active_from, retires_at } }

row! { StoredKey = "signing_keys" { about of SigningKey, sealed: "sealed_key" } }

/// Where the private key of row `kid` is sealed. Signing keys belong to the installation, not to an app.
pub(super) fn place(kid: &str) -> Place<'_> {
    Place { table: "signing_keys", column: "sealed_key", row: kid, app: None }
}

/// Held while deciding whether a key is needed, so that several nodes make one.
pub(super) fn lock(tx: &mut Tx<'_>) -> Result<()> {
    tx.lock(&store::WholeDatabase("signing_keys"))
}

pub(super) fn unretired(tx: &mut Tx<'_>) -> Result<Vec<StoredKey>> {
    let now = tx.now();
    tx.all(
        sql!("SELECT ", StoredKey::COLUMNS, " FROM signing_keys WHERE retires_at IS NULL OR retires_at > $1"),
        &args![now],
    )
}

pub(super) fn list(tx: &mut Tx<'_>) -> Result<Vec<SigningKey>> {
    tx.all(sql!("SELECT ", SigningKey::COLUMNS, " FROM signing_keys ORDER BY active_from, kid"), &[])
}

pub(super) fn any(tx: &mut Tx<'_>) -> Result<bool> {
    tx.exists("SELECT kid FROM signing_keys LIMIT 1", &[])
}

/// The key that is published and not yet active.
pub(super) fn pending(tx: &mut Tx<'_>) -> Result<Option<SigningKey>> {
    let now = tx.now();
    tx.opt(
        "SELECT kid, created_at, active_from, retires_at FROM signing_keys \
         WHERE active_from > $1 ORDER BY active_from, kid LIMIT 1",
        &args![now],
    )
}

pub(super) fn insert(tx: &mut Tx<'_>, key: &SigningKey, sealed: &str) -> Result<()> {
    tx.run(
        "INSERT INTO signing_keys (kid, sealed_key, created_at, active_from, retires_at) VALUES ($1, $2, $3, $4, $5)",
        &args![key.kid, sealed, key.created_at, key.active_from, key.retires_at],
    )
}

/// Gives every key that has no end yet this one.
pub(super) fn retire_all(tx: &mut Tx<'_>, at: Timestamp) -> Result<()> {
    tx.run("UPDATE signing_keys SET retires_at = $1 WHERE retires_at IS NULL", &args![at])
}

pub(super) fn delete(tx: &mut Tx<'_>, kid: SigningKeyId) -> Result<()> {
    tx.run("DELETE FROM signing_keys WHERE kid = $1", &args![kid])
}

/// Lets the key that waits for its time sign now.
pub(super) fn activate_newest(tx: &mut Tx<'_>) -> Result<()> {
    let now = tx.now();
    tx.run("UPDATE signing_keys SET active_from = $1 WHERE retires_at IS NULL AND active_from > $1", &args![now])
}

pub(super) fn delete_retired(tx: &mut Tx<'_>) -> Result<u64> {
    let now = tx.now();
    tx.exec("DELETE FROM signing_keys WHERE retires_at <= $1", &args![now])
}

/// Seals a bounded number of keys again; how many there were.
pub(super) fn reseal_some(tx: &mut Tx<'_>, keyring: &Keyring) -> Result<usize> {
    lock(tx)?;
    let prefix = keyring.current_prefix();
    let rows: Vec<(SigningKeyId, String)> = tx.all(
        "SELECT kid, sealed_key FROM signing_keys WHERE substr(sealed_key, 1, length(CAST($1 AS TEXT))) <> $1 ORDER BY kid LIMIT $2",
        &args![prefix, RESEAL_BATCH],
    )?;
    for (kid, sealed) in &rows {
        if let Some(resealed) = keyring.reseal(&place(&kid.to_string()), sealed)? {
            tx.exec("UPDATE signing_keys SET sealed_key = $2 WHERE kid = $1", &args![kid, resealed])?;
        }
    }
    Ok(rows.len())
}
