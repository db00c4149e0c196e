//! Forms and token requests: decoded as others decode them, and the same request as the same members in JSON.
#![no_main]

use identity::tokens::{Granted, ScopeRequest, TokenRequest};
use kernel::Code;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

fuzz_target!(|bytes: &[u8]| {
    let form = TokenRequest::read("application/x-www-form-urlencoded", bytes);
    let body = TokenRequest::read("application/json", bytes);
    for error in [form.as_ref().err(), body.as_ref().err()].into_iter().flatten() {
        let told = matches!(error.code(), Code::MalformedJson | Code::MalformedRequest | Code::ValidationFailed);
        assert!(told, "{error:?}");
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let others: Vec<(String, String)> = url::form_urlencoded::parse(bytes).into_owned().collect();
    if let Ok(fields) = web::form_fields(text) {
        assert_eq!(fields, others);
    }
    if let Ok(form) = form {
        let members: Map<String, Value> = others
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name, value.into()))
            .collect();
        let same = TokenRequest::read("application/json", Value::Object(members).to_string().as_bytes());
        assert_eq!(same.expect("the same members"), form);
    }
    let once = Granted::everything().narrowed(&ScopeRequest::parse(text));
    assert_eq!(once.narrowed(&ScopeRequest::parse(text)), once);
    assert_eq!(Granted::read(&once.oidc_text(), once.privileges_text().as_deref()), once);
});
