//! Handover codes: an app's page shows an access token and gets a code, with which the browser enters a hosted portal
//! without the token ever standing in an address. A code works once, within a minute, and only while the login that it
//! was made from is active.

pub mod http;
mod store;

use std::{sync::Arc, time::Duration};

use ::store::Tx;
use kernel::{AppId, Error, MemberId, Result, UserId};
use tenancy::{
    App,
    callers::{AccessClaims, SignedIn},
    logins::{self, LoginId},
    standing,
};
use vault::hash_token;
use web::Scope;

use crate::tokens::{Granted, check_way_in, refresh_tokens};

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

/// Whoever continues a login in a portal, as of now: what an access token of theirs would say. `privileges` are those that their
/// token had, separated by spaces; `None` is all of the role's. `None` once the login or the membership has ended, or when the
/// time to refresh the login is over.
pub fn continued(
    tx: &mut Tx<'_>,
    app: &App,
    (login, member): (LoginId, MemberId),
    privileges: Option<&str>,
    scope: &Arc<Scope>,
) -> Result<Option<SignedIn>> {
    let Some((login, standing)) = standing::of_login(tx, app.id, login, member)? else { return Ok(None) };
    if check_way_in(&standing, login.reach).is_err() {
        return Ok(None);
    }
    // An access token alone gets others until then.
    let first_end = logins::expiry(login.authenticated_at, app);
    let refreshed_until = refresh_tokens::ends(tx, app.id, &[login.id])?.remove(&login.id);
    let ends_at = login.reach.bounds(refreshed_until.map_or(first_end, |end| end.max(first_end)));
    if ends_at <= tx.now() {
        return Ok(None);
    }
    let granted = |key: &&String| privileges.is_none_or(|granted| granted.split(' ').any(|one| one == key.as_str()));
    let held: Vec<String> = standing.privileges.iter().filter(granted).cloned().collect();
    let claims = AccessClaims {
        iss: String::new(),
        sub: standing.user,
        aid: app.id,
        tid: standing.tenant,
        scope: held.join(" "),
        scope_narrowed: privileges.is_some(),
        oidc_scope: String::new(),
        iat: login.authenticated_at.as_seconds(),
        exp: ends_at.as_seconds(),
        sid: login.id.to_string(),
    };
    let membership = (&standing).into();
    Ok(Some(SignedIn { claims: Arc::new(claims), membership, privileges: held, scope: Arc::clone(scope) }))
}

fn refused() -> Error {
    Error::credential("The code is not valid: it has expired, has already been used, or belongs to another app.")
}
