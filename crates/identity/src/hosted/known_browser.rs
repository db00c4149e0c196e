//! Browsers in which people have signed in before. Failures from elsewhere do not keep these people out of them: a browser
//! has its own attempts. The cookie proves nothing else; it is no way in.

use std::time::Duration;

use kernel::{AppId, UserId};
use serde::{Deserialize, Serialize};

use super::{Guest, cookies::Cookie};
use crate::abuse::{AttemptSource, KnownBrowser, account_name, person_name};

const TYP: &str = "browser+jwt";
pub(super) const LIFETIME: Duration = Duration::from_secs(180 * 24 * 3600);
/// Two names for each of five people.
const NAMES: usize = 10;

/// What the cookie says.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct BrowserClaims {
    aid: AppId,
    jti: String,
    names: Vec<String>,
    exp: i64,
}

fn read(guest: &Guest) -> Option<BrowserClaims> {
    let tenancy = &guest.identity.tenancy;
    let claims: BrowserClaims = tenancy.keyring.verify_token(guest.cookie(Cookie::Known)?, TYP).ok()?;
    (claims.aid == guest.app.id && claims.exp > tenancy.db.clock().now().as_seconds()).then_some(claims)
}

/// Where an attempt to sign in on these pages comes from.
pub(super) fn source(guest: &Guest) -> AttemptSource {
    let browser = read(guest).map(|claims| KnownBrowser { id: claims.jti, names: claims.names });
    AttemptSource { client: guest.client, browser }
}

/// The cookie of a browser in which this person has signed in now, too.
pub(super) fn remember(guest: &Guest, user: UserId, email: &str) -> kernel::Result<http::HeaderValue> {
    let tenancy = &guest.identity.tenancy;
    let known = read(guest);
    let jti = known.as_ref().map_or_else(|| tenancy.db.entropy().base62(22), |known| known.jti.clone());
    let mut names = vec![account_name(email), person_name(user)];
    let others = known.into_iter().flat_map(|known| known.names).filter(|name| !names.contains(name));
    let others: Vec<String> = others.take(NAMES - names.len()).collect();
    names.extend(others);
    let exp = tenancy.db.clock().now().plus(LIFETIME).as_seconds();
    let token = tenancy.keyring.sign_token(TYP, &BrowserClaims { aid: guest.app.id, jti, names, exp })?;
    Ok(guest.set(Cookie::Known, &token, LIFETIME))
}
