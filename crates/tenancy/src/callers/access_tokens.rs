//! Access tokens as this service checks them itself. A signature that was checked is remembered for a minute, by the
//! token's digest and while the signing keys stay the same, since checking one costs more than the rest of a small
//! request. Expiry is judged each time, and so are login and membership, by whoever asks for the claims.

use std::{sync::Arc, time::Duration};

use kernel::{AppId, Clock, Result, TenantId, Tick, Ticker, Timestamp, UserId};
use serde::Deserialize;
use spine::Cached;
use vault::{Jwks, SigningKeys, sha256_bytes};

use super::user::refused;
use crate::standing::SignedInAs;

/// The `typ` of access tokens (RFC 9068).
pub const ACCESS_TOKEN: &str = "at+jwt";

/// How long after its expiry an access token can still be refreshed, and decides flags: a page that just woke up must not
/// change its face.
pub const GRACE: Duration = Duration::from_secs(5 * 60);

const REMEMBERED: Duration = Duration::from_secs(60);
const CAPACITY: usize = 50_000;
/// We never issue longer ones, and digesting them would only cost.
const MAX_TOKEN: usize = 16 * 1024;

/// The claims of an access token that this service itself relies on.
#[derive(Clone, Debug, Deserialize)]
pub struct AccessClaims {
    pub iss: String,
    pub sub: UserId,
    pub aid: AppId,
    pub tid: TenantId,
    /// Privileges, separated by spaces.
    #[serde(default)]
    pub scope: String,
    /// True when `scope` holds only what was asked for, and not all that the role grants.
    #[serde(default)]
    pub scope_narrowed: bool,
    /// The granted OIDC scopes, separated by spaces.
    #[serde(default)]
    pub oidc_scope: String,
    pub iat: i64,
    pub exp: i64,
    /// The login that the token belongs to: once that is revoked, so is the token.
    pub sid: String,
}

impl AccessClaims {
    /// Whom the token speaks of.
    pub fn signed_in_as(&self) -> SignedInAs<'_> {
        SignedInAs { app: self.aid, tenant: self.tid, user: self.sub, login: &self.sid }
    }
}

/// Checks access tokens. Cheap to clone; clones share their memory.
#[derive(Clone)]
pub struct AccessTokens {
    signing_keys: SigningKeys,
    issuer: Arc<str>,
    clock: Clock,
    verified: Cached<[u8; 32], Verified>,
}

#[derive(Clone)]
struct Verified {
    claims: Arc<AccessClaims>,
    at: Tick,
    /// As they were published then: a revoked key verifies nothing.
    keys: Arc<Jwks>,
}

impl AccessTokens {
    pub(crate) fn new(signing_keys: SigningKeys, issuer: Arc<str>, clock: Clock) -> Self {
        Self { signing_keys, issuer, clock, verified: Cached::new(CAPACITY) }
    }

    /// The claims of a token that this service signed, whether it has expired or not; `None` for anything else.
    pub fn verify(&self, token: &str) -> Option<Arc<AccessClaims>> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let keys = self.signing_keys.jwks();
        let digest = sha256_bytes(token.as_bytes());
        if let Some(known) = self.verified.get(&digest)
            && Ticker.since(known.at) < REMEMBERED
            && Arc::ptr_eq(&known.keys, &keys)
        {
            return Some(known.claims);
        }
        let claims: Arc<AccessClaims> = Arc::new(self.signing_keys.verify(token, ACCESS_TOKEN).ok()?);
        if !self.is_over(&claims, Duration::ZERO) {
            let fill = self.verified.begin_fill(digest);
            self.verified.finish_fill(fill, Verified { claims: Arc::clone(&claims), at: Ticker.now(), keys });
        }
        Some(claims)
    }

    /// 401 for claims of another service, and for those that expired `grace` ago or longer.
    pub fn check(&self, claims: &AccessClaims, grace: Duration) -> Result<()> {
        if claims.iss != *self.issuer {
            return Err(refused("The access token was issued by another service."));
        }
        if self.is_over(claims, grace) {
            return Err(refused("The access token has expired."));
        }
        Ok(())
    }

    fn is_over(&self, claims: &AccessClaims, grace: Duration) -> bool {
        Timestamp::from_seconds(claims.exp).plus(grace) <= self.clock.now()
    }
}
