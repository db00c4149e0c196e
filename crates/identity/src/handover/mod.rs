//! Handover codes: an app's page shows an access token and gets a code, with which the browser enters a hosted portal
//! without the token ever standing in an address. A code works once, within a minute, and only while the login that it
//! was made from is active.

pub mod http;

use std::time::Duration;

use kernel::{AppId, Error, MemberId, Result, UserId};
use store::{FromRow, Row, Tx, args};
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

impl FromRow for Handover {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let (oidc, privileges): (String, Option<String>) = (row.get("oidc_scope")?, row.get("privileges")?);
        Ok(Self {
            user: row.get("user_id")?,
            member: row.get("member_id")?,
            family: row.get("family_id")?,
            granted: Granted::read(&oidc, privileges.as_deref()),
        })
    }
}

/// Makes a code for a signed-in user, which is in the answer and nowhere else.
pub fn issue(tx: &mut Tx<'_>, user: &SignedIn) -> Result<String> {
    let code = tx.entropy().base62(LENGTH);
    let granted = Granted::of(&user.claims);
    tx.exec(
        "INSERT INTO handover_codes (digest, app_id, user_id, member_id, family_id, oidc_scope, privileges, \
         expires_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        &args![
            hash_token(&code),
            user.app(),
            user.user(),
            user.member(),
            user.claims.sid,
            granted.oidc_text(),
            granted.privileges_text(),
            tx.now().plus(LIFETIME),
            tx.now()
        ],
    )?;
    Ok(code)
}

/// Uses a code up; of several callers at once exactly one gets in. 401 also when the login was ended meanwhile, or the
/// membership.
pub fn redeem(tx: &mut Tx<'_>, app: AppId, code: &str) -> Result<Handover> {
    let handover: Option<Handover> = tx.opt(
        "UPDATE handover_codes SET used_at = $3 WHERE app_id = $1 AND digest = $2 AND used_at IS NULL \
         AND expires_at > $3 RETURNING user_id, member_id, family_id, oidc_scope, privileges",
        &args![app, hash_token(code), tx.now()],
    )?;
    let handover = handover.ok_or_else(refused)?;
    let live = standing::of_login(tx, app, handover.family, handover.member)?;
    live.filter(|(login, _)| login.user == handover.user).map(|_| handover).ok_or_else(logins::ended)
}

fn refused() -> Error {
    Error::credential("The code is not valid: it has expired, has already been used, or belongs to another app.")
}
