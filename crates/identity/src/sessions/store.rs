//! The SQL of login sessions; what they keep about a second factor is the second factor's.

use ::store::{Tx, args};
use kernel::{AppId, Result, Timestamp, UserId};
use tenancy::sessions_not_ended;

use super::{LoginClaims, SessionId};

pub(super) fn insert(
    tx: &mut Tx<'_>,
    app: AppId,
    user: UserId,
    id: SessionId,
    expires_at: Timestamp,
    authenticated_at: Timestamp,
) -> Result<()> {
    tx.run(
        "INSERT INTO login_sessions (id, app_id, user_id, wrong_codes, expires_at, created_at) \
         VALUES ($1, $2, $3, 0, $4, $5)",
        &args![id, app, user, expires_at, authenticated_at],
    )
}

pub(super) fn end(tx: &mut Tx<'_>, session: &LoginClaims) -> Result<bool> {
    tx.changes_one(
        "UPDATE login_sessions SET ended_at = $3 WHERE app_id = $1 AND id = $2 AND ended_at IS NULL",
        &args![session.aid, session.jti, tx.now()],
    )
}

pub(super) fn hold_all(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    tx.run(
        "UPDATE login_sessions SET exchanges = exchanges WHERE app_id = $1 AND user_id = $2 AND ended_at IS NULL",
        &args![app, user],
    )
}

pub(super) fn end_all(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    tx.run(
        "UPDATE login_sessions SET ended_at = $3 WHERE app_id = $1 AND user_id = $2 AND ended_at IS NULL",
        &args![app, user, tx.now()],
    )
}

/// When a session began that was not ended, neither by itself nor with all of the person's.
pub(super) fn live(tx: &mut Tx<'_>, session: &LoginClaims) -> Result<Option<Timestamp>> {
    let begun: Option<(Timestamp,)> = tx.opt(
        concat!(
            "SELECT created_at FROM login_sessions WHERE app_id = $1 AND id = $2 AND user_id = $3 ",
            "AND ended_at IS NULL AND expires_at > $4 AND ",
            sessions_not_ended!("login_sessions.user_id", "login_sessions.created_at")
        ),
        &args![session.aid, session.jti, session.sub, tx.now()],
    )?;
    Ok(begun.map(|(at,)| at))
}

/// The same with how often it was exchanged, this time included; nobody ends it before this transaction does.
pub(super) fn exchange(tx: &mut Tx<'_>, session: &LoginClaims) -> Result<Option<(Timestamp, i64)>> {
    tx.opt(
        concat!(
            "UPDATE login_sessions SET exchanges = exchanges + 1 WHERE app_id = $1 AND id = $2 AND user_id = $3 ",
            "AND ended_at IS NULL AND expires_at > $4 AND ",
            sessions_not_ended!("login_sessions.user_id", "login_sessions.created_at"),
            " RETURNING created_at, exchanges"
        ),
        &args![session.aid, session.jti, session.sub, tx.now()],
    )
}
