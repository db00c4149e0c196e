//! What holds for every token, digest and PEM text that somebody may send.

use std::sync::{Arc, LazyLock};

use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use corpus::{any_json, edited, edits, nasty_text, nested, replay, seeds, warped, warps};
use kernel::{Entropy, Secret, Ticker};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::{
    Keyring, MasterKey, PrivateKey, is_certificate, is_signing_key,
    jwt::{HmacKey, InvalidToken, MAX_LENGTH, Unverified, sign_hs256, sign_ps256, verify_hs256, verify_ps256},
    passwords::{DigestAlgorithm, Imported},
    rsa::test_key,
};

const HOME: &str = env!("CARGO_MANIFEST_DIR");
/// The key of the corpus's genuine tokens, whose `kid` is k1.
const SECRET: &[u8; 32] = b"0123456789abcdef0123456789abcdef";

static HMAC: LazyLock<HmacKey> = LazyLock::new(|| HmacKey::new(SECRET).expect("long enough"));
static PLAIN: LazyLock<hmac::Key> = LazyLock::new(|| hmac::Key::new(hmac::HMAC_SHA256, SECRET));
static RSA: LazyLock<Arc<PrivateKey>> = LazyLock::new(test_key);

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn hs256(token: &str) -> Result<Value, InvalidToken> {
    verify_hs256(token, "JWT", |kid| (kid == "k1").then_some(&*HMAC))
}

fn ps256(token: &str) -> Result<Value, InvalidToken> {
    verify_ps256(token, "at+jwt", |kid| (kid == "k1").then_some(RSA.public()))
}

/// A genuine HS256 signature over whatever stands in the two other parts.
fn signed(header: &str, payload: &str) -> String {
    let input = format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(header), BASE64_URL_SAFE_NO_PAD.encode(payload));
    format!("{input}.{}", BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(&PLAIN, input.as_bytes())))
}

fn claims() -> impl Strategy<Value = Value> {
    let members = prop::collection::vec((nasty_text(), any_json()), 0..6);
    members.prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>()))
}

/// What the header of a genuine token must say.
fn is_plain_header(header: &Value) -> bool {
    let text = |name: &str| header.get(name).and_then(Value::as_str);
    text("alg") == Some("HS256")
        && text("kid") == Some("k1")
        && text("typ") == Some("JWT")
        && header.get("crit").is_none()
}

#[test]
fn known_inputs_are_judged_as_before() {
    replay(HOME, "jwt", |bytes| hs256(&text(bytes)).is_ok());
    replay(HOME, "certificates", |bytes| is_certificate(&text(bytes)));
    replay(HOME, "signing-keys", |bytes| is_signing_key(&Secret::new(text(bytes))));
    replay(HOME, "digests", |bytes| imported(&text(bytes)).is_some_and(|digest| digest.check().is_ok()));
}

/// The longest and the most deeply nested tokens that are looked at cost next to nothing.
#[test]
fn no_token_is_expensive() {
    let started = Ticker.now();
    let header = r#"{"alg":"HS256","kid":"k1","typ":"JWT"}"#;
    for payload in [format!(r#"{{"a":{}}}"#, nested(5_000)), format!(r#"{{"a":{}1}}"#, " ".repeat(11_000))] {
        let token = signed(header, &payload);
        assert!(token.len() < MAX_LENGTH);
        assert_eq!(hs256(&token).is_ok(), payload.contains('1'));
    }
    assert_eq!(hs256(&"a.".repeat(MAX_LENGTH)), Err(InvalidToken));
    assert_eq!(hs256(&"[".repeat(1 << 20)), Err(InvalidToken));
    assert!(Ticker.since(started).as_secs() < 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn what_is_signed_is_what_is_read(claims in claims(), kid in nasty_text(), typ in nasty_text()) {
        let token = sign_hs256(&HMAC, &kid, &typ, &claims).expect("signs");
        prop_assert_eq!(verify_hs256(&token, &typ, |shown| (shown == kid).then_some(&*HMAC)), Ok(claims.clone()));
        prop_assert_eq!(verify_hs256::<Value, _>(&token, &format!("{typ}x"), |_| Some(&*HMAC)), Err(InvalidToken));
        prop_assert_eq!(verify_ps256::<Value, _>(&token, &typ, |_| Some(RSA.public())), Err(InvalidToken));
    }

    #[test]
    fn no_changed_token_verifies(seed in prop::sample::select(seeds(HOME, "jwt")), edits in edits()) {
        let changed = text(&edited(&seed, &edits));
        prop_assert_eq!(hs256(&changed).is_ok(), changed.as_bytes() == seed, "{}", changed);
        prop_assert_eq!(ps256(&changed), Err(InvalidToken));
    }

    /// Even our own signature makes no token of a header that says anything else.
    #[test]
    fn only_the_plain_header_is_believed(warps in warps(), extra in nasty_text()) {
        let header = warped(&json!({ "alg": "HS256", "kid": "k1", "typ": "JWT", "jwk": { "kty": "oct", "k": "" } }), &warps);
        prop_assert_eq!(hs256(&signed(&header.to_string(), "{}")).is_ok(), is_plain_header(&header), "{}", header);
        for header in [extra.clone(), format!("{header}{extra}x")] {
            prop_assert_eq!(hs256(&signed(&header, "{}")), Err(InvalidToken), "{}", header);
        }
    }

    #[test]
    fn signed_claims_are_an_object_or_nothing(claims in any_json(), bytes in nasty_text()) {
        let header = r#"{"alg":"HS256","kid":"k1","typ":"JWT"}"#;
        prop_assert_eq!(hs256(&signed(header, &claims.to_string())).ok(), claims.is_object().then_some(claims));
        prop_assert_eq!(hs256(&signed(header, &bytes)).is_ok(), bytes == "{}");
    }

    #[test]
    fn arbitrary_bytes_are_no_token(bytes in prop::collection::vec(any::<u8>(), 0..200), parts in "[A-Za-z0-9_-]{0,60}\\.[A-Za-z0-9_-]{0,60}\\.[A-Za-z0-9_-]{0,60}") {
        for shown in [&text(&bytes), &parts] {
            prop_assert_eq!(hs256(shown), Err(InvalidToken));
            prop_assert_eq!(ps256(shown), Err(InvalidToken));
            if let Ok(token) = Unverified::parse(shown) {
                prop_assert!(shown.starts_with(&BASE64_URL_SAFE_NO_PAD.encode("{")[..1]), "{}", token.kid());
            }
        }
    }

    #[test]
    fn no_changed_certificate_or_key_brings_the_parser_down(
        certificate in prop::sample::select(seeds(HOME, "certificates")),
        key in prop::sample::select(seeds(HOME, "signing-keys")),
        edits in edits(),
    ) {
        for pem in [edited(&certificate, &edits), edited(&key, &edits)] {
            let pem = text(&pem);
            prop_assert!(!is_certificate(&pem) || pem.contains("CERTIFICATE"));
            is_signing_key(&Secret::new(pem));
        }
    }
}

proptest! {
    // An RSA signature costs a millisecond.
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_changed_user_token_verifies(claims in claims(), edits in edits()) {
        let token = sign_ps256(&RSA, "k1", "at+jwt", &claims).expect("signs");
        prop_assert_eq!(ps256(&token), Ok(claims));
        let changed = text(&edited(token.as_bytes(), &edits));
        prop_assert_eq!(ps256(&changed).is_ok(), changed == token, "{}", changed);
        prop_assert_eq!(hs256(&changed), Err(InvalidToken));
    }

    #[test]
    fn no_changed_service_token_verifies(claims in claims(), edits in edits()) {
        let token = KEYRING.sign_token("session+jwt", &claims).expect("signs");
        prop_assert_eq!(KEYRING.verify_token(&token, "session+jwt"), Ok(claims));
        prop_assert_eq!(KEYRING.verify_token::<Value>(&token, "challenge+jwt"), Err(InvalidToken));
        let changed = text(&edited(token.as_bytes(), &edits));
        prop_assert_eq!(KEYRING.verify_token::<Value>(&changed, "session+jwt").is_ok(), changed == token, "{}", changed);
    }
}

static KEYRING: LazyLock<Keyring> = LazyLock::new(|| {
    let entropy = Entropy::seeded_for_tests(7);
    Keyring::new(&MasterKey::generate(&entropy), None, entropy)
});

/// `BCRYPT $2b$…`, as the corpus has them.
fn imported(line: &str) -> Option<Imported> {
    let (algorithm, value) = line.split_once(' ')?;
    let algorithm: DigestAlgorithm = serde_json::from_value(algorithm.into()).ok()?;
    Some(Imported { algorithm, value: value.into(), pepper: None })
}

/// Cheap enough to be verified a few thousand times.
fn is_cheap(digest: &Imported) -> bool {
    match digest.algorithm {
        DigestAlgorithm::Bcrypt => digest.value.get(4..6) == Some("04"),
        DigestAlgorithm::Argon2i => digest.value.contains("m=256,t=2,p=1"),
        _ => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// The corpus has digests of `password` only; one that was changed fits it no more, unless only its spelling changed.
    #[test]
    fn no_changed_digest_brings_the_check_down(seed in prop::sample::select(seeds(HOME, "digests")), edits in edits(), junk in nasty_text()) {
        let changed = text(&edited(&seed, &edits));
        for line in [&changed, &format!("BCRYPT {junk}"), &format!("ARGON2I {junk}"), &format!("SHA1 {junk}"), &format!("BCRYPT $2b$04${junk}")] {
            let Some(digest) = imported(line) else { continue };
            let accepted = digest.check().is_ok();
            if accepted && is_cheap(&digest) {
                prop_assert!(!digest.verify("Password"), "{}", line);
            }
            if !accepted && digest.value.len() < 200 && !matches!(digest.algorithm, DigestAlgorithm::Argon2i | DigestAlgorithm::Bcrypt) {
                prop_assert!(!digest.verify("password"), "{} was refused, and yet fits", line);
            }
            let kept = Imported::from_json(&digest.to_json().expect("JSON")).expect("reads");
            prop_assert_eq!(kept, digest);
        }
    }
}
