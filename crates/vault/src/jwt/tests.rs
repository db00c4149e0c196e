use std::sync::{Arc, LazyLock};

use jsonwebtoken as other;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::rsa::test_key;

const SECRET: &[u8; 32] = b"0123456789abcdef0123456789abcdef";

static HMAC: LazyLock<HmacKey> = LazyLock::new(|| HmacKey::new(SECRET).expect("long enough"));
static RSA: LazyLock<Arc<PrivateKey>> = LazyLock::new(test_key);
static HS256: LazyLock<String> = LazyLock::new(|| sign_hs256(&HMAC, "k1", "JWT", &claims()).expect("signs"));
static PS256: LazyLock<String> = LazyLock::new(|| sign_ps256(&RSA, "k1", "at+jwt", &claims()).expect("signs"));

fn claims() -> Value {
    json!({ "sub": "user_1", "exp": 2_000_000_000, "scope": "A B" })
}

fn hs256(token: &str) -> Result<Value, InvalidToken> {
    verify_hs256(token, "JWT", |kid| (kid == "k1").then_some(&*HMAC))
}

fn ps256(token: &str) -> Result<Value, InvalidToken> {
    verify_ps256(token, "at+jwt", |kid| (kid == "k1").then_some(RSA.public()))
}

/// A token with this header and a genuine HS256 signature over it.
fn with_header(header: &str) -> String {
    let input =
        format!("{}.{}", BASE64_URL_SAFE_NO_PAD.encode(header), BASE64_URL_SAFE_NO_PAD.encode(claims().to_string()));
    let signature = BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(&HMAC.0, input.as_bytes()));
    format!("{input}.{signature}")
}

#[test]
fn tokens_round_trip() {
    assert_eq!(hs256(&HS256), Ok(claims()));
    assert_eq!(ps256(&PS256), Ok(claims()));
    let header = Unverified::parse(&PS256).expect("well formed").header;
    assert_eq!(header, Header { alg: Algorithm::PS256, kid: "k1".into(), typ: "at+jwt".into(), crit: NoExtensions });
}

#[test]
fn a_parsed_key_survives_storage() {
    let stored = RSA.to_pkcs8().expect("encodes");
    let again = PrivateKey::from_pkcs8(&stored).expect("parses");
    assert_eq!(ps256(&sign_ps256(&again, "k1", "at+jwt", &claims()).expect("signs")), Ok(claims()));
}

#[test]
fn another_type_algorithm_or_key_is_refused() {
    assert_eq!(verify_hs256::<Value, _>(&HS256, "refresh+jwt", |_| Some(&*HMAC)), Err(InvalidToken));
    assert_eq!(verify_hs256::<Value, &HmacKey>(&HS256, "JWT", |_| None), Err(InvalidToken));
    assert_eq!(verify_ps256::<Value, _>(&HS256, "JWT", |_| Some(RSA.public())), Err(InvalidToken));
    assert_eq!(verify_hs256::<Value, _>(&PS256, "at+jwt", |_| Some(&*HMAC)), Err(InvalidToken));
    let stranger = HmacKey::new(&[1; 32]).expect("long enough");
    assert_eq!(verify_hs256::<Value, _>(&HS256, "JWT", |_| Some(&stranger)), Err(InvalidToken));
}

#[test]
fn the_public_key_is_no_hmac_secret() {
    let public = other::DecodingKey::from_rsa_components(&modulus(), &exponent()).expect("a key");
    let confused = HmacKey::new(RSA.public().modulus()).expect("long enough");
    let forged = sign_hs256(&confused, "k1", "at+jwt", &claims()).expect("signs");
    assert_eq!(ps256(&forged), Err(InvalidToken));
    assert!(other::decode::<Value>(&forged, &public, &rules(other::Algorithm::PS256)).is_err());
}

#[test]
fn headers_are_read_strictly() {
    assert_eq!(hs256(&with_header(r#"{"alg":"HS256","kid":"k1","typ":"JWT"}"#)), Ok(claims()));
    assert_eq!(
        hs256(&with_header(r#"{"alg":"HS256","kid":"k1","typ":"JWT","jku":"https://evil.test"}"#)),
        Ok(claims())
    );
    for header in [
        r#"{"alg":"none","kid":"k1","typ":"JWT"}"#,
        r#"{"alg":"hs256","kid":"k1","typ":"JWT"}"#,
        r#"{"alg":"HS512","kid":"k1","typ":"JWT"}"#,
        r#"{"alg":"HS256","typ":"JWT"}"#,
        r#"{"alg":"HS256","kid":"k1"}"#,
        r#"{"alg":"HS256","kid":"k1","typ":"jwt"}"#,
        r#"{"alg":"HS256","alg":"HS256","kid":"k1","typ":"JWT"}"#,
        r#"{"alg":"HS256","kid":"k1","kid":"k1","typ":"JWT"}"#,
        r#"{"alg":"HS256","kid":"k1","typ":"JWT","crit":["b64"],"b64":false}"#,
        r#"{"alg":"HS256","kid":"k1","typ":"JWT","crit":[]}"#,
        r#"{"alg":"HS256","kid":"k1","typ":"JWT","crit":null}"#,
        r#"["HS256","k1","JWT"]"#,
        r#"{"alg":"HS256","kid":"k1","typ":"JWT"} "x""#,
        "",
    ] {
        assert_eq!(hs256(&with_header(header)), Err(InvalidToken), "{header}");
    }
}

#[test]
fn only_three_canonical_parts_of_bounded_length_are_a_token() {
    let [header, payload, signature] = HS256.split('.').collect::<Vec<_>>()[..] else { panic!("three parts") };
    for token in [
        String::new(),
        "..".into(),
        format!("{header}.{payload}"),
        format!("{header}.{payload}."),
        format!("{}.", *HS256),
        format!(".{}", *HS256),
        format!("{}.{signature}", *HS256),
        format!("{}=", *HS256),
        format!(" {}", *HS256),
        format!("{}\n", *HS256),
    ] {
        assert_eq!(hs256(&token), Err(InvalidToken), "{token}");
    }
    let long = json!({ "sub": "x".repeat(MAX_LENGTH) });
    assert!(sign_hs256(&HMAC, "k1", "JWT", &long).is_err());
}

#[test]
fn a_refusal_is_an_invalid_credential_and_a_short_secret_no_key() {
    assert_eq!(Error::from(InvalidToken).code(), Code::InvalidCredential);
    assert!(HmacKey::new(&[0; 31]).is_err());
}

/// What an independent library is told: the same algorithm, and no opinion on time.
fn rules(algorithm: other::Algorithm) -> other::Validation {
    let mut rules = other::Validation::new(algorithm);
    rules.validate_exp = false;
    rules.validate_aud = false;
    rules.required_spec_claims.clear();
    rules
}

fn modulus() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(RSA.public().modulus())
}

fn exponent() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(RSA.public().exponent())
}

fn other_header(algorithm: other::Algorithm, typ: &str) -> other::Header {
    let mut header = other::Header::new(algorithm);
    header.kid = Some("k1".into());
    header.typ = Some(typ.into());
    header
}

#[test]
fn an_independent_library_agrees_on_hs256() {
    let read =
        other::decode::<Value>(&*HS256, &other::DecodingKey::from_secret(SECRET), &rules(other::Algorithm::HS256));
    assert_eq!(read.expect("verifies").claims, claims());
    let key = other::EncodingKey::from_secret(SECRET);
    let theirs = other::encode(&other_header(other::Algorithm::HS256, "JWT"), &claims(), &key).expect("signs");
    assert_eq!(hs256(&theirs), Ok(claims()));
}

#[test]
fn an_independent_library_agrees_on_ps256() {
    let public = other::DecodingKey::from_rsa_components(&modulus(), &exponent()).expect("a key");
    let read = other::decode::<Value>(&*PS256, &public, &rules(other::Algorithm::PS256)).expect("verifies");
    assert_eq!((read.claims, read.header.kid.as_deref()), (claims(), Some("k1")));

    let pem = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        base64::prelude::BASE64_STANDARD.encode(RSA.to_pkcs8().expect("encodes").expose())
    );
    let key = other::EncodingKey::from_rsa_pem(pem.as_bytes()).expect("a key");
    let theirs = other::encode(&other_header(other::Algorithm::PS256, "at+jwt"), &claims(), &key).expect("signs");
    assert_eq!(ps256(&theirs), Ok(claims()));
}

proptest! {
    #[test]
    fn arbitrary_text_is_refused_without_a_panic(text in any::<String>(), parts in "[A-Za-z0-9_-]{0,20}\\.[A-Za-z0-9_-]{0,20}\\.[A-Za-z0-9_-]{0,20}") {
        prop_assert_eq!(hs256(&text), Err(InvalidToken));
        prop_assert_eq!(hs256(&parts), Err(InvalidToken));
        prop_assert_eq!(ps256(&parts), Err(InvalidToken));
    }

    #[test]
    fn a_signed_header_of_arbitrary_text_never_panics(header in any::<String>()) {
        prop_assert_eq!(hs256(&with_header(&header)), Err(InvalidToken));
    }

    #[test]
    fn no_changed_character_verifies(at in any::<prop::sample::Index>(), replacement in "[A-Za-z0-9_.=-]") {
        for (token, verify) in [(&*HS256, hs256 as fn(&str) -> _), (&*PS256, ps256)] {
            let at = at.index(token.len());
            let mut changed = token.clone();
            changed.replace_range(at..=at, &replacement);
            prop_assert_eq!(verify(&changed).is_ok(), changed == *token);
        }
    }
}
