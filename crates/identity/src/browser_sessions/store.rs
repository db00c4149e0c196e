//! The SQL of browser sessions.

use ::store::{Tx, args, row, sql};
use kernel::{AppId, MemberId, Result, Timestamp, UserId};
use tenancy::{logins::BrowserSessionId, sessions_not_ended};
use vault::hash_token;

use super::{BrowserSession, BrowserSignIn};

row! {
    BrowserSession = "browser_sessions" {
        id,
        user: "user_id",
        member: "member_id",
        mfa,
        method,
        authenticated_at,
        connection: "connection_id",
        ends_at,
    }
}

pub(super) fn live(tx: &mut Tx<'_>, app: AppId, cookie: &str) -> Result<Option<BrowserSession>> {
    tx.opt(
        sql!(
            "SELECT ",
            BrowserSession::COLUMNS,
            " FROM browser_sessions WHERE app_id = $1 AND digest = $2 AND ended_at IS NULL AND expires_at > $3 AND ",
            sessions_not_ended!("browser_sessions.user_id", "browser_sessions.authenticated_at")
        ),
        &args![app, hash_token(cookie), tx.now()],
    )
}

pub(super) fn insert(
    tx: &mut Tx<'_>,
    app: AppId,
    id: BrowserSessionId,
    cookie: &str,
    shown: &BrowserSignIn,
    expires_at: Timestamp,
) -> Result<()> {
    tx.run(
        "INSERT INTO browser_sessions (id, digest, app_id, user_id, member_id, mfa, method, authenticated_at, \
         expires_at, created_at, connection_id, ends_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        &args![
            id,
            hash_token(cookie),
            app,
            shown.user,
            shown.member,
            shown.mfa,
            shown.method,
            shown.authenticated_at,
            expires_at,
            tx.now(),
            shown.reach.connection,
            shown.reach.ends_at
        ],
    )
}

/// Gives the same person's session another cookie; `None` when the former one was not theirs.
pub(super) fn renew(
    tx: &mut Tx<'_>,
    app: AppId,
    (former, cookie): (&str, &str),
    shown: &BrowserSignIn,
    expires_at: Timestamp,
) -> Result<Option<BrowserSessionId>> {
    let kept: Option<(BrowserSessionId,)> = tx.opt(
        "UPDATE browser_sessions SET digest = $4, member_id = $5, mfa = $6, method = $7, authenticated_at = $8, \
         expires_at = $9, connection_id = $10, ends_at = $11 WHERE app_id = $1 AND digest = $2 AND user_id = $3 AND ended_at IS NULL RETURNING id",
        &args![
            app,
            hash_token(former),
            shown.user,
            hash_token(cookie),
            shown.member,
            shown.mfa,
            shown.method,
            shown.authenticated_at,
            expires_at,
            shown.reach.connection,
            shown.reach.ends_at
        ],
    )?;
    Ok(kept.map(|(id,)| id))
}

pub(super) fn choose(tx: &mut Tx<'_>, app: AppId, id: BrowserSessionId, member: MemberId) -> Result<bool> {
    tx.changes_one(
        "UPDATE browser_sessions SET member_id = $3 WHERE app_id = $1 AND id = $2 AND ended_at IS NULL",
        &args![app, id, member],
    )
}

/// What is over has expired, too: that is how it is swept.
pub(super) fn end(tx: &mut Tx<'_>, app: AppId, cookie: &str) -> Result<Option<(BrowserSessionId, UserId)>> {
    tx.opt(
        "UPDATE browser_sessions SET ended_at = $3, expires_at = $3 WHERE app_id = $1 AND digest = $2 \
         AND ended_at IS NULL RETURNING id, user_id",
        &args![app, hash_token(cookie), tx.now()],
    )
}

pub(super) fn end_one(tx: &mut Tx<'_>, app: AppId, id: BrowserSessionId) -> Result<Option<UserId>> {
    let ended: Option<(UserId,)> = tx.opt(
        "UPDATE browser_sessions SET ended_at = $3, expires_at = $3 WHERE app_id = $1 AND id = $2 \
         AND ended_at IS NULL RETURNING user_id",
        &args![app, id, tx.now()],
    )?;
    Ok(ended.map(|(user,)| user))
}

pub(super) fn end_others(tx: &mut Tx<'_>, app: AppId, user: UserId, kept: Option<BrowserSessionId>) -> Result<()> {
    let kept = kept.map(|id| id.to_string()).unwrap_or_default();
    tx.run(
        "UPDATE browser_sessions SET ended_at = $3, expires_at = $3 WHERE app_id = $1 AND user_id = $2 AND id <> $4 \
         AND ended_at IS NULL",
        &args![app, user, tx.now(), kept],
    )
}

pub(super) fn end_all(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    tx.run(
        "UPDATE browser_sessions SET ended_at = $3 WHERE app_id = $1 AND user_id = $2 AND ended_at IS NULL",
        &args![app, user, tx.now()],
    )
}

pub(super) fn end_of_member(tx: &mut Tx<'_>, app: AppId, user: UserId, member: MemberId) -> Result<()> {
    tx.run(
        "UPDATE browser_sessions SET ended_at = $4, expires_at = $4 WHERE app_id = $1 AND user_id = $2 \
         AND member_id = $3 AND ended_at IS NULL",
        &args![app, user, member, tx.now()],
    )
}
