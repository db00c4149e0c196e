//! Authorization codes: made by the hosted login, exchanged once within a minute. A code that is shown again ends the
//! login that it had begun.

use std::time::Duration;

use ::store::Tx;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use kernel::{AppId, Error, MemberId, Result, Timestamp, UserId};
use tenancy::{
    App,
    logins::{self, BrowserSessionId, Login, Reach},
};
use vault::{hash_token, same, sha256_bytes};

use super::{
    Granted,
    store::{self, CodeRow},
};
use crate::proof::Method;

const LIFETIME: Duration = Duration::from_secs(60);
const LENGTH: usize = 43;

/// What a code stands for.
#[derive(Clone, Debug)]
pub struct NewCode<'a> {
    pub user: UserId,
    pub member: MemberId,
    pub redirect_uri: &'a str,
    pub granted: &'a Granted,
    pub nonce: Option<&'a str>,
    /// PKCE, S256.
    pub code_challenge: Option<&'a str>,
    pub mfa: bool,
    pub method: Method,
    pub authenticated_at: Timestamp,
    /// The browser that it was made in.
    pub browser: Option<BrowserSessionId>,
    pub reach: Reach,
}

/// Makes a code, which is in the answer and nowhere else.
pub fn issue(tx: &mut Tx<'_>, app: AppId, new: &NewCode<'_>) -> Result<String> {
    let code = tx.entropy().base62(LENGTH);
    store::insert_code(tx, app, &hash_token(&code), new, tx.now().plus(LIFETIME))?;
    Ok(code)
}

/// A code as a client shows it.
#[derive(Clone, Debug)]
pub struct PresentedCode {
    pub code: String,
    pub redirect_uri: String,
    pub verifier: Option<String>,
}

/// What a good code began.
#[derive(Clone, Debug)]
pub struct Exchanged {
    pub login: Login,
    pub member: MemberId,
    pub granted: Granted,
    pub nonce: Option<String>,
    pub method: Method,
}

/// Uses a code up; of several callers at once exactly one gets a login. `None` when the code was used before: what it
/// had begun is revoked then, which must be committed, so this is not an error. A code that does not fit its client, its
/// redirect or its verifier stays unused: whoever stole it cannot spoil it.
pub fn exchange(tx: &mut Tx<'_>, app: &App, shown: &PresentedCode) -> Result<Option<Exchanged>> {
    let digest = hash_token(&shown.code);
    let Some(row) = store::use_code(tx, app.id, &digest)? else {
        if let Some(login) = store::login_of_used_code(tx, app.id, &digest)?.ok_or_else(refused)? {
            logins::revoke(tx, app.id, login)?;
        }
        return Ok(None);
    };
    // Also for codes from before the app insisted on a challenge.
    let unprotected = app.profile.require_pkce && row.code_challenge.is_none();
    let fits = verifies(row.code_challenge.as_deref(), shown.verifier.as_deref());
    if row.redirect_uri != shown.redirect_uri || unprotected || !fits {
        return Err(refused());
    }
    let reach = Reach { connection: row.connection, ends_at: row.ends_at };
    let login = logins::start(tx, app, row.user, row.mfa, row.authenticated_at, row.browser, reach)?;
    store::note_login(tx, app.id, &digest, login.id)?;
    let CodeRow { member, granted, nonce, method, .. } = row;
    Ok(Some(Exchanged { login, member, granted, nonce, method }))
}

/// Voids the codes that are still out of a browser that is signed out.
pub(crate) fn void_of_browser(tx: &mut Tx<'_>, app: AppId, browser: BrowserSessionId) -> Result<()> {
    store::void_codes_of_browser(tx, app, browser)
}

/// The same for one membership.
pub(crate) fn void_of_member(tx: &mut Tx<'_>, app: AppId, user: UserId, member: MemberId) -> Result<()> {
    store::void_codes_of_member(tx, app, user, member)
}

/// Voids all of a person's codes that are still out.
pub(crate) fn void_of_user(tx: &mut Tx<'_>, app: AppId, user: UserId) -> Result<()> {
    store::void_codes_of_user(tx, app, user)
}

/// RFC 7636 §4.6. A verifier for a code without a challenge is refused too: somebody took the challenge away.
fn verifies(challenge: Option<&str>, verifier: Option<&str>) -> bool {
    match (challenge, verifier) {
        (None, None) => true,
        (Some(challenge), Some(verifier)) => {
            let digest = BASE64_URL_SAFE_NO_PAD.encode(sha256_bytes(verifier.as_bytes()));
            same(digest.as_bytes(), challenge.as_bytes())
        }
        _ => false,
    }
}

/// The one answer to whatever is wrong with a code.
pub fn refused() -> Error {
    Error::credential("The code is not valid: it has expired, has already been used, or belongs to another request.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_fits_its_challenge_only() {
        // RFC 7636, appendix B.
        let (challenge, verifier) =
            ("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert!(verifies(Some(challenge), Some(verifier)));
        assert!(!verifies(Some(challenge), Some("dBjftJeZ4CVP")));
        assert!(!verifies(Some(challenge), Some(challenge)), "the plain method is not offered");
        assert!(!verifies(Some(challenge), None));
        assert!(!verifies(None, Some(verifier)));
        assert!(verifies(None, None));
    }
}
