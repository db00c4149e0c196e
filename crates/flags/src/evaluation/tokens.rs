//! Access tokens in a context. A signature that was checked is remembered for a minute, by the token's digest, while the
//! signing keys stay the same; who the user is and what the workspace has is read each time.

use std::sync::Arc;
use std::time::Duration;

use kernel::{AppId, Result, Tick, Ticker};
use sha2::{Digest as _, Sha256};
use spine::Cached;
use tenancy::{
    Tenancy,
    callers::{ACCESS_TOKEN, AccessClaims, GRACE, check_issue},
    standing,
};
use vault::Jwks;

use super::live;
use crate::rules::Live;

const REMEMBERED: Duration = Duration::from_secs(60);
const CAPACITY: usize = 50_000;
/// Longer ones are nobody's; digesting them would only cost.
const MAX_TOKEN: usize = 16 * 1024;

#[derive(Clone)]
pub(crate) struct Tokens {
    tenancy: Tenancy,
    verified: Cached<[u8; 32], Verified>,
}

#[derive(Clone)]
struct Verified {
    claims: Arc<AccessClaims>,
    at: Tick,
    /// As they were published then: a revoked key verifies nothing.
    keys: Arc<Jwks>,
}

impl Tokens {
    pub(crate) fn new(tenancy: Tenancy) -> Self {
        Self { tenancy, verified: Cached::new(CAPACITY) }
    }

    /// What is known about the token's user and workspace; `None` when the token is not valid here.
    pub(crate) async fn live(&self, app: AppId, token: &str) -> Result<Option<Live>> {
        let Some(claims) = self.claims(token) else { return Ok(None) };
        if claims.aid != app || check_issue(&self.tenancy, &claims, GRACE).is_err() {
            return Ok(None);
        }
        let known = standing::signed_in_detailed(&self.tenancy.db, claims.signed_in_as()).await?;
        Ok(known.map(live::attributes))
    }

    fn claims(&self, token: &str) -> Option<Arc<AccessClaims>> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let keys = self.tenancy.signing_keys.jwks();
        let digest: [u8; 32] = Sha256::digest(token).into();
        if let Some(known) = self.verified.get(&digest)
            && Ticker.since(known.at) < REMEMBERED
            && Arc::ptr_eq(&known.keys, &keys)
        {
            return Some(known.claims);
        }
        let claims: Arc<AccessClaims> = Arc::new(self.tenancy.signing_keys.verify(token, ACCESS_TOKEN).ok()?);
        let fill = self.verified.begin_fill(digest);
        self.verified.finish_fill(fill, Verified { claims: Arc::clone(&claims), at: Ticker.now(), keys });
        Some(claims)
    }
}
