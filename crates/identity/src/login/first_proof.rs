//! The first time that somebody proves the address of an account. Until then it may have been opened by nothing but the word of
//! a connection, whose provider can name any address.

use ::store::Tx;
use kernel::{AppId, Result, UserId};
use tenancy::{Tenancy, people};

use super::credentials;
use crate::mfa::{self, store::passkeys};

/// Takes the person's factor away if somebody else than the owner of the mailbox could have set it up. To be called before the
/// address counts as proven, and before the mail leads to a password or a passkey.
pub(crate) fn forget_factor(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, user: UserId) -> Result<()> {
    people::hold(tx, app, user)?;
    if is_unproven(tx, app, user)? { mfa::forget_factor(tx, tenancy, app, user) } else { Ok(()) }
}

/// Whether nothing but a connection's word has opened the account so far.
pub(crate) fn is_unproven(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<bool> {
    let is_theirs = people::has_proven_address(tx, app, user)?
        || credentials::has_password(tx, app, user)?
        || passkeys::has_one(tx, app, user)?;
    Ok(!is_theirs)
}
