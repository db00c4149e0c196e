//! What a browser sends after a WebAuthn ceremony: an answer that is accepted has the recorded challenge and signature.
#![no_main]

use std::sync::LazyLock;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use identity::passkeys::RelyingParty;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use webauthn_rs::prelude::{DiscoverableAuthentication, Passkey, PasskeyRegistration};

const CORPUS_PAGE: &str = "http://localhost:3000";

static PARTY: LazyLock<RelyingParty> = LazyLock::new(|| RelyingParty::new("Shop", CORPUS_PAGE).expect("a party"));
static REGISTRATION: LazyLock<PasskeyRegistration> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../crates/identity/tests/corpus/asked-to-register.json")).expect("recorded")
});
static AUTHENTICATION: LazyLock<DiscoverableAuthentication> = LazyLock::new(|| {
    let asked = include_str!("../../crates/identity/tests/corpus/asked-to-authenticate.json");
    serde_json::from_str(asked).expect("recorded")
});
static PASSKEY: LazyLock<Passkey> = LazyLock::new(|| {
    let genuine = include_str!("../../crates/identity/tests/corpus/registrations/accepted/genuine");
    PARTY.registered(&REGISTRATION, serde_json::from_str(genuine).expect("JSON")).expect("recorded")
});
static GENUINE: LazyLock<Value> = LazyLock::new(|| {
    let genuine = include_str!("../../crates/identity/tests/corpus/assertions/accepted/genuine");
    serde_json::from_str(genuine).expect("JSON")
});

fuzz_target!(|bytes: &[u8]| {
    // Either the whole answer, or (after a byte below 4) the content of one of its binary members.
    let credential = match bytes {
        [member @ 0..4, content @ ..] => with_member(*member, content),
        whole => serde_json::from_slice(whole).unwrap_or_default(),
    };
    let _ = PARTY.registered(&REGISTRATION, credential.clone());
    let Ok(shown) = PARTY.shown(credential.clone()) else { return };
    if PARTY.authenticated(AUTHENTICATION.clone(), &shown, &PASSKEY).is_ok() {
        let text = |credential: &Value| {
            let signature = credential["response"]["signature"].as_str().unwrap_or_default();
            signature.trim_end_matches('=').replace('+', "-").replace('/', "_")
        };
        assert_eq!(text(&credential), text(&GENUINE), "a signature that was not made");
    }
});

fn with_member(member: u8, content: &[u8]) -> Value {
    let mut credential = GENUINE.clone();
    let registration = include_str!("../../crates/identity/tests/corpus/registrations/accepted/genuine");
    if member < 2 {
        credential = serde_json::from_str(registration).expect("JSON");
    }
    let name = ["attestationObject", "clientDataJSON", "authenticatorData", "signature"][usize::from(member)];
    credential["response"][name] = BASE64_URL_SAFE_NO_PAD.encode(content).into();
    credential
}
