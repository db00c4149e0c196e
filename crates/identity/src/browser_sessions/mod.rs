//! Somebody signed in to an app in one browser. Only the digest of its cookie is stored; signing in again, as the same
//! person, keeps the row and changes the cookie, so that a cookie from before a login is never one from after it.

mod store;

use std::time::Duration;

use ::store::Tx;
use kernel::{AppId, MemberId, Result, Timestamp, UserId};
use spine::emit;
use tenancy::{
    App,
    federation::ConnectionId,
    logins::{self, BrowserSessionId, Reach},
};

use crate::{facts::SignedOut, proof::Method, tokens::codes};

const COOKIE_LENGTH: usize = 43;

/// Who is signed in, and how they proved who they are.
#[derive(Clone, Debug)]
pub(crate) struct BrowserSession {
    pub(crate) id: BrowserSessionId,
    pub(crate) user: UserId,
    /// The workspace that was chosen last.
    pub(crate) member: MemberId,
    /// Whether more than one factor was presented.
    pub(crate) mfa: bool,
    pub(crate) method: Method,
    pub(crate) authenticated_at: Timestamp,
    connection: Option<ConnectionId>,
    ends_at: Option<Timestamp>,
}

impl BrowserSession {
    pub(crate) fn reach(&self) -> Reach {
        Reach { connection: self.connection, ends_at: self.ends_at }
    }
}

/// Whom a cookie stands for, unless that was ended, by itself or with all of the person's sessions.
pub(crate) fn live(tx: &mut Tx<'_>, app: AppId, cookie: &str) -> Result<Option<BrowserSession>> {
    Ok(store::live(tx, app, cookie)?.filter(|session| session.reach().lasts(tx.now())))
}

/// What a login has proven.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BrowserSignIn {
    pub(crate) user: UserId,
    pub(crate) member: MemberId,
    pub(crate) mfa: bool,
    pub(crate) method: Method,
    pub(crate) authenticated_at: Timestamp,
    pub(crate) reach: Reach,
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
    let expires_at = shown.reach.bounds(tx.now().plus(lifetime(app)));
    if let Some(former) = former {
        if let Some(id) = store::renew(tx, app.id, (former, &cookie), &shown, expires_at)? {
            return Ok((id, cookie));
        }
        end(tx, app.id, former)?;
    }
    let id: BrowserSessionId = tx.new_id();
    store::insert(tx, app.id, id, &cookie, &shown, expires_at)?;
    Ok((id, cookie))
}

/// How long a browser stays signed in: as long as its tokens could be refreshed.
pub(crate) fn lifetime(app: &App) -> Duration {
    Duration::from_secs(app.profile.refresh_token_ttl.into())
}

/// Remembers the workspace that was chosen; 401 in a browser that was signed out just now.
pub(crate) fn choose(tx: &mut Tx<'_>, app: AppId, id: BrowserSessionId, member: MemberId) -> Result<()> {
    if store::choose(tx, app, id, member)? { Ok(()) } else { Err(logins::ended()) }
}

/// Signs out: the browser, every login that began in it, and the codes that are still out.
pub(crate) fn end(tx: &mut Tx<'_>, app: AppId, cookie: &str) -> Result<()> {
    let Some((id, user_id)) = store::end(tx, app, cookie)? else { return Ok(()) };
    finish(tx, app, id, user_id)
}

/// The same by its id.
pub(crate) fn end_one(tx: &mut Tx<'_>, app: AppId, id: BrowserSessionId) -> Result<()> {
    let Some(user_id) = store::end_one(tx, app, id)? else { return Ok(()) };
    finish(tx, app, id, user_id)
}

fn finish(tx: &mut Tx<'_>, app: AppId, id: BrowserSessionId, user_id: UserId) -> Result<()> {
    emit(tx, app, &SignedOut { user_id })?;
    // In this order: a login that a code is being exchanged for is seen once the code is held.
    codes::void_of_browser(tx, app, id)?;
    logins::revoke_of_browser(tx, app, id)
}

/// Signs a person out of all browsers but this one.
pub(crate) fn end_others(tx: &mut Tx<'_>, app: AppId, user: UserId, kept: Option<BrowserSessionId>) -> Result<()> {
    store::end_others(tx, app, user, kept)
}

/// Signs a person out of the browsers in which they chose this membership.
pub(crate) fn end_of_member(tx: &mut Tx<'_>, app: AppId, user: UserId, member: MemberId) -> Result<()> {
    store::end_of_member(tx, app, user, member)
}

/// Signs a person out of all browsers.
pub(crate) fn end_all(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    store::end_all(tx, app, user)
}
