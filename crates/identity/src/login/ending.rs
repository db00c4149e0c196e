//! The end of everything that a person has begun by signing in.

use kernel::{AppId, Result, UserId};
use store::Tx;
use tenancy::logins;

use crate::{browser_sessions, sessions, tokens::codes};

/// Ends all of a person's logins that are under way or led to tokens: those too that began while this transaction
/// waited for them, which a comparison of times would miss.
pub(super) fn end_all(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    logins::revoke_all(tx, app, user)?;
    sessions::end_all(tx, app, user)?;
    browser_sessions::end_all(tx, app, user)?;
    codes::void_of_user(tx, app, user)
}
