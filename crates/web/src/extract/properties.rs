//! What holds for every body, form, query and `X-Forwarded-For` that somebody may send.

use std::net::IpAddr;

use corpus::{any_json, edited, edits, nasty_text, nested, replay, seeds, warped, warps};
use http::{HeaderMap, HeaderValue};
use kernel::{Code, Result, Ticker, Timestamp, Words};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{
    Validate, form_fields, from_json,
    params::{Place, from_texts},
};
use crate::{Patch, TrustedProxies};

const HOME: &str = env!("CARGO_MANIFEST_DIR");

/// One of everything that bodies have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Order {
    name: Words,
    count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
    #[serde(default)]
    gift: bool,
    #[serde(default)]
    lines: Vec<Line>,
    #[serde(default, skip_serializing_if = "Patch::is_missing", serialize_with = "value_or_null")]
    note: Patch<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
    #[serde(flatten)]
    way: Way,
}

fn value_or_null<S: Serializer>(patch: &Patch<String>, serializer: S) -> Result<S::Ok, S::Error> {
    match patch {
        Patch::Value(text) => serializer.serialize_some(text),
        Patch::Missing | Patch::Null => serializer.serialize_none(),
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Line {
    product: String,
    size: Size,
    tags: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Way {
    carrier: Option<String>,
    zone: Option<i64>,
}

impl Validate for Order {}

fn order() -> Value {
    json!({
        "name": "Ada", "count": 3, "weight": 1.5, "gift": true, "note": "x", "due": "2026-01-31T09:30:00.000Z",
        "lines": [{ "product": "tea", "size": "small", "tags": ["a", "b"] }, { "product": "", "size": "large", "tags": [] }],
        "metadata": { "a": [1, 2.5, null, { "b": "c" }] }, "carrier": "post", "zone": -4,
    })
}

fn read(bytes: &[u8]) -> Result<Order> {
    from_json(bytes)
}

/// Refused in the caller's words, or accepted and then the same whoever reads it again.
fn check_body(bytes: &[u8]) -> Result<(), TestCaseError> {
    match read(bytes) {
        Ok(order) => {
            let written = serde_json::to_vec(&order).expect("JSON");
            prop_assert_eq!(read(&written).ok(), Some(order.clone()), "{}", String::from_utf8_lossy(&written));
            prop_assert!(!String::from_utf8_lossy(&written).contains("\\u0000"));
            // Plain serde may refuse what we take (`3.0` for an integer), but never reads something else from it.
            if let Ok(plain) = serde_json::from_slice::<Order>(bytes) {
                // Free-form members have a test of their own: a whole float among them becomes an integer.
                prop_assert_eq!(Order { metadata: None, ..plain }, Order { metadata: None, ..order });
            }
        }
        Err(error) => {
            prop_assert!(matches!(error.code(), Code::MalformedJson | Code::ValidationFailed), "{:?}", error);
            prop_assert!(error.details().len() <= 101);
            prop_assert!(error.details().iter().all(|problem| !problem.field.is_empty()));
        }
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Search {
    text: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    exact: bool,
    page: Option<i32>,
}

impl Validate for Search {}

fn search(bytes: &[u8]) -> Option<Search> {
    from_texts(std::str::from_utf8(bytes).ok()?, Place::Form).ok()
}

fn proxies() -> TrustedProxies {
    TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()])
}

const PROXY: &str = "10.0.0.1";

fn client(peer: &str, lines: &[u8]) -> IpAddr {
    let mut headers = HeaderMap::new();
    for value in lines.split(|byte| *byte == b'\n').filter_map(|line| HeaderValue::from_bytes(line).ok()) {
        headers.append("x-forwarded-for", value);
    }
    proxies().client(peer.parse().unwrap(), &headers)
}

#[test]
fn known_inputs_are_judged_as_before() {
    replay(HOME, "bodies", |bytes| read(bytes).is_ok());
    replay(HOME, "forms", |bytes| search(bytes).is_some());
    replay(HOME, "forwarded", |bytes| client(PROXY, bytes) != PROXY.parse::<IpAddr>().unwrap());
}

/// Neither depth nor width costs more than its length.
#[test]
fn no_body_is_expensive() {
    let started = Ticker.now();
    let with = |metadata: &str| format!(r#"{{"name":"a","count":1,"metadata":{{"a":{metadata}}}}}"#);
    assert!(read(with(&nested(60)).as_bytes()).is_ok());
    for body in [
        with(&nested(65)),
        nested(500_000),
        "{\"a\":".repeat(200_000),
        with(&format!("[{}0", "0,".repeat(500_000))),
        format!(r#"{{"name":"a","count":1,"lines":[{}0]}}"#, "[],".repeat(300_000)),
    ] {
        assert!(read(body.as_bytes()).is_err());
    }
    let many: Vec<String> = (0..100_000).map(|name| format!("\"{name}\":0")).collect();
    assert!(read(with(&format!("{{{}}}", many.join(","))).as_bytes()).is_ok());
    let repeated = "tags=a&".repeat(150_000);
    assert!(search(format!("{repeated}text=x").as_bytes()).is_none());
    assert!(Ticker.since(started).as_secs() < 20);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn changed_bodies_are_refused_or_read_alike(seed in prop::sample::select(seeds(HOME, "bodies")), edits in edits()) {
        check_body(&edited(&seed, &edits))?;
    }

    #[test]
    fn warped_bodies_are_refused_or_read_alike(warps in warps(), any in any_json()) {
        check_body(warped(&order(), &warps).to_string().as_bytes())?;
        check_body(any.to_string().as_bytes())?;
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_read_alike(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_body(&bytes)?;
        search(&bytes);
    }

    #[test]
    fn numbers_and_texts_come_as_they_were_sent(value in any_json()) {
        let body = json!({ "name": "a", "count": 1, "metadata": { "value": value } }).to_string();
        match read(body.as_bytes()) {
            Ok(order) => {
                let sent = value.to_string();
                let kept = order.metadata.expect("sent")["value"].to_string();
                // A whole float is an integer, so 3.0 may come back as 3.
                prop_assert!(kept == sent || sent.contains(".0") || sent.contains('e'), "{} became {}", sent, kept);
            }
            Err(_) => prop_assert!(body.contains("\\u0000"), "{}", body),
        }
    }

    #[test]
    fn a_member_given_twice_is_refused(name in nasty_text(), one in any_json(), other in any_json()) {
        let name = Value::from(name);
        let twice = format!(r#"{{"name":"a","count":1,"x":[{{{name}:{one},"y":0,{name}:{other}}}]}}"#);
        prop_assert_eq!(read(twice.as_bytes()).expect_err("refused").code(), Code::MalformedJson);
    }

    #[test]
    fn forms_come_as_they_were_sent(fields in prop::collection::vec((nasty_text(), nasty_text()), 0..6)) {
        let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&fields).finish();
        prop_assert_eq!(form_fields(&form).expect("reads"), fields);
    }

    /// Another decoder, where it does not have to guess.
    #[test]
    fn forms_are_read_as_others_read_them(seed in prop::sample::select(seeds(HOME, "forms")), edits in edits(), text in nasty_text()) {
        for form in [String::from_utf8_lossy(&edited(&seed, &edits)).into_owned(), text] {
            let others: Vec<(String, String)> = url::form_urlencoded::parse(form.as_bytes()).into_owned().collect();
            match form_fields(&form) {
                Ok(fields) => prop_assert_eq!(fields, others),
                Err(error) => {
                    prop_assert_eq!(error.code(), Code::MalformedRequest);
                    let guessed = |text: &str| text.contains('\u{fffd}');
                    prop_assert!(others.iter().any(|(name, value)| guessed(name) || guessed(value)));
                }
            }
        }
    }

    #[test]
    fn a_form_and_a_body_of_the_same_members_are_the_same(text in nasty_text(), tags in prop::collection::vec(nasty_text(), 0..4), exact: bool, page: Option<i32>) {
        let sent = Search { text, tags, exact, page };
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("text", &sent.text).append_pair("exact", &exact.to_string());
        form.extend_pairs(sent.tags.iter().map(|tag| ("tags", tag)));
        form.extend_pairs(page.map(|page| ("page", page.to_string())));
        let body: Option<Search> = from_json(&serde_json::to_vec(&sent).expect("JSON")).ok();
        prop_assert_eq!(search(form.finish().as_bytes()), body);
    }

    #[test]
    fn a_client_is_the_peer_or_stands_in_the_header(seed in prop::sample::select(seeds(HOME, "forwarded")), edits in edits(), bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        for lines in [edited(&seed, &edits), bytes] {
            prop_assert_eq!(client("192.0.2.1", &lines).to_string(), "192.0.2.1");
            let found = client(PROXY, &lines);
            let text = String::from_utf8_lossy(&lines).to_lowercase();
            let stands_there = text.split([',', '\n']).any(|word| {
                // An IPv6 address in brackets may carry a zone, which does not make it another address.
                let word = word.trim().trim_start_matches('[').split([']', '%']).next().unwrap_or_default();
                let bare = word.parse::<IpAddr>().or_else(|_| word.rsplit_once(':').map_or(word, |(host, _)| host).parse());
                bare.is_ok_and(|address| address.to_canonical() == found)
            });
            prop_assert!(found.to_string() == PROXY || stands_there, "{} is not in {:?}", found, text);
        }
    }
}
