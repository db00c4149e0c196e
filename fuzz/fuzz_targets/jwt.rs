//! Tokens: nothing verifies but what the corpus's key signed, and a genuine signature makes no token of a bad header.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use std::sync::LazyLock;
use vault::jwt::{HmacKey, Unverified, sign_hs256, verify_hs256};

/// As in the tests of `vault`, whose corpus is the seed.
static KEY: LazyLock<HmacKey> =
    LazyLock::new(|| HmacKey::new(b"0123456789abcdef0123456789abcdef").expect("long enough"));
static STRANGER: LazyLock<HmacKey> = LazyLock::new(|| HmacKey::new(&[7; 32]).expect("long enough"));

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(token) = Unverified::parse(text) {
        assert!(token.verify_hs256::<Value>(&token.header().typ, &STRANGER).is_err());
    }
    if let Ok(claims) = verify_hs256::<Value, _>(text, "JWT", |kid| (kid == "k1").then_some(&*KEY)) {
        assert!(claims.is_object());
    }
    // The same bytes as claims come back as they were signed.
    if let Ok(claims @ Value::Object(_)) = serde_json::from_slice::<Value>(bytes)
        && let Ok(token) = sign_hs256(&KEY, text, "JWT", &claims)
    {
        assert_eq!(verify_hs256::<Value, _>(&token, "JWT", |kid| (kid == text).then_some(&*KEY)), Ok(claims));
    }
});
