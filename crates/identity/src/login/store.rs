//! The SQL of passwords.

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Result, UserId};

use super::credentials::Account;

row! {
    Account = "users" {
        user: "id",
        email,
        digest = "user_credentials.digest",
        sealed_import = "user_credentials.sealed_import",
    }
}

pub(super) fn find(tx: &mut Tx<'_>, app: AppId, email_key: &str) -> Result<Option<Account>> {
    tx.opt(
        sql!(
            "SELECT ",
            Account::COLUMNS,
            " FROM users LEFT JOIN user_credentials ON user_credentials.user_id = users.id \
             WHERE users.app_id = $1 AND users.email_key = $2"
        ),
        &args![app, email_key],
    )
}

/// Holds the row until the transaction ends.
pub(super) fn exists(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<bool> {
    tx.changes_one(
        "UPDATE user_credentials SET updated_at = updated_at WHERE app_id = $1 AND user_id = $2",
        &args![app, user],
    )
}

pub(super) fn put_digest(tx: &mut Tx<'_>, app: AppId, user: UserId, digest: &str) -> Result<()> {
    tx.run(
        "INSERT INTO user_credentials (user_id, app_id, digest, updated_at) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (user_id) DO UPDATE SET digest = excluded.digest, sealed_import = NULL, \
         updated_at = excluded.updated_at",
        &args![user, app, digest, tx.now()],
    )
}

/// False when the person has a password.
pub(super) fn insert_imports(tx: &mut Tx<'_>, app: AppId, sealed: &[(UserId, String)]) -> Result<()> {
    let now = tx.now();
    let rows: Vec<_> = sealed.iter().map(|(user, sealed)| (*user, app, sealed.as_str(), now)).collect();
    tx.insert_all(
        "INSERT INTO user_credentials (user_id, app_id, sealed_import, updated_at) \
         SELECT user_id, app_id, sealed_import, updated_at FROM {rows} WHERE true ON CONFLICT (user_id) DO NOTHING",
        ["user_id", "app_id", "sealed_import", "updated_at"],
        &rows,
    )
}

pub(super) fn delete(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    tx.run("DELETE FROM user_credentials WHERE app_id = $1 AND user_id = $2", &args![app, user])
}

/// Holds the row as it was read; false when it is another by now.
pub(super) fn hold(tx: &mut Tx<'_>, app: AppId, account: &Account) -> Result<bool> {
    tx.changes_one(
        "UPDATE user_credentials SET updated_at = updated_at WHERE app_id = $1 AND user_id = $2 \
         AND digest IS NOT DISTINCT FROM $3 AND sealed_import IS NOT DISTINCT FROM $4",
        &args![app, account.user, account.digest, account.sealed_import],
    )
}

pub(super) fn renew(tx: &mut Tx<'_>, app: AppId, account: &Account, digest: &str) -> Result<()> {
    tx.run(
        "UPDATE user_credentials SET digest = $3, sealed_import = NULL, updated_at = $6 WHERE app_id = $1 \
         AND user_id = $2 AND digest IS NOT DISTINCT FROM $4 AND sealed_import IS NOT DISTINCT FROM $5",
        &args![app, account.user, digest, account.digest, account.sealed_import, tx.now()],
    )
}
