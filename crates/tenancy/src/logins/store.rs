//! The SQL of logins.

use ::store::{FromRow, Row, Tx, args};
use kernel::{AppId, Result, Timestamp, UserId};

use super::{BrowserSessionId, Login, LoginId};

/// The condition under which a login counts, for statements that read `refresh_families`.
macro_rules! login_counts {
    () => {
        concat!(
            "refresh_families.revoked_at IS NULL AND ",
            $crate::sessions_not_ended!("refresh_families.user_id", "refresh_families.authenticated_at")
        )
    };
}
pub(crate) use login_counts;

impl FromRow for Login {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            user: row.get("user_id")?,
            mfa: row.get("mfa")?,
            authenticated_at: row.get("authenticated_at")?,
        })
    }
}

pub(super) fn insert(
    tx: &mut Tx<'_>,
    app: AppId,
    login: &Login,
    expires_at: Timestamp,
    browser: Option<BrowserSessionId>,
) -> Result<()> {
    tx.exec(
        "INSERT INTO refresh_families (id, app_id, user_id, mfa, authenticated_at, expires_at, created_at, \
         browser_session_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        &args![login.id, app, login.user, login.mfa, login.authenticated_at, expires_at, tx.now(), browser],
    )
    .map(|_| ())
}

pub(super) fn live(tx: &mut Tx<'_>, app: AppId, id: LoginId) -> Result<Option<Login>> {
    tx.opt(
        concat!(
            "SELECT id, user_id, mfa, authenticated_at FROM refresh_families WHERE app_id = $1 AND id = $2 AND ",
            login_counts!()
        ),
        &args![app, id],
    )
}

pub(super) fn revoke(tx: &mut Tx<'_>, app: AppId, id: LoginId) -> Result<bool> {
    let revoked = tx.exec(
        "UPDATE refresh_families SET revoked_at = $3 WHERE app_id = $1 AND id = $2 AND revoked_at IS NULL",
        &args![app, id, tx.now()],
    )?;
    Ok(revoked == 1)
}

pub(super) fn revoke_all(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    tx.exec(
        "UPDATE refresh_families SET revoked_at = $3 WHERE app_id = $1 AND user_id = $2 AND revoked_at IS NULL",
        &args![app, user, tx.now()],
    )
    .map(|_| ())
}

pub(super) fn revoke_of_browser(tx: &mut Tx<'_>, app: AppId, browser: BrowserSessionId) -> Result<()> {
    tx.exec(
        "UPDATE refresh_families SET revoked_at = $3 WHERE app_id = $1 AND browser_session_id = $2 \
         AND revoked_at IS NULL",
        &args![app, browser, tx.now()],
    )
    .map(|_| ())
}
