//! What a node knows of the signing keys at one moment: immutable, shared by all requests, replaced as a whole.
//!
//! Time alone moves a key through its life (published, active, retired), so that nodes agree without talking.

use std::sync::Arc;

use kernel::Timestamp;

use super::{SigningKey, SigningKeyId};
use crate::{
    jwks::{Jwk, Jwks},
    rsa::{PrivateKey, PublicKey},
};

/// A key of the database with its private half opened and parsed.
#[derive(Clone)]
pub(super) struct LoadedKey {
    pub(super) about: SigningKey,
    pub(super) private: Arc<PrivateKey>,
}

pub(super) struct Snapshot {
    /// Unretired, in the order in which they become active.
    keys: Vec<LoadedKey>,
    pub(super) jwks: Arc<Jwks>,
}

impl Snapshot {
    pub(super) fn new(mut keys: Vec<LoadedKey>, now: Timestamp) -> Self {
        keys.retain(|key| !key.about.is_retired(now));
        keys.sort_by_key(|key| (key.about.active_from, key.about.kid));
        let jwks = keys.iter().map(|key| Jwk::new(key.about.kid.to_string(), key.private.public())).collect();
        Self { keys, jwks: Arc::new(Jwks::render(jwks)) }
    }

    /// The key that signs now: the one that became active last. A node whose clock is a little behind the one that
    /// made the very first key uses it early rather than not at all.
    pub(super) fn active(&self, now: Timestamp) -> Option<&LoadedKey> {
        self.keys.iter().rfind(|key| key.about.active_from <= now).or(self.keys.first())
    }

    /// Any published key verifies, active or not yet: another node's clock may be ahead.
    pub(super) fn verifier(&self, kid: &str, now: Timestamp) -> Option<&PublicKey> {
        let key = self.get(kid.parse().ok()?)?;
        (!key.about.is_retired(now)).then(|| key.private.public())
    }

    pub(super) fn get(&self, kid: SigningKeyId) -> Option<&LoadedKey> {
        self.keys.iter().find(|key| key.about.kid == kid)
    }

    /// Whether a key has retired since this was made and is still in `jwks`.
    pub(super) fn is_outdated(&self, now: Timestamp) -> bool {
        self.keys.iter().any(|key| key.about.is_retired(now))
    }

    pub(super) fn without_retired(&self, now: Timestamp) -> Self {
        Self::new(self.keys.clone(), now)
    }

    /// With `new` published and every other key given its end.
    pub(super) fn rotated(&self, new: LoadedKey, others_retire_at: Timestamp, now: Timestamp) -> Self {
        let mut keys = self.keys.clone();
        keys.retain(|key| key.about.kid != new.about.kid);
        for key in &mut keys {
            key.about.retires_at.get_or_insert(others_retire_at);
        }
        keys.push(new);
        Self::new(keys, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rsa::test_key;

    const fn at(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    fn key(kid: u128, active_from: i64, retires_at: Option<i64>) -> LoadedKey {
        let about = SigningKey {
            kid: SigningKeyId::from_u128(kid),
            created_at: at(0),
            active_from: at(active_from),
            retires_at: retires_at.map(at),
        };
        LoadedKey { about, private: test_key() }
    }

    fn active(snapshot: &Snapshot, now: i64) -> Option<u128> {
        snapshot.active(at(now)).map(|key| key.about.kid.as_u128())
    }

    fn published(snapshot: &Snapshot) -> usize {
        let set: serde_json::Value = serde_json::from_slice(&snapshot.jwks.body).expect("JSON");
        set["keys"].as_array().expect("a list").len()
    }

    #[test]
    fn the_key_that_became_active_last_signs() {
        let snapshot = Snapshot::new(vec![key(2, 600, None), key(1, 0, Some(1000))], at(0));
        assert_eq!(active(&snapshot, 599), Some(1));
        assert_eq!(active(&snapshot, 600), Some(2));
        assert_eq!(active(&Snapshot::new(vec![], at(0)), 0), None);
    }

    #[test]
    fn the_first_key_signs_even_for_a_clock_that_is_behind() {
        assert_eq!(active(&Snapshot::new(vec![key(1, 10, None)], at(9)), 9), Some(1));
    }

    #[test]
    fn published_keys_verify_until_they_retire() {
        let (old, new) = (key(1, 0, Some(1000)), key(2, 600, None));
        let kid = old.about.kid.to_string();
        let snapshot = Snapshot::new(vec![old, new.clone()], at(0));
        assert!(snapshot.verifier(&new.about.kid.to_string(), at(1)).is_some());
        assert!(snapshot.verifier(&kid, at(999)).is_some());
        assert!(snapshot.verifier(&kid, at(1000)).is_none());
        assert!(snapshot.verifier("sigkey_", at(1)).is_none());
    }

    #[test]
    fn a_retired_key_leaves_the_published_set() {
        let snapshot = Snapshot::new(vec![key(1, 0, Some(1000)), key(2, 600, None)], at(0));
        assert_eq!((published(&snapshot), snapshot.is_outdated(at(999))), (2, false));
        assert!(snapshot.is_outdated(at(1000)));
        let later = snapshot.without_retired(at(1000));
        assert_eq!((published(&later), later.is_outdated(at(1000))), (1, false));
        assert_ne!(later.jwks.etag, snapshot.jwks.etag);
    }

    #[test]
    fn an_independent_library_verifies_our_tokens_with_our_jwks() {
        use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, jwk::JwkSet};

        let (key, claims) = (key(1, 0, None), serde_json::json!({ "sub": "user_1" }));
        let kid = key.about.kid.to_string();
        let token = crate::jwt::sign_ps256(&key.private, &kid, "at+jwt", &claims).expect("signs");

        let set: JwkSet = serde_json::from_slice(&Snapshot::new(vec![key], at(0)).jwks.body).expect("a JWK set");
        let published = DecodingKey::from_jwk(set.find(&kid).expect("our key")).expect("an RSA key");
        let mut rules = Validation::new(Algorithm::PS256);
        rules.validate_exp = false;
        rules.required_spec_claims.clear();
        let read = decode::<serde_json::Value>(&token, &published, &rules).expect("verifies");
        assert_eq!(read.claims, claims);
    }

    #[test]
    fn a_rotation_ends_the_others_once() {
        let snapshot = Snapshot::new(vec![key(1, 0, Some(700)), key(2, 100, None)], at(200));
        let rotated = snapshot.rotated(key(3, 800, None), at(1800), at(200));
        let ends: Vec<_> = rotated.keys.iter().map(|key| key.about.retires_at).collect();
        assert_eq!(ends, [Some(at(700)), Some(at(1800)), None]);
    }
}
