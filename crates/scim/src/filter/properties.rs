//! What holds for every filter, path and patch that somebody may send.

use corpus::{any_json, edited, edits, nasty_text, replay, seeds, warped, warps};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{AttributePath, BoundFilter, Filter, Operator, PatchPath, parse, parse_path};
use crate::{
    patch,
    schema::{GROUP, USER},
};

const HOME: &str = env!("CARGO_MANIFEST_DIR");

fn user() -> Map<String, Value> {
    let user = json!({
        "userName": "ada@example.com", "active": true, "name": { "givenName": "Ada" },
        "roles": [{ "value": "MEMBER", "primary": true }],
    });
    user.as_object().cloned().expect("an object")
}

fn patches(bytes: &[u8]) -> bool {
    let Ok(body) = serde_json::from_slice::<Value>(bytes) else { return false };
    patch::read(&body).and_then(|operations| patch::apply(&USER, &mut user(), &operations)).is_ok()
}

fn is_text_and(bytes: &[u8], accepts: impl Fn(&str) -> bool) -> bool {
    std::str::from_utf8(bytes).is_ok_and(accepts)
}

#[test]
fn known_inputs_are_judged_as_before() {
    replay(HOME, "filters", |bytes| is_text_and(bytes, |text| parse(text).is_ok()));
    replay(HOME, "paths", |bytes| is_text_and(bytes, |text| parse_path(text).is_ok()));
    replay(HOME, "patches", patches);
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("userName".to_owned()),
        Just("active".to_owned()),
        Just("not".to_owned()),
        Just("or".to_owned()),
        "[a-zA-Z][a-zA-Z0-9_-]{0,8}",
    ]
}

fn attribute() -> impl Strategy<Value = AttributePath> {
    let schema = prop_oneof![3 => Just(None), 1 => Just(Some(USER.urn.to_owned()))];
    (schema, name(), prop::option::of(name())).prop_map(|(schema, name, sub)| AttributePath { schema, name, sub })
}

fn literal() -> impl Strategy<Value = Value> {
    prop_oneof![
        nasty_text().prop_map(|text| json!(text.replace('\0', ""))),
        any::<i32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ]
}

fn comparison() -> impl Strategy<Value = Filter> {
    let operator = prop::sample::select(Operator::ALL.map(|(_, operator)| operator).to_vec());
    prop_oneof![
        1 => attribute().prop_map(Filter::Present),
        3 => (attribute(), operator, literal())
            .prop_map(|(path, operator, value)| Filter::Compare { path, operator, value }),
    ]
}

fn joined(inner: impl Strategy<Value = Filter> + Clone + 'static) -> impl Strategy<Value = Filter> {
    let several = prop::collection::vec(inner.clone(), 2..4);
    prop_oneof![
        several.clone().prop_map(Filter::Any),
        several.prop_map(Filter::All),
        inner.prop_map(|inner| Filter::Not(Box::new(inner))),
    ]
}

/// Any filter without brackets.
fn flat() -> impl Strategy<Value = Filter> + Clone {
    comparison().prop_recursive(3, 12, 3, joined)
}

fn filter() -> impl Strategy<Value = Filter> {
    let entry = (name(), flat()).prop_map(|(name, filter)| {
        let path = AttributePath { schema: None, name, sub: None };
        Filter::Entry { path, filter: Box::new(filter) }
    });
    prop_oneof![3 => flat(), 1 => entry]
}

fn changed(parser: &str) -> impl Strategy<Value = String> + use<> {
    let seed = prop::sample::select(seeds(HOME, parser));
    (seed, edits()).prop_map(|(seed, edits)| String::from_utf8_lossy(&edited(&seed, &edits)).into_owned())
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(filter in filter()) {
        prop_assert_eq!(parse(&filter.to_string()).expect("it was written from one"), filter);
    }

    #[test]
    fn what_is_read_means_what_is_written(text in prop_oneof![changed("filters"), nasty_text()]) {
        if let Ok(filter) = parse(&text) {
            prop_assert_eq!(parse(&filter.to_string()).expect("it was written from one"), filter);
        }
    }

    #[test]
    fn paths_are_written_as_they_are_read(text in prop_oneof![changed("paths"), nasty_text()]) {
        if let Ok(path) = parse_path(&text) {
            prop_assert_eq!(parse_path(&path.to_string()).expect("it was written from one"), path);
        }
    }

    #[test]
    fn paths_of_every_form_are_read(name in name(), filter in prop::option::of(flat()), sub in prop::option::of(name())) {
        let path = PatchPath { schema: None, name, filter, sub };
        prop_assert_eq!(parse_path(&path.to_string()).expect("it was written from one"), path);
    }

    #[test]
    fn a_filter_and_its_opposite_part_all_resources(filter in filter(), resource in any_json()) {
        let (Ok(bound), Some(resource)) = (BoundFilter::new(&filter, &USER), resource.as_object()) else { return Ok(()) };
        let opposite = BoundFilter::new(&Filter::Not(Box::new(filter)), &USER).expect("its attributes exist");
        prop_assert_ne!(bound.fits(resource), opposite.fits(resource));
    }

    /// Whatever a patch does, what cannot be written stays, and the rest is what the schema knows.
    #[test]
    fn a_patch_stays_within_the_schema(which in any::<prop::sample::Index>(), warps in warps()) {
        let seeds = seeds(HOME, "patches");
        let seed: Value = serde_json::from_slice(&seeds[which.index(seeds.len())]).expect("JSON");
        let mut resource = user();
        resource.insert("id".to_owned(), json!("member_1"));
        let Ok(operations) = patch::read(&warped(&seed, &warps)) else { return Ok(()) };
        if patch::apply(&USER, &mut resource, &operations).is_ok() {
            prop_assert_eq!(&resource["id"], "member_1");
            prop_assert!(resource.contains_key("userName"));
            prop_assert!(resource.keys().all(|name| USER.attribute(name).is_some_and(|known| known.name == name)));
            let roles = resource.get("roles").and_then(Value::as_array).map_or(0, Vec::len);
            prop_assert!(roles <= 1);
        }
    }

    #[test]
    fn any_body_is_read_or_refused(body in any_json()) {
        let _ = USER.read(&body);
        let _ = GROUP.read(&body);
        let _ = patch::read(&body);
    }
}
