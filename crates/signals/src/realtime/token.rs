//! The token that opens streams: signed, for an hour, and worth only as much as the membership and the login it names.

use std::time::Duration;

use kernel::{AppId, Clock, Error, Result, TenantId, Timestamp, UserId};
use serde::{Deserialize, Serialize};
use tenancy::{callers::SignedIn, standing::SignedInAs};
use vault::Keyring;

const TYP: &str = "realtime+jwt";
pub(super) const LIFETIME: Duration = Duration::from_secs(3_600);
/// We never issue longer ones.
const LONGEST: usize = 2_048;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StreamClaims {
    pub(super) aid: AppId,
    pub(super) tid: TenantId,
    pub(super) sub: UserId,
    /// The login.
    pub(super) sid: String,
    pub(super) exp: i64,
}

impl StreamClaims {
    pub(super) fn of(user: &SignedIn, now: Timestamp) -> Self {
        let exp = now.plus(LIFETIME).as_seconds();
        Self { aid: user.app(), tid: user.tenant(), sub: user.user(), sid: user.claims.sid.clone(), exp }
    }

    pub(super) fn sign(&self, keyring: &Keyring) -> Result<String> {
        keyring.sign_token(TYP, self)
    }

    /// 401 for whatever is not a token of ours that is still good.
    pub(super) fn verify(token: &str, keyring: &Keyring, clock: &Clock) -> Result<Self> {
        let genuine = if token.len() > LONGEST { None } else { keyring.verify_token::<Self>(token, TYP).ok() };
        let claims = genuine.ok_or_else(refused)?;
        if Timestamp::from_seconds(claims.exp) <= clock.now() {
            return Err(refused());
        }
        Ok(claims)
    }

    pub(super) fn signed_in_as(&self) -> SignedInAs<'_> {
        SignedInAs { app: self.aid, tenant: self.tid, user: self.sub, login: &self.sid }
    }
}

/// The one answer to whatever is wrong with a token, so that nobody learns from it.
pub(super) fn refused() -> Error {
    Error::credential("The stream token is not valid. Get another one from POST /realtime/authorize.")
}
