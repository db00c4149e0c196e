//! What holds for every token request and scope that somebody may send.

use corpus::{edited, edits, nasty_text, replay, seeds, warped, warps};
use kernel::{Code, Ticker};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Granted, OIDC_SCOPES, ScopeRequest, TokenRequest};

const HOME: &str = env!("CARGO_MANIFEST_DIR");
const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json; charset=utf-8";
const MEMBERS: [&str; 7] =
    ["client_id", "grant_type", "code", "redirect_uri", "code_verifier", "refresh_token", "scope"];

#[test]
fn known_inputs_are_judged_as_before() {
    replay(HOME, "token-forms", |bytes| TokenRequest::read(FORM, bytes).is_ok());
    replay(HOME, "token-bodies", |bytes| TokenRequest::read(JSON, bytes).is_ok());
}

#[test]
fn no_scope_is_expensive() {
    let started = Ticker.now();
    let words: Vec<String> = (0..200_000).map(|word| format!("{word:x}")).collect();
    let asked = ScopeRequest::parse(&words.join(" "));
    assert_eq!(asked.privileges.len(), words.len());
    assert!(asked.check(|_| false).is_err());
    assert!(Ticker.since(started).as_secs() < 10);
}

/// Refused with a reason for the caller, never as our own fault.
fn check(content_type: &str, body: &[u8]) -> Result<(), TestCaseError> {
    if let Err(error) = TokenRequest::read(content_type, body) {
        let expected =
            [Code::MalformedJson, Code::MalformedRequest, Code::ValidationFailed, Code::UnsupportedMediaType];
        prop_assert!(expected.contains(&error.code()), "{:?}", error);
        prop_assert!(error.public().len() < 10_000);
    }
    Ok(())
}

fn scope() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        3 => prop::sample::select(OIDC_SCOPES.to_vec()).prop_map(str::to_owned),
        3 => "[A-C]_(READ|WRITE)",
        1 => nasty_text(),
    ];
    prop::collection::vec(word, 0..8).prop_map(|words| words.join(" "))
}

fn within(one: &[String], other: &[String]) -> bool {
    one.iter().all(|word| other.contains(word))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn changed_requests_are_refused_in_words(
        form in prop::sample::select(seeds(HOME, "token-forms")),
        body in prop::sample::select(seeds(HOME, "token-bodies")),
        edits in edits(),
        warps in warps(),
        content_type in prop_oneof![Just(FORM.to_owned()), Just(JSON.to_owned()), nasty_text()],
    ) {
        check(FORM, &edited(&form, &edits))?;
        check(JSON, &edited(&body, &edits))?;
        check(&content_type, &edited(&form, &edits))?;
        let whole: Value = serde_json::from_slice(&body).expect("JSON");
        check(JSON, warped(&whole, &warps).to_string().as_bytes())?;
    }

    #[test]
    fn a_form_and_a_body_of_the_same_members_are_the_same(values in prop::collection::vec((prop::sample::select(MEMBERS.to_vec()), nasty_text()), 0..8), grant in prop::sample::select(vec!["authorization_code", "refresh_token", "password"])) {
        let mut members: Map<String, Value> = json!({ "client_id": "app_1", "grant_type": grant }).as_object().expect("an object").clone();
        members.extend(values.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))));
        let texts = members.iter().filter_map(|(name, value)| Some((name, value.as_str()?)));
        let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(texts).finish();
        // RFC 6749 §3.2: a parameter without a value counts as left out.
        members.retain(|_, value| value != "");
        let body = TokenRequest::read(JSON, Value::Object(members).to_string().as_bytes());
        prop_assert_eq!(TokenRequest::read(FORM, form.as_bytes()).ok(), body.ok());
    }

    #[test]
    fn a_parameter_given_twice_is_refused(name in prop::sample::select(MEMBERS.to_vec()), one in "[a-z]{1,4}", other in "[a-z]{1,4}", escaped: bool) {
        let again = if escaped { format!("%{:02x}{}", name.as_bytes()[0], &name[1..]) } else { name.to_owned() };
        let form = format!("{name}={one}&client_id=a&grant_type=refresh_token&refresh_token=t&{again}={other}");
        prop_assert!(TokenRequest::read(FORM, form.as_bytes()).is_err());
        let again = if escaped { format!("\\u{:04x}{}", name.as_bytes()[0], &name[1..]) } else { name.to_owned() };
        let body = format!(r#"{{"{name}":"{one}","client_id":"a","grant_type":"refresh_token","refresh_token":"t","{again}":"{other}"}}"#);
        prop_assert!(TokenRequest::read(JSON, body.as_bytes()).is_err());
    }

    #[test]
    fn a_scope_only_ever_narrows(first in scope(), second in scope(), role in prop::collection::vec("[A-C]_(READ|WRITE)", 0..5)) {
        let once = Granted::everything().narrowed(&ScopeRequest::parse(&first));
        let twice = once.narrowed(&ScopeRequest::parse(&second));
        prop_assert!(within(&twice.oidc, &once.oidc) && within(&once.oidc, &OIDC_SCOPES.map(str::to_owned)));
        prop_assert!(within(&twice.of_role(&role), &once.of_role(&role)) && within(&once.of_role(&role), &role));
        prop_assert_eq!(&twice.narrowed(&ScopeRequest::parse(&second)), &twice);
        // What tokens and rows keep is all of it.
        prop_assert_eq!(Granted::read(&twice.oidc_text(), twice.privileges_text().as_deref()), twice);
    }

    #[test]
    fn a_scope_is_its_words_whatever_their_number_or_spacing(text in scope()) {
        let asked = ScopeRequest::parse(&text);
        prop_assert_eq!(&ScopeRequest::parse(&format!(" {text}\t{text} ")), &asked);
        let reversed: Vec<&str> = text.split_whitespace().rev().collect();
        prop_assert_eq!(ScopeRequest::parse(&reversed.join(" ")).privileges.len(), asked.privileges.len());
    }
}
