//! The end of everything that a person has begun by signing in, and of what could begin it.

use kernel::{AppId, Result, UserId};
use store::Tx;
use tenancy::{
    links::{self, LinkPurpose},
    logins,
};

use super::credentials;
use crate::{browser_sessions, mfa, sessions, tokens::codes};

/// Ends all of a person's logins that are under way or led to tokens: those too that began while this transaction
/// waited for them, which a comparison of times would miss.
pub(super) fn end_all(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    logins::revoke_all(tx, app, user)?;
    sessions::end_all(tx, app, user)?;
    browser_sessions::end_all(tx, app, user)?;
    codes::void_of_user(tx, app, user)
}

/// Voids the mailed links that could begin a login or set a password.
pub(super) fn void_links(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    for purpose in
        [LinkPurpose::PasswordReset, LinkPurpose::Invitation, LinkPurpose::MagicLink, LinkPurpose::PasskeySetup]
    {
        links::revoke(tx, app, purpose, user)?;
    }
    Ok(())
}

/// Takes away whatever opens an account whose address somebody else has replaced: password, factors, links and logins
/// belong to whoever had the former address, and must not be theirs under a name that may become another person's.
pub(crate) fn forget_all_proofs(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    credentials::forget(tx, app, user)?;
    mfa::forget_factors(tx, app, user)?;
    void_links(tx, app, user)?;
    end_all(tx, app, user)
}
