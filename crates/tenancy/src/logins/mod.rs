//! Logins: somebody proved who they are, and tokens descend from it. A login counts until it is revoked or all of the
//! person's sessions are ended; whether it does is decided by `login_counts!` and nowhere else.

mod reach;
mod store;

use std::time::Duration;

use ::store::Tx;
use kernel::{AppId, Error, Result, Timestamp, UserId, id_kinds};
use spine::emit;

pub use reach::Reach;
pub(crate) use store::login_counts;

use crate::{App, facts::LoginEnded};

id_kinds! {
    /// A login; `sid` in tokens.
    LoginId(LoginKind) = "sid";
    /// A connection to an identity provider, which bounds how far the logins through it reach.
    ConnectionId(ConnectionKind) = "connection";
    /// Somebody signed in in one browser, from which logins may begin.
    BrowserSessionId(BrowserSession) = "browser";
}

/// An access token may outlive the refresh token beside it, and needs its login as long.
pub const LONGEST_ACCESS: Duration = Duration::from_secs(31 * 24 * 3600);

/// A login that counts.
#[derive(Clone, Copy, Debug)]
pub struct Login {
    pub id: LoginId,
    pub user: UserId,
    /// Whether more than one factor was shown.
    pub mfa: bool,
    pub authenticated_at: Timestamp,
    pub reach: Reach,
}

/// Begins a login. One that began in a browser ends with the sign-in there.
pub fn start(
    tx: &mut Tx<'_>,
    app: &App,
    user: UserId,
    mfa: bool,
    authenticated_at: Timestamp,
    browser: Option<BrowserSessionId>,
    reach: Reach,
) -> Result<Login> {
    let login = Login { id: tx.new_id(), user, mfa, authenticated_at, reach };
    store::insert(tx, app.id, &login, expiry(tx.now(), app), browser)?;
    tx.on_commit(|| metrics::counter!("tenantry_logins_total").increment(1));
    Ok(login)
}

/// When a refresh token that is made now expires.
pub fn expiry(now: Timestamp, app: &App) -> Timestamp {
    now.plus(Duration::from_secs(app.profile.refresh_token_ttl.into()))
}

/// The login, unless it was revoked or all of the person's sessions were ended since it began.
pub fn live(tx: &mut Tx<'_>, app: AppId, id: LoginId) -> Result<Login> {
    store::live(tx, app, id)?.filter(|login| login.reach.lasts(tx.now())).ok_or_else(ended)
}

/// Ends a login; false when it had ended before.
pub fn revoke(tx: &mut Tx<'_>, app: AppId, id: LoginId) -> Result<bool> {
    let Some(user_id) = store::revoke(tx, app, id)? else { return Ok(false) };
    emit(tx, app, &LoginEnded { user_id, session_id: id })?;
    Ok(true)
}

/// Ends all of a person's logins: those too that began while this transaction waited for them, which a comparison of
/// times would miss.
pub fn revoke_all(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    store::revoke_all(tx, app, user)
}

/// A person's logins that were not ended one by one.
pub fn of_user(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<Vec<LoginId>> {
    store::of_user(tx, app, user)
}

/// A login and where it began.
#[derive(Clone, Copy, Debug)]
pub struct ListedLogin {
    pub login: Login,
    /// The browser that it began in.
    pub browser: Option<BrowserSessionId>,
}

/// A person's logins that count, newest first, at most 1,000; those too whose tokens have all expired.
pub fn list(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<Vec<ListedLogin>> {
    let now = tx.now();
    Ok(store::list(tx, app, user)?.into_iter().filter(|one| one.login.reach.lasts(now)).collect())
}

/// The browser that a login began in.
pub fn browser_of(tx: &mut Tx<'_>, app: AppId, id: LoginId) -> Result<Option<BrowserSessionId>> {
    store::browser_of(tx, app, id)
}

/// Ends a person's logins through a connection.
pub fn revoke_of_connection(tx: &mut Tx<'_>, app: AppId, user: UserId, connection: ConnectionId) -> Result<()> {
    store::revoke_of_connection(tx, app, user, connection)
}

/// Ends every login that began in a browser.
pub fn revoke_of_browser(tx: &mut Tx<'_>, app: AppId, browser: BrowserSessionId) -> Result<()> {
    store::revoke_of_browser(tx, app, browser)
}

/// The one answer to whatever is wrong with a login, so that nobody learns from it.
pub fn ended() -> Error {
    Error::credential("Session expired. Sign in again.")
}
