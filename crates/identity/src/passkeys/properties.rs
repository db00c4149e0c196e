//! What holds for every answer that a browser, or somebody who pretends to be one, may send after a ceremony. The good
//! answers and what was asked for were recorded with a software authenticator.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use corpus::{edited, edits, nested, replay, seeds, warped, warps};
use kernel::Ticker;
use proptest::prelude::*;
use serde_json::{Value, json};
use webauthn_rs::prelude::Passkey;

use super::{RelyingParty, credential_id};

const HOME: &str = env!("CARGO_MANIFEST_DIR");
const REGISTRATION: &str = include_str!("../../tests/corpus/asked-to-register.json");
const AUTHENTICATION: &str = include_str!("../../tests/corpus/asked-to-authenticate.json");

fn party() -> RelyingParty {
    RelyingParty::new("Shop", "http://localhost:3000").expect("a relying party")
}

fn register(credential: Value) -> Option<Passkey> {
    party().registered(&serde_json::from_str(REGISTRATION).expect("recorded"), credential).ok()
}

fn passkey() -> Passkey {
    register(seed("registrations")).expect("recorded")
}

/// The user and the credential, when all is genuine.
fn authenticate(passkey: &Passkey, credential: Value) -> Option<(String, String)> {
    let party = party();
    let shown = party.shown(credential).ok()?;
    party.authenticated(serde_json::from_str(AUTHENTICATION).expect("recorded"), &shown, passkey).ok()?;
    Some((shown.user.to_string(), shown.id))
}

fn json_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

fn seed(parser: &str) -> Value {
    json_of(&seeds(HOME, parser)[0])
}

/// The bytes of a member in base64url, however it is spelled.
fn bytes_of(credential: &Value, member: &str) -> Vec<u8> {
    let text = credential.pointer(member).and_then(Value::as_str).unwrap_or_default();
    let plain = text.trim_end_matches('=').replace('+', "-").replace('/', "_");
    BASE64_URL_SAFE_NO_PAD.decode(plain).unwrap_or_default()
}

/// Origins are compared as browsers compare them: `Http://loCalhost:3000/` is the same place.
fn origin_of(origin: &Value) -> Option<String> {
    Some(url::Url::parse(origin.as_str()?).ok()?.origin().ascii_serialization())
}

/// The members whose binary content is edited.
const BINARY: [&str; 5] = ["attestationObject", "clientDataJSON", "authenticatorData", "signature", "userHandle"];

fn with_edited_member(credential: &Value, member: &str, edits: &[corpus::Edit]) -> Value {
    let mut changed = credential.clone();
    let pointer = format!("/response/{member}");
    if let Some(place) = changed.pointer_mut(&pointer) {
        *place = BASE64_URL_SAFE_NO_PAD.encode(edited(&bytes_of(credential, &pointer), edits)).into();
    }
    changed
}

/// An accepted registration answers this challenge, on this page, and is known by the id that was shown.
fn check_registration(credential: &Value) -> Result<(), TestCaseError> {
    let Some(passkey) = register(credential.clone()) else { return Ok(()) };
    let client = json_of(&bytes_of(credential, "/response/clientDataJSON"));
    prop_assert_eq!(&client["type"], "webauthn.create");
    prop_assert_eq!(&client["challenge"], &json_of(REGISTRATION.as_bytes())["rs"]["challenge"]);
    prop_assert_eq!(origin_of(&client["origin"]), origin_of(&"http://localhost:3000".into()));
    let attested = bytes_of(credential, "/response/attestationObject");
    prop_assert!(attested.windows(passkey.cred_id().len()).any(|part| part == &passkey.cred_id()[..]));
    Ok(())
}

/// An accepted login has the recorded signature over the recorded data; only the spelling around it may differ.
fn check_authentication(passkey: &Passkey, genuine: &Value, credential: &Value) -> Result<(), TestCaseError> {
    let Some((_, id)) = authenticate(passkey, credential.clone()) else { return Ok(()) };
    for member in ["/response/clientDataJSON", "/response/authenticatorData", "/response/signature"] {
        prop_assert_eq!(bytes_of(credential, member), bytes_of(genuine, member), "{}", member);
    }
    prop_assert_eq!(id, credential_id(passkey.cred_id()), "another credential's id");
    Ok(())
}

#[test]
fn known_inputs_are_judged_as_before() {
    let passkey = passkey();
    replay(HOME, "registrations", |bytes| register(json_of(bytes)).is_some());
    replay(HOME, "assertions", |bytes| authenticate(&passkey, json_of(bytes)).is_some());
}

#[test]
fn no_attestation_is_expensive() {
    let started = Ticker.now();
    let mut credential = seed("registrations");
    // CBOR: lists within lists, maps within maps, tags of tags, and lengths that are not there.
    for part in [
        b"\x81".as_slice(),
        b"\xa1\x00",
        b"\xc0",
        b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x5b\x00\x00\x00\x7f\xff\xff\xff\xff",
        b"\x9f",
    ] {
        credential["response"]["attestationObject"] = BASE64_URL_SAFE_NO_PAD.encode(part.repeat(100_000)).into();
        assert!(register(credential.clone()).is_none());
    }
    credential["response"]["clientDataJSON"] = BASE64_URL_SAFE_NO_PAD.encode(nested(200_000)).into();
    assert!(register(credential).is_none());
    assert!(Ticker.since(started).as_secs() < 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_changed_registration_answers_something_else(edits in edits(), warps in warps(), member in prop::sample::select(BINARY.to_vec())) {
        let genuine = seed("registrations");
        check_registration(&json_of(&edited(genuine.to_string().as_bytes(), &edits)))?;
        check_registration(&warped(&genuine, &warps))?;
        check_registration(&with_edited_member(&genuine, member, &edits))?;
    }

    #[test]
    fn arbitrary_cbor_and_client_data_are_refused(attestation in prop::collection::vec(any::<u8>(), 0..300), client in prop::collection::vec(any::<u8>(), 0..100)) {
        let mut credential = seed("registrations");
        credential["response"]["attestationObject"] = BASE64_URL_SAFE_NO_PAD.encode(&attestation).into();
        prop_assert!(register(credential.clone()).is_none());
        credential["response"]["clientDataJSON"] = BASE64_URL_SAFE_NO_PAD.encode(&client).into();
        prop_assert!(register(credential).is_none());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_changed_assertion_signs_in(edits in edits(), warps in warps(), member in prop::sample::select(BINARY.to_vec())) {
        let (passkey, genuine) = (passkey(), seed("assertions"));
        check_authentication(&passkey, &genuine, &json_of(&edited(genuine.to_string().as_bytes(), &edits)))?;
        check_authentication(&passkey, &genuine, &warped(&genuine, &warps))?;
        check_authentication(&passkey, &genuine, &with_edited_member(&genuine, member, &edits))?;
        // Signed data that is not the recorded one.
        let mut other = genuine.clone();
        other["response"]["authenticatorData"] = json!(BASE64_URL_SAFE_NO_PAD.encode(edited(b"\x49\x96", &edits)));
        prop_assert_eq!(authenticate(&passkey, other), None);
    }
}
