//! The login behind an access token, as far as it may change how its person signs in.

use std::time::Duration;

use kernel::{Code, Error, Result};
use store::Tx;
use tenancy::{
    callers::SignedIn,
    logins::{self, Login},
    members,
};

use crate::mfa;

/// How long ago somebody may have signed in who changes how they sign in.
const FRESH: Duration = Duration::from_secs(10 * 60);

/// The login as it is now.
pub(crate) fn login(tx: &mut Tx<'_>, user: &SignedIn) -> Result<Login> {
    let id = user.claims.sid.parse().map_err(|_| logins::ended())?;
    logins::live(tx, user.app(), id)
}

/// 403 for a login through a workspace's connection: whoever runs that provider could name anybody, and has no say in how people
/// sign in elsewhere.
pub(crate) fn unbounded_login(tx: &mut Tx<'_>, user: &SignedIn) -> Result<Login> {
    let login = login(tx, user)?;
    if login.reach.is_everything() { Ok(login) } else { Err(bounded()) }
}

fn bounded() -> Error {
    Error::new(Code::Forbidden, "Sign in another way than through your workspace’s identity provider first.")
}

/// 403 for such a login while its person belongs to a workspace outside the connection: for what an identity provider may see and say
/// of its own people, but not of anybody else's.
pub(crate) fn homely_login(tx: &mut Tx<'_>, user: &SignedIn) -> Result<Login> {
    let login = login(tx, user)?;
    match login.reach.connection {
        Some(connection) if members::belongs_outside(tx, user.app(), user.user(), connection)? => Err(bounded()),
        _ => Ok(login),
    }
}

/// A login that nothing bounds, and 401 when it began too long ago or has not shown the second factor that the person has by now: a
/// token that somebody else got hold of must not take the account over.
pub(crate) fn fresh_login(tx: &mut Tx<'_>, user: &SignedIn) -> Result<Login> {
    let login = unbounded_login(tx, user)?;
    check_fresh(tx, user, login)
}

/// The same for what a login through a connection may change of its own people.
pub(crate) fn fresh_homely_login(tx: &mut Tx<'_>, user: &SignedIn) -> Result<Login> {
    let login = homely_login(tx, user)?;
    check_fresh(tx, user, login)
}

fn check_fresh(tx: &mut Tx<'_>, user: &SignedIn, login: Login) -> Result<Login> {
    let is_fresh = login.authenticated_at.plus(FRESH) > tx.now();
    if is_fresh && (login.mfa || mfa::find_factor(tx, user.app(), user.user())?.is_none()) {
        return Ok(login);
    }
    Err(Error::new(Code::ReauthenticationRequired, "Sign in again to make this change."))
}
