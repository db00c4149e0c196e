//! Somebody signed in to an app in one browser. Only the digest of its cookie is stored; signing in again, as the same
//! person, keeps the row and changes the cookie, so that a cookie from before a login is never one from after it.

use std::time::Duration;

use kernel::{AppId, MemberId, Result, Timestamp, UserId};
use spine::emit;
use store::{FromRow, Row, Tx, args};
use tenancy::{
    App,
    logins::{self, BrowserSessionId},
    sessions_not_ended,
};
use vault::hash_token;

use crate::{facts::SignedOut, sessions::Method};

const COOKIE_LENGTH: usize = 43;

/// Who is signed in, and how they showed who they are.
#[derive(Clone, Debug)]
pub(crate) struct BrowserSession {
    pub(crate) id: BrowserSessionId,
    pub(crate) user: UserId,
    /// The workspace that was chosen last.
    pub(crate) member: MemberId,
    /// Whether more than one factor was shown.
    pub(crate) mfa: bool,
    pub(crate) method: Method,
    pub(crate) authenticated_at: Timestamp,
}

impl FromRow for BrowserSession {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let method: String = row.get("method")?;
        Ok(Self {
            id: row.get("id")?,
            user: row.get("user_id")?,
            member: row.get("member_id")?,
            mfa: row.get("mfa")?,
            method: Method::read(&method)?,
            authenticated_at: row.get("authenticated_at")?,
        })
    }
}

/// Whom a cookie stands for, unless that was ended, by itself or with all of the person's sessions.
pub(crate) fn live(tx: &mut Tx<'_>, app: AppId, cookie: &str) -> Result<Option<BrowserSession>> {
    tx.opt(
        concat!(
            "SELECT id, user_id, member_id, mfa, method, authenticated_at FROM browser_sessions ",
            "WHERE app_id = $1 AND digest = $2 AND ended_at IS NULL AND expires_at > $3 AND ",
            sessions_not_ended!("browser_sessions.user_id", "browser_sessions.authenticated_at")
        ),
        &args![app, hash_token(cookie), tx.now()],
    )
}

/// What a login has shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BrowserSignIn {
    pub(crate) user: UserId,
    pub(crate) member: MemberId,
    pub(crate) mfa: bool,
    pub(crate) method: Method,
    pub(crate) authenticated_at: Timestamp,
}

/// Notes that somebody signed in; the new cookie is in the answer and nowhere else. `former` is the browser's cookie
/// up to now: the same person's stays, anybody else's ends.
pub(crate) fn start(
    tx: &mut Tx<'_>,
    app: &App,
    former: Option<&str>,
    shown: BrowserSignIn,
) -> Result<(BrowserSessionId, String)> {
    let cookie = tx.entropy().base62(COOKIE_LENGTH);
    let expires_at = tx.now().plus(lifetime(app));
    if let Some(former) = former {
        let kept: Option<(BrowserSessionId,)> = tx.opt(
            "UPDATE browser_sessions SET digest = $4, member_id = $5, mfa = $6, method = $7, authenticated_at = $8, \
             expires_at = $9 WHERE app_id = $1 AND digest = $2 AND user_id = $3 AND ended_at IS NULL RETURNING id",
            &args![
                app.id,
                hash_token(former),
                shown.user,
                hash_token(&cookie),
                shown.member,
                shown.mfa,
                shown.method.name(),
                shown.authenticated_at,
                expires_at
            ],
        )?;
        if let Some((id,)) = kept {
            return Ok((id, cookie));
        }
        end(tx, app.id, former)?;
    }
    let id: BrowserSessionId = tx.new_id();
    tx.exec(
        "INSERT INTO browser_sessions (id, digest, app_id, user_id, member_id, mfa, method, authenticated_at, \
         expires_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        &args![
            id,
            hash_token(&cookie),
            app.id,
            shown.user,
            shown.member,
            shown.mfa,
            shown.method.name(),
            shown.authenticated_at,
            expires_at,
            tx.now()
        ],
    )?;
    Ok((id, cookie))
}

/// How long a browser stays signed in: as long as its tokens could be refreshed.
pub(crate) fn lifetime(app: &App) -> Duration {
    Duration::from_secs(app.profile.refresh_token_ttl.into())
}

/// Remembers the workspace that was chosen.
pub(crate) fn choose(tx: &mut Tx<'_>, app: AppId, id: BrowserSessionId, member: MemberId) -> Result<()> {
    tx.exec("UPDATE browser_sessions SET member_id = $3 WHERE app_id = $1 AND id = $2", &args![app, id, member])
        .map(|_| ())
}

/// Signs out: the browser, every login that began in it, and the codes that are still out. What is over has expired,
/// too: that is how it is swept.
pub(crate) fn end(tx: &mut Tx<'_>, app: AppId, cookie: &str) -> Result<()> {
    let ended: Option<(BrowserSessionId, UserId)> = tx.opt(
        "UPDATE browser_sessions SET ended_at = $3, expires_at = $3 WHERE app_id = $1 AND digest = $2 \
         AND ended_at IS NULL RETURNING id, user_id",
        &args![app, hash_token(cookie), tx.now()],
    )?;
    let Some((id, user_id)) = ended else { return Ok(()) };
    emit(tx, app, &SignedOut { user_id })?;
    logins::revoke_of_browser(tx, app, id)?;
    tx.exec(
        "UPDATE authorization_codes SET used_at = $3 WHERE app_id = $1 AND browser_session_id = $2 AND used_at IS NULL",
        &args![app, id, tx.now()],
    )
    .map(|_| ())
}
