//! The end of everything that a person has begun by signing in, and of what could begin it.
//!
//! The person is held first: whoever begins to sign in, or goes on in a browser or from another workspace, holds them too. Then in
//! the direction in which a sign-in goes on: sessions, browsers, codes, logins. Whoever takes a step holds what they come
//! from, so that ending it waits for them, and what they made of it is seen and ended after that.

use kernel::{AppId, MemberId, Result, UserId};
use store::Tx;
use tenancy::{
    links::{self, LinkPurpose},
    logins::{self, LoginId},
    members, people,
};

use super::credentials;
use crate::{
    browser_sessions, mfa, sessions,
    tokens::{codes, refresh_tokens},
};

/// Ends all of a person's logins that are under way or led to tokens: those too that began while this transaction
/// waited for them, which a comparison of times would miss.
pub(super) fn end_all(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    people::hold(tx, app, user)?;
    sessions::end_all(tx, app, user)?;
    browser_sessions::end_all(tx, app, user)?;
    codes::void_of_user(tx, app, user)?;
    logins::revoke_all(tx, app, user)
}

/// The same but for one login and the browser that it began in.
pub(super) fn end_others(tx: &mut Tx<'_>, app: AppId, user: UserId, kept: LoginId) -> Result<()> {
    people::hold(tx, app, user)?;
    let browser = logins::browser_of(tx, app, kept)?;
    sessions::end_all(tx, app, user)?;
    browser_sessions::end_others(tx, app, user, browser)?;
    codes::void_of_user(tx, app, user)?;
    for login in logins::of_user(tx, app, user)?.into_iter().filter(|login| *login != kept) {
        logins::revoke(tx, app, login)?;
    }
    Ok(())
}

/// Voids the mailed links that could begin a login, set a password or change the address.
pub(crate) fn void_links(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    for purpose in [
        LinkPurpose::PasswordReset,
        LinkPurpose::Invitation,
        LinkPurpose::MagicLink,
        LinkPurpose::PasskeySetup,
        LinkPurpose::AddressChange,
    ] {
        links::revoke(tx, app, purpose, user)?;
    }
    Ok(())
}

/// Ends the sign-ins of one membership, which this transaction goes on to disable or remove: whoever belongs nowhere else has
/// no other; of somebody who does, the logins with tokens of this membership and the browsers that chose it, so that none
/// of them counts again when the membership does.
pub fn end_membership(tx: &mut Tx<'_>, app: AppId, user: UserId, member: MemberId) -> Result<()> {
    links::revoke_invitations_of(tx, app, user, member)?;
    people::hold(tx, app, user)?;
    if members::associations(tx, app, user)?.len() < 2 {
        return end_all(tx, app, user);
    }
    // A login under way may lead to the other workspaces: it goes on once this is over.
    sessions::hold_all(tx, app, user)?;
    browser_sessions::end_of_member(tx, app, user, member)?;
    codes::void_of_member(tx, app, user, member)?;
    let logins = logins::of_user(tx, app, user)?;
    for login in refresh_tokens::with_tokens_of(tx, app, &logins, member)? {
        logins::revoke(tx, app, login)?;
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
