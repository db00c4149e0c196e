//! SCIM filters, patch paths and patches: what is accepted is written as it was read, and a patch stays within its schema.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scim::{
    filter::{BoundFilter, parse, parse_path},
    patch,
    schema::{GROUP, USER},
};
use serde_json::{Map, Value, json};

fn user() -> Map<String, Value> {
    let user = json!({
        "id": "member_1", "userName": "ada@example.com", "active": true, "name": { "givenName": "Ada" },
        "roles": [{ "value": "MEMBER", "primary": true }],
    });
    user.as_object().cloned().unwrap_or_default()
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(filter) = parse(text) {
        assert_eq!(parse(&filter.to_string()).ok(), Some(filter.clone()));
        for schema in [&USER, &GROUP] {
            if let Ok(bound) = BoundFilter::new(&filter, schema) {
                bound.fits(&user());
            }
        }
    }
    if let Ok(path) = parse_path(text) {
        assert_eq!(parse_path(&path.to_string()).ok(), Some(path));
    }
    let Ok(body) = serde_json::from_str::<Value>(text) else { return };
    let _ = GROUP.read(&body);
    let mut resource = user();
    if patch::read(&body).and_then(|operations| patch::apply(&USER, &mut resource, &operations)).is_ok() {
        assert_eq!(resource["id"], "member_1");
        assert!(resource.contains_key("userName"));
        assert!(resource.keys().all(|name| USER.attribute(name).is_some_and(|known| known.name == name)));
    }
});
