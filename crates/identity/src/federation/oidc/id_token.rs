//! What an ID token must say (OpenID Connect Core §3.1.3.7). Pure; its signature was verified before.

use std::time::Duration;

use kernel::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use vault::same;

/// Clocks differ.
const SKEW: Duration = Duration::from_secs(60);
const LONGEST_SUBJECT: usize = 1_024;

/// What is expected of the token of one login.
pub(super) struct Expectation<'a> {
    /// `None` where only the provider's keys are known.
    pub(super) issuer: Option<&'a str>,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
    pub(super) now: Timestamp,
    /// When the login began at the earliest.
    pub(super) begun_at: Timestamp,
    pub(super) authenticated_since: Option<Timestamp>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct IdTokenClaims {
    pub(super) iss: String,
    pub(super) sub: String,
    aud: Audience,
    azp: Option<String>,
    exp: i64,
    iat: i64,
    nonce: Option<String>,
    auth_time: Option<i64>,
    #[serde(flatten)]
    pub(super) others: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl IdTokenClaims {
    /// Why the token is refused, if it is.
    pub(super) fn problem(&self, expected: &Expectation<'_>) -> Option<&'static str> {
        let before = |at: i64, limit: Timestamp| Timestamp::from_seconds(at) < limit;
        let (soon, past) = (expected.now.plus(SKEW), expected.now.minus(SKEW));
        let checks = [
            (expected.issuer.is_none_or(|issuer| issuer == self.iss), "it names another issuer"),
            (self.is_for(expected.client_id), "it is for another client"),
            (
                self.nonce.as_deref().is_some_and(|nonce| same(nonce.as_bytes(), expected.nonce.as_bytes())),
                "nonce is of another login",
            ),
            (in_range(self.exp) && !before(self.exp, past.plus(Duration::from_secs(1))), "it has expired"),
            (in_range(self.iat) && before(self.iat, soon), "it was issued in the future"),
            (
                in_range(self.iat) && !before(self.iat, expected.begun_at.minus(SKEW)),
                "it was issued before the login began",
            ),
            (self.is_recent(expected.authenticated_since), "auth_time is too long ago, or missing"),
            (!self.sub.is_empty() && self.sub.len() <= LONGEST_SUBJECT, "sub is missing or too long"),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map(|(_, problem)| problem)
    }

    fn is_for(&self, client_id: &str) -> bool {
        let azp_fits = self.azp.as_deref().is_none_or(|azp| azp == client_id);
        azp_fits
            && match &self.aud {
                Audience::One(one) => one == client_id,
                // Others may have the token too: it has to say that it was asked for here.
                Audience::Several(list) => {
                    list.iter().any(|one| one == client_id) && (list.len() == 1 || self.azp.is_some())
                }
            }
    }

    fn is_recent(&self, since: Option<Timestamp>) -> bool {
        let Some(since) = since else { return true };
        self.auth_time.is_some_and(|at| in_range(at) && Timestamp::from_seconds(at) >= since.minus(SKEW))
    }
}

/// Seconds that a timestamp can hold.
fn in_range(seconds: i64) -> bool {
    (0..=253_402_300_799).contains(&seconds)
}

/// Whether the methods that a provider names are two factors (RFC 8176).
pub(super) fn has_two_factors(amr: Option<&Value>) -> bool {
    const KINDS: [&str; 8] = ["pwd", "otp", "hwk", "swk", "fpt", "face", "pin", "sms"];
    let Some(Value::Array(methods)) = amr else { return false };
    let named = |wanted: &str| methods.iter().any(|method| method.as_str() == Some(wanted));
    named("mfa") || KINDS.iter().filter(|kind| named(kind)).count() >= 2
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn judged(change: &Value) -> Option<&'static str> {
        let mut claims = json!({
            "iss": "https://idp.example", "sub": "1", "aud": "client", "exp": NOW + 300, "iat": NOW, "nonce": "n",
        });
        for (name, value) in change.as_object().expect("an object") {
            claims[name] = value.clone();
        }
        let claims: IdTokenClaims = serde_json::from_value(claims).expect("claims");
        claims.problem(&Expectation {
            issuer: Some("https://idp.example"),
            client_id: "client",
            nonce: "n",
            now: Timestamp::from_seconds(NOW),
            begun_at: Timestamp::from_seconds(NOW - 30),
            authenticated_since: change
                .get("since")
                .map(|since| Timestamp::from_seconds(since.as_i64().expect("seconds"))),
        })
    }

    #[test]
    fn every_edge_of_every_claim() {
        for good in [
            json!({}),
            json!({ "aud": ["client"] }),
            json!({ "aud": ["client", "other"], "azp": "client" }),
            json!({ "exp": NOW - 59 }),
            json!({ "iat": NOW + 59 }),
            json!({ "iat": NOW - 90 }),
            json!({ "since": NOW, "auth_time": NOW - 60 }),
        ] {
            assert_eq!(judged(&good), None, "{good}");
        }
        for bad in [
            json!({ "iss": "https://idp.example/" }),
            json!({ "aud": "other" }),
            json!({ "aud": [] }),
            json!({ "aud": ["client", "other"] }),
            json!({ "aud": ["client", "other"], "azp": "other" }),
            json!({ "azp": "other" }),
            json!({ "nonce": "m" }),
            json!({ "nonce": null }),
            json!({ "exp": NOW - 60 }),
            json!({ "exp": i64::MAX }),
            json!({ "iat": NOW + 60 }),
            json!({ "iat": NOW - 91 }),
            json!({ "iat": i64::MIN }),
            json!({ "since": NOW }),
            json!({ "since": NOW, "auth_time": NOW - 61 }),
            json!({ "sub": "" }),
            json!({ "sub": "x".repeat(1_025) }),
        ] {
            assert!(judged(&bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn two_factors_are_two_kinds_or_the_word() {
        for (amr, two) in [
            (json!(["mfa"]), true),
            (json!(["pwd", "otp"]), true),
            (json!(["pwd", "pwd"]), false),
            (json!(["pwd", "geo"]), false),
            (json!("mfa"), false),
            (json!([["mfa"]]), false),
        ] {
            assert_eq!(has_two_factors(Some(&amr)), two, "{amr}");
        }
        assert!(!has_two_factors(None));
    }
}
