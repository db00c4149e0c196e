//! What a dependency is built with, where a feature that somebody else's crate switches on would change what we accept.

use serde_json::Value;

/// With the feature `raw_value` or `arbitrary_precision` a JSON object with such a member is read as something else.
#[test]
fn json_has_no_members_with_a_meaning() {
    for name in ["RawValue", "Number"] {
        let read: Value = serde_json::from_str(&format!(r#"{{"$serde_json::private::{name}":"[1]"}}"#)).expect("JSON");
        assert!(read.is_object(), "serde_json understands {name}: {read}");
    }
}
