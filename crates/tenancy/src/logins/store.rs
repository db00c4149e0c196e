//! The SQL of logins.

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Result, Timestamp, UserId};

use super::{BrowserSessionId, ConnectionId, ListedLogin, Login, LoginId, Reach};

/// The condition under which a login counts, for statements that read `refresh_families`.
macro_rules! login_counts {
    () => {
        concat!(
            "refresh_families.revoked_at IS NULL AND ",
            $crate::sessions_not_ended!("refresh_families.user_id", "refresh_families.authenticated_at")
        )
    };
    // The person's row of `users` is joined already.
    (with users) => {
        concat!(
            "refresh_families.revoked_at IS NULL AND ",
            $crate::sessions_not_ended!("refresh_families.authenticated_at")
        )
    };
}
pub(crate) use login_counts;

row! { Reach = "refresh_families" { connection: "connection_id", ends_at } }
row! { Login = "refresh_families" { id, user: "user_id", mfa, authenticated_at, reach of Reach } }
row! { ListedLogin = "refresh_families" { login of Login, browser: "browser_session_id" } }

pub(super) fn insert(
    tx: &mut Tx<'_>,
    app: AppId,
    login: &Login,
    expires_at: Timestamp,
    browser: Option<BrowserSessionId>,
) -> Result<()> {
    tx.run(
        "INSERT INTO refresh_families (id, app_id, user_id, mfa, authenticated_at, expires_at, created_at, \
         browser_session_id, connection_id, ends_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        &args![
            login.id,
            app,
            login.user,
            login.mfa,
            login.authenticated_at,
            expires_at,
            tx.now(),
            browser,
            login.reach.connection,
            login.reach.ends_at
        ],
    )
}

pub(super) fn live(tx: &mut Tx<'_>, app: AppId, id: LoginId) -> Result<Option<Login>> {
    tx.opt(
        sql!("SELECT ", Login::COLUMNS, " FROM refresh_families WHERE app_id = $1 AND id = $2 AND ", login_counts!()),
        &args![app, id],
    )
}

/// Whose login it was; `None` when it had ended before.
pub(super) fn revoke(tx: &mut Tx<'_>, app: AppId, id: LoginId) -> Result<Option<UserId>> {
    let revoked: Option<(UserId,)> = tx.opt(
        "UPDATE refresh_families SET revoked_at = $3 WHERE app_id = $1 AND id = $2 AND revoked_at IS NULL \
         RETURNING user_id",
        &args![app, id, tx.now()],
    )?;
    Ok(revoked.map(|(user,)| user))
}

pub(super) fn revoke_all(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    tx.run(
        "UPDATE refresh_families SET revoked_at = $3 WHERE app_id = $1 AND user_id = $2 AND revoked_at IS NULL",
        &args![app, user, tx.now()],
    )
}

pub(super) fn of_user(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<Vec<LoginId>> {
    let logins: Vec<(LoginId,)> = tx.all(
        "SELECT id FROM refresh_families WHERE app_id = $1 AND user_id = $2 AND revoked_at IS NULL ORDER BY id",
        &args![app, user],
    )?;
    Ok(logins.into_iter().map(|(id,)| id).collect())
}

pub(super) fn list(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<Vec<ListedLogin>> {
    tx.all(
        sql!(
            "SELECT ",
            ListedLogin::COLUMNS,
            " FROM refresh_families WHERE app_id = $1 AND user_id = $2 AND ",
            login_counts!(),
            " ORDER BY authenticated_at DESC, id DESC LIMIT 1000"
        ),
        &args![app, user],
    )
}

pub(super) fn browser_of(tx: &mut Tx<'_>, app: AppId, id: LoginId) -> Result<Option<BrowserSessionId>> {
    let found: Option<(Option<BrowserSessionId>,)> =
        tx.opt("SELECT browser_session_id FROM refresh_families WHERE app_id = $1 AND id = $2", &args![app, id])?;
    Ok(found.and_then(|(browser,)| browser))
}

pub(super) fn revoke_of_connection(tx: &mut Tx<'_>, app: AppId, user: UserId, connection: ConnectionId) -> Result<()> {
    tx.run(
        "UPDATE refresh_families SET revoked_at = $4 WHERE app_id = $1 AND user_id = $2 AND connection_id = $3 \
         AND revoked_at IS NULL",
        &args![app, user, connection, tx.now()],
    )
}

pub(super) fn revoke_of_browser(tx: &mut Tx<'_>, app: AppId, browser: BrowserSessionId) -> Result<()> {
    tx.run(
        "UPDATE refresh_families SET revoked_at = $3 WHERE app_id = $1 AND browser_session_id = $2 \
         AND revoked_at IS NULL",
        &args![app, browser, tx.now()],
    )
}
