//! Handover codes: an app's page shows an access token and gets a code, with which the browser enters a hosted portal
//! without the token ever standing in an address. A code works once, within a minute, and only while the login that it
//! was made from is active.

pub mod http;
mod store;

use std::time::Duration;

use ::store::Tx;
use kernel::{AppId, Error, MemberId, Result, UserId};
use tenancy::{
    callers::SignedIn,
    logins::{self, LoginId},
    standing,
};
use vault::hash_token;

use crate::tokens::Granted;

const LIFETIME: Duration = Duration::from_secs(60);
const LENGTH: usize = 43;

/// Who comes with a code, and what they may do.
#[derive(Clone, Debug)]
pub struct Handover {
    pub user: UserId,
    pub member: MemberId,
    /// The login that continues in the portal: whatever ends it ends that too.
    pub family: LoginId,
    pub granted: Granted,
}

/// Makes a code for a signed-in user, which is in the answer and nowhere else.
pub fn issue(tx: &mut Tx<'_>, user: &SignedIn) -> Result<String> {
    let code = tx.entropy().base62(LENGTH);
    store::insert(tx, user, &hash_token(&code), tx.now().plus(LIFETIME))?;
    Ok(code)
}

/// The app of a code that was made here and has not expired, used up or not.
pub fn app_of(tx: &mut Tx<'_>, code: &str) -> Result<Option<AppId>> {
    store::app_of(tx, &hash_token(code))
}

/// Uses a code up; of several callers at once exactly one gets in. 401 also when the login was ended meanwhile, or the
/// membership.
pub fn redeem(tx: &mut Tx<'_>, app: AppId, code: &str) -> Result<Handover> {
    let handover = store::redeem(tx, app, &hash_token(code))?.ok_or_else(refused)?;
    let live = standing::of_login(tx, app, handover.family, handover.member)?;
    live.filter(|(login, _)| login.user == handover.user).map(|_| handover).ok_or_else(logins::ended)
}

fn refused() -> Error {
    Error::credential("The code is not valid: it has expired, has already been used, or belongs to another app.")
}
