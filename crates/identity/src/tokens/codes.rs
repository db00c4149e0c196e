//! Authorization codes: made by the hosted login, exchanged once within a minute. A code that is shown again ends the
//! login that it had begun.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use kernel::{AppId, Error, MemberId, Result, Timestamp, UserId};
use store::{FromRow, Row, Tx, args};
use tenancy::{
    App,
    logins::{self, BrowserSessionId, Login, LoginId},
    sessions_not_ended,
};
use vault::{hash_token, same, sha256_bytes};

use super::Granted;
use crate::sessions::Method;

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
}

/// Makes a code, which is in the answer and nowhere else.
pub fn issue(tx: &mut Tx<'_>, app: AppId, new: &NewCode<'_>) -> Result<String> {
    let code = tx.entropy().base62(LENGTH);
    tx.exec(
        "INSERT INTO authorization_codes (digest, app_id, user_id, member_id, redirect_uri, oidc_scope, privileges, \
         nonce, code_challenge, mfa, authenticated_at, expires_at, created_at, method, browser_session_id) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)",
        &args![
            hash_token(&code),
            app,
            new.user,
            new.member,
            new.redirect_uri,
            new.granted.oidc_text(),
            new.granted.privileges_text(),
            new.nonce,
            new.code_challenge,
            new.mfa,
            new.authenticated_at,
            tx.now().plus(LIFETIME),
            tx.now(),
            new.method.name(),
            new.browser
        ],
    )?;
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

struct CodeRow {
    user: UserId,
    member: MemberId,
    redirect_uri: String,
    granted: Granted,
    nonce: Option<String>,
    code_challenge: Option<String>,
    mfa: bool,
    method: Method,
    authenticated_at: Timestamp,
    browser: Option<BrowserSessionId>,
}

impl FromRow for CodeRow {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let (oidc, privileges): (String, Option<String>) = (row.get("oidc_scope")?, row.get("privileges")?);
        let method: Option<String> = row.get("method")?;
        Ok(Self {
            user: row.get("user_id")?,
            member: row.get("member_id")?,
            redirect_uri: row.get("redirect_uri")?,
            granted: Granted::read(&oidc, privileges.as_deref()),
            nonce: row.get("nonce")?,
            code_challenge: row.get("code_challenge")?,
            mfa: row.get("mfa")?,
            method: Method::read(method.as_deref().unwrap_or("password"))?,
            authenticated_at: row.get("authenticated_at")?,
            browser: row.get("browser_session_id")?,
        })
    }
}

/// Uses a code up; of several callers at once exactly one gets a login. `None` when the code was used before: what it
/// had begun is revoked then, which must be committed, so this is not an error. A code that does not fit its client, its
/// redirect or its verifier stays unused: whoever stole it cannot spoil it.
pub fn exchange(tx: &mut Tx<'_>, app: &App, shown: &PresentedCode) -> Result<Option<Exchanged>> {
    let (digest, now) = (hash_token(&shown.code), tx.now());
    let row: Option<CodeRow> = tx.opt(
        concat!(
            "UPDATE authorization_codes SET used_at = $3 WHERE app_id = $1 AND digest = $2 AND used_at IS NULL ",
            "AND expires_at > $3 AND ",
            // The code itself must not outlive the end of all sessions.
            sessions_not_ended!("authorization_codes.user_id", "authorization_codes.created_at"),
            " RETURNING user_id, member_id, redirect_uri, oidc_scope, privileges, nonce, code_challenge, mfa, ",
            "authenticated_at, method, browser_session_id"
        ),
        &args![app.id, digest, now],
    )?;
    let Some(row) = row else {
        let used: Option<(Option<LoginId>,)> = tx.opt(
            "SELECT family_id FROM authorization_codes WHERE app_id = $1 AND digest = $2 AND used_at IS NOT NULL",
            &args![app.id, digest],
        )?;
        let (family,) = used.ok_or_else(refused)?;
        if let Some(family) = family {
            logins::revoke(tx, app.id, family)?;
        }
        return Ok(None);
    };
    // Also for codes from before the app insisted on a challenge.
    let unprotected = app.profile.require_pkce && row.code_challenge.is_none();
    let fits = verifies(row.code_challenge.as_deref(), shown.verifier.as_deref());
    if row.redirect_uri != shown.redirect_uri || unprotected || !fits {
        return Err(refused());
    }
    let login = logins::start(tx, app, row.user, row.mfa, row.authenticated_at, row.browser)?;
    tx.exec(
        "UPDATE authorization_codes SET family_id = $3 WHERE app_id = $1 AND digest = $2",
        &args![app.id, digest, login.id],
    )?;
    let CodeRow { member, granted, nonce, method, .. } = row;
    Ok(Some(Exchanged { login, member, granted, nonce, method }))
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
