//! `sdkChallengeToken`: what the server side of a ceremony remembers, signed, for five minutes and one use.

use std::time::Duration;

use ::store::Tx;
use kernel::{AppId, Error, Result, Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use vault::hash_token;

use super::store;
use crate::Identity;

const TYP: &str = "challenge+jwt";
const LIFETIME: Duration = Duration::from_secs(5 * 60);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Registration,
    Authentication,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PasskeyChallenge {
    kind: Kind,
    aid: AppId,
    rp: String,
    jti: String,
    exp: i64,
    state: Value,
}

impl PasskeyChallenge {
    pub(super) fn new(identity: &Identity, kind: Kind, aid: AppId, rp: &str, state: &impl Serialize) -> Result<Self> {
        let db = &identity.tenancy.db;
        let (jti, exp) = (db.entropy().base62(22), db.clock().now().plus(LIFETIME).as_seconds());
        let state = serde_json::to_value(state).map_err(Error::internal)?;
        Ok(Self { kind, aid, rp: rp.to_owned(), jti, exp, state })
    }

    pub(super) fn sign(&self, identity: &Identity) -> Result<String> {
        identity.tenancy.keyring.sign_token(TYP, self)
    }

    pub(super) fn verify(identity: &Identity, kind: Kind, aid: AppId, rp: &str, token: &str) -> Result<Self> {
        let challenge: Self = identity.tenancy.keyring.verify_token(token, TYP).map_err(|_| over())?;
        let fits = challenge.kind == kind && challenge.aid == aid && challenge.rp == rp;
        if fits && challenge.exp > identity.tenancy.db.clock().now().as_seconds() { Ok(challenge) } else { Err(over()) }
    }

    pub(super) fn state<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(&self.state).map_err(Error::internal)
    }

    /// Of several callers at once exactly one succeeds.
    pub(super) fn use_up(&self, tx: &mut Tx<'_>) -> Result<()> {
        let expires_at = Timestamp::from_seconds(self.exp);
        let is_first = store::use_challenge(tx, self.aid, &hash_token(&self.jti), expires_at)?;
        if is_first { Ok(()) } else { Err(over()) }
    }
}

fn over() -> Error {
    Error::credential("The challenge has expired, has already been used, or belongs to another page.")
}
