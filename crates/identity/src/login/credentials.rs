//! The stored half of a password.

use kernel::{AppId, Result, UserId, email_key};
use spine::emit;
use store::{FromRow, Row, Tx, args};
use vault::{
    Keyring, Place,
    passwords::{Imported, StoredPassword},
};

use crate::facts::PasswordChanged;

/// A person as a login finds them.
#[derive(Clone, Debug)]
pub struct Account {
    pub user: UserId,
    pub email: String,
    digest: Option<String>,
    sealed_import: Option<String>,
}

impl FromRow for Account {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            user: row.get("id")?,
            email: row.get("email")?,
            digest: row.get("digest")?,
            sealed_import: row.get("sealed_import")?,
        })
    }
}

impl Account {
    /// A stand-in for an address without an account, which costs the same work.
    pub(super) fn of_nobody(tx: &Tx<'_>) -> Self {
        Self { user: tx.new_id(), email: "nobody@nowhere.invalid".into(), digest: None, sealed_import: None }
    }

    pub fn has_password(&self) -> bool {
        self.digest.is_some() || self.sealed_import.is_some()
    }

    /// What a password is checked against.
    pub fn stored(&self, keyring: &Keyring, app: AppId) -> Result<StoredPassword> {
        if let Some(digest) = &self.digest {
            return Ok(StoredPassword::Own(digest.clone()));
        }
        let Some(sealed) = &self.sealed_import else { return Ok(StoredPassword::Nothing) };
        let json = keyring.open(&import_place(app, &self.user.to_string()), sealed)?;
        Ok(StoredPassword::Imported(Imported::from_json(json.expose())?))
    }
}

fn import_place(app: AppId, user: &str) -> Place<'_> {
    Place { table: "user_credentials", column: "sealed_import", row: user, app: Some(app) }
}

pub fn find(tx: &mut Tx<'_>, app: AppId, username: &str) -> Result<Option<Account>> {
    tx.opt(
        "SELECT users.id, users.email, user_credentials.digest, user_credentials.sealed_import FROM users \
         LEFT JOIN user_credentials ON user_credentials.user_id = users.id \
         WHERE users.app_id = $1 AND users.email_key = $2",
        &args![app, email_key(username.trim())],
    )
}

/// Stores the digest of a password that the person chose.
pub fn set(tx: &mut Tx<'_>, app: AppId, user: UserId, digest: &str) -> Result<()> {
    tx.exec(
        "INSERT INTO user_credentials (user_id, app_id, digest, updated_at) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (user_id) DO UPDATE SET digest = excluded.digest, sealed_import = NULL, \
         updated_at = excluded.updated_at",
        &args![user, app, digest, tx.now()],
    )?;
    emit(tx, app, &PasswordChanged { user_id: user })
}

/// Stores a digest that another system made, unless the person has a password here; true when it was stored.
pub fn import(tx: &mut Tx<'_>, keyring: &Keyring, app: AppId, user: UserId, imported: &Imported) -> Result<bool> {
    let sealed = keyring.seal(&import_place(app, &user.to_string()), &imported.to_json()?);
    let stored = tx.exec(
        "INSERT INTO user_credentials (user_id, app_id, sealed_import, updated_at) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (user_id) DO NOTHING",
        &args![user, app, sealed, tx.now()],
    )?;
    Ok(stored == 1)
}

/// Whether what was verified is still the person's password. Until the transaction ends, nobody changes it: a change
/// holds the same row.
pub(super) fn still_stored(tx: &mut Tx<'_>, app: AppId, account: &Account) -> Result<bool> {
    let held = tx.exec(
        "UPDATE user_credentials SET updated_at = updated_at WHERE app_id = $1 AND user_id = $2 \
         AND digest IS NOT DISTINCT FROM $3 AND sealed_import IS NOT DISTINCT FROM $4",
        &args![app, account.user, account.digest, account.sealed_import],
    )?;
    Ok(held == 1)
}

/// Puts a digest of today's making in the place of the one that was just verified, unless that was changed meanwhile.
pub(super) fn renew(tx: &mut Tx<'_>, app: AppId, account: &Account, digest: &str) -> Result<()> {
    tx.exec(
        "UPDATE user_credentials SET digest = $3, sealed_import = NULL, updated_at = $6 WHERE app_id = $1 \
         AND user_id = $2 AND digest IS NOT DISTINCT FROM $4 AND sealed_import IS NOT DISTINCT FROM $5",
        &args![app, account.user, digest, account.digest, account.sealed_import, tx.now()],
    )
    .map(|_| ())
}
