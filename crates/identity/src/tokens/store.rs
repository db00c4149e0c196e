//! The SQL of authorization codes and refresh tokens.

use ::store::{FromRow, Row, Tx, args, row, sql};
use kernel::{AppId, MemberId, Result, Timestamp, UserId};
use tenancy::{
    federation::ConnectionId,
    logins::{BrowserSessionId, LoginId},
    sessions_not_ended,
};

use super::{Granted, RefreshId, codes::NewCode, refresh_tokens::RefreshRecord};
use crate::proof::Method;

/// What a code stands for.
pub(super) struct CodeRow {
    pub(super) user: UserId,
    pub(super) member: MemberId,
    pub(super) redirect_uri: String,
    pub(super) granted: Granted,
    pub(super) nonce: Option<String>,
    pub(super) code_challenge: Option<String>,
    pub(super) mfa: bool,
    pub(super) method: Method,
    pub(super) authenticated_at: Timestamp,
    pub(super) browser: Option<BrowserSessionId>,
    pub(super) connection: Option<ConnectionId>,
    pub(super) ends_at: Option<Timestamp>,
}

row! {
    CodeRow = "authorization_codes" {
        user: "user_id",
        member: "member_id",
        redirect_uri,
        granted of Granted,
        nonce,
        code_challenge,
        mfa,
        method = "COALESCE(authorization_codes.method, 'password')",
        authenticated_at,
        browser: "browser_session_id",
        connection: "connection_id",
        ends_at,
    }
}

pub(super) fn insert_code(
    tx: &mut Tx<'_>,
    app: AppId,
    digest: &str,
    new: &NewCode<'_>,
    expires_at: Timestamp,
) -> Result<()> {
    tx.run(
        "INSERT INTO authorization_codes (digest, app_id, user_id, member_id, redirect_uri, oidc_scope, privileges, \
         nonce, code_challenge, mfa, authenticated_at, expires_at, created_at, method, browser_session_id, connection_id, \
         ends_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
        &args![
            digest,
            app,
            new.user,
            new.member,
            new.redirect_uri,
            new.granted.oidc,
            new.granted.privileges,
            new.nonce,
            new.code_challenge,
            new.mfa,
            new.authenticated_at,
            expires_at,
            tx.now(),
            new.method,
            new.browser,
            new.reach.connection,
            new.reach.ends_at
        ],
    )
}

/// Of several callers at once exactly one gets it. A code does not outlive the end of all sessions.
pub(super) fn use_code(tx: &mut Tx<'_>, app: AppId, digest: &str) -> Result<Option<CodeRow>> {
    tx.opt(
        sql!(
            "UPDATE authorization_codes SET used_at = $3 WHERE app_id = $1 AND digest = $2 AND used_at IS NULL \
             AND expires_at > $3 AND ",
            sessions_not_ended!("authorization_codes.user_id", "authorization_codes.created_at"),
            " RETURNING ",
            CodeRow::COLUMNS
        ),
        &args![app, digest, tx.now()],
    )
}

/// The login that a used code began; `None` when there is no such code.
pub(super) fn login_of_used_code(tx: &mut Tx<'_>, app: AppId, digest: &str) -> Result<Option<Option<LoginId>>> {
    let used: Option<(Option<LoginId>,)> = tx.opt(
        "SELECT family_id FROM authorization_codes WHERE app_id = $1 AND digest = $2 AND used_at IS NOT NULL",
        &args![app, digest],
    )?;
    Ok(used.map(|(login,)| login))
}

pub(super) fn note_login(tx: &mut Tx<'_>, app: AppId, digest: &str, login: LoginId) -> Result<()> {
    tx.run(
        "UPDATE authorization_codes SET family_id = $3 WHERE app_id = $1 AND digest = $2",
        &args![app, digest, login],
    )
}

pub(super) fn void_codes_of_browser(tx: &mut Tx<'_>, app: AppId, browser: BrowserSessionId) -> Result<()> {
    tx.run(
        "UPDATE authorization_codes SET used_at = $3 WHERE app_id = $1 AND browser_session_id = $2 AND used_at IS NULL",
        &args![app, browser, tx.now()],
    )
}

pub(super) fn void_codes_of_user(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    tx.run(
        "UPDATE authorization_codes SET used_at = $3 WHERE app_id = $1 AND user_id = $2 AND used_at IS NULL",
        &args![app, user, tx.now()],
    )
}

pub(super) fn void_codes_of_member(tx: &mut Tx<'_>, app: AppId, user: UserId, member: MemberId) -> Result<()> {
    tx.run(
        "UPDATE authorization_codes SET used_at = $3 WHERE app_id = $1 AND user_id = $2 AND member_id = $4 AND used_at IS NULL",
        &args![app, user, tx.now(), member],
    )
}

row! { RefreshRecord = "refresh_tokens" { login: "family_id", member: "member_id", granted of Granted, rotated_at, expires_at } }

/// How many refresh tokens a login has beside a new one.
pub(super) struct OtherTokens {
    pub(super) working: i64,
    /// Those that were used or have ended, too.
    pub(super) all: i64,
}

impl FromRow for OtherTokens {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Ok(Self { working: row.get("working")?, all: row.get("all_others")? })
    }
}

pub(super) fn insert_refresh_token(
    tx: &mut Tx<'_>,
    app: AppId,
    id: RefreshId,
    (login, member): (LoginId, MemberId),
    granted: &Granted,
    expires_at: Timestamp,
) -> Result<OtherTokens> {
    tx.one(
        "INSERT INTO refresh_tokens (id, app_id, family_id, member_id, oidc_scope, privileges, expires_at, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING (SELECT count(*) FROM refresh_tokens AS others \
         WHERE others.family_id = $3 AND others.id <> $1 AND others.rotated_at IS NULL AND others.expires_at > $8) \
         AS working, (SELECT count(*) FROM refresh_tokens AS others WHERE others.family_id = $3 AND others.id <> $1) \
         AS all_others",
        &args![id, app, login, member, granted.oidc, granted.privileges, expires_at, tx.now()],
    )
}

/// Ends the oldest refresh tokens of a login that work, beyond so many.
pub(super) fn end_oldest(tx: &mut Tx<'_>, app: AppId, login: LoginId, working: i64) -> Result<()> {
    tx.run(
        "UPDATE refresh_tokens SET expires_at = $3 WHERE app_id = $1 AND family_id = $2 AND rotated_at IS NULL \
         AND expires_at > $3 AND id NOT IN (SELECT id FROM refresh_tokens WHERE app_id = $1 AND family_id = $2 \
         AND rotated_at IS NULL AND expires_at > $3 ORDER BY id DESC LIMIT $4)",
        &args![app, login, tx.now(), working],
    )
}

/// Deletes records that stopped working before some time, and those beyond the newest so many.
pub(super) fn forget_old(tx: &mut Tx<'_>, app: AppId, login: LoginId, before: Timestamp, most: i64) -> Result<()> {
    tx.run(
        "DELETE FROM refresh_tokens WHERE app_id = $1 AND family_id = $2 \
         AND (rotated_at IS NOT NULL OR expires_at <= $3) AND (coalesce(rotated_at, expires_at) < $4 \
         OR id NOT IN (SELECT id FROM refresh_tokens WHERE app_id = $1 AND family_id = $2 \
         AND (rotated_at IS NOT NULL OR expires_at <= $3) ORDER BY id DESC LIMIT $5))",
        &args![app, login, tx.now(), before, most],
    )
}

/// `None` when it was rotated before, has ended, or there is none.
pub(super) fn rotate(tx: &mut Tx<'_>, app: AppId, id: RefreshId) -> Result<Option<RefreshRecord>> {
    tx.opt(
        sql!(
            "UPDATE refresh_tokens SET rotated_at = $3 WHERE app_id = $1 AND id = $2 AND rotated_at IS NULL \
             AND expires_at > $3 RETURNING ",
            RefreshRecord::COLUMNS
        ),
        &args![app, id, tx.now()],
    )
}

pub(super) fn find_refresh_token(tx: &mut Tx<'_>, app: AppId, id: RefreshId) -> Result<Option<RefreshRecord>> {
    tx.opt(
        sql!("SELECT ", RefreshRecord::COLUMNS, " FROM refresh_tokens WHERE app_id = $1 AND id = $2"),
        &args![app, id],
    )
}

/// Those of these logins that have tokens of the membership.
pub(super) fn ends(tx: &mut Tx<'_>, app: AppId, logins: &[LoginId]) -> Result<Vec<(LoginId, Timestamp)>> {
    tx.all(
        "SELECT family_id, max(expires_at) FROM refresh_tokens WHERE app_id = $1 AND family_id = ANY($2) \
         AND rotated_at IS NULL AND expires_at > $3 GROUP BY family_id",
        &args![app, logins, tx.now()],
    )
}

pub(super) fn with_tokens_of(
    tx: &mut Tx<'_>,
    app: AppId,
    logins: &[LoginId],
    member: MemberId,
) -> Result<Vec<LoginId>> {
    let found: Vec<(LoginId,)> = tx.all(
        "SELECT DISTINCT family_id FROM refresh_tokens WHERE app_id = $1 AND family_id = ANY($2) AND member_id = $3",
        &args![app, logins, member],
    )?;
    Ok(found.into_iter().map(|(login,)| login).collect())
}
