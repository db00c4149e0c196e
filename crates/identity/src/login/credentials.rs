//! The stored half of a password.

use ::store::Tx;
use kernel::{AppId, Result, UserId, email_key};
use tenancy::Tenancy;
use vault::{
    Keyring, Place,
    passwords::{Imported, StoredPassword},
};

use super::store;
use crate::announcements;

/// A person as a login finds them.
#[derive(Clone, Debug)]
pub struct Account {
    pub user: UserId,
    pub email: String,
    pub(super) digest: Option<String>,
    pub(super) sealed_import: Option<String>,
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
    store::find(tx, app, &email_key(username.trim()))
}

/// Whether a person has a password, their own or an imported one.
pub(crate) fn has_password(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<bool> {
    store::exists(tx, app, user)
}

/// Stores the digest of a password that the person chose.
pub fn set(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, user: UserId, digest: &str) -> Result<()> {
    let again = has_password(tx, app, user)?;
    store::put_digest(tx, app, user, digest)?;
    announcements::password_changed(tx, tenancy, app, user, again)
}

/// Stores digests that another system made, for those who have no password here.
pub fn import(tx: &mut Tx<'_>, keyring: &Keyring, app: AppId, imported: &[(UserId, &Imported)]) -> Result<()> {
    let sealed = |&(user, imported): &(UserId, &Imported)| {
        Ok((user, keyring.seal(&import_place(app, &user.to_string()), &imported.to_json()?)))
    };
    let sealed: Vec<(UserId, String)> = imported.iter().map(sealed).collect::<Result<_>>()?;
    store::insert_imports(tx, app, &sealed)
}

/// The person has no password from now on.
pub(super) fn forget(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    store::delete(tx, app, user)
}

/// Whether what was verified is still the person's password. Until the transaction ends, nobody changes it: a change
/// holds the same row.
pub(super) fn still_stored(tx: &mut Tx<'_>, app: AppId, account: &Account) -> Result<bool> {
    store::hold(tx, app, account)
}

/// Puts a digest of today's making in the place of the one that was just verified, unless that was changed meanwhile.
pub(super) fn renew(tx: &mut Tx<'_>, app: AppId, account: &Account, digest: &str) -> Result<()> {
    store::renew(tx, app, account, digest)
}
