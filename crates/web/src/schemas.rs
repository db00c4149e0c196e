//! What holds for every schema: the limits of texts and lists that name none themselves, and integers that are bounded
//! as their Rust types are. Bodies are judged by the result, and the published document shows it.

use kernel::text::{MAX_BYTES, MAX_LIST, MESSAGE};
use serde_json::{Map, Value, json};

/// Puts the general limits into a request's schema; `longest` is that of its texts.
pub(crate) fn bound(schema: &mut Value, longest: usize) {
    each(schema, &|members| {
        bound_integer(members);
        bound_text(members, longest);
        bound_list(members);
    });
}

/// Makes schemas readable for every client: integers are bounded by numbers, "anything" is an empty object, and what is
/// meant for our own survey is left out.
pub(crate) fn publish(document: &mut Value) {
    each(document, &|members| {
        bound_integer(members);
        members.remove(MESSAGE);
        if let Some(Value::Object(properties)) = members.get_mut("properties") {
            properties.values_mut().for_each(object_for_anything);
        }
        for keyword in ["items", "schema"] {
            members.get_mut(keyword).map(object_for_anything);
        }
    });
}

fn object_for_anything(schema: &mut Value) {
    if *schema == Value::Bool(true) {
        *schema = json!({});
    }
}

/// Does something to every schema in a value; to be on the safe side also to what merely looks like one.
fn each(value: &mut Value, change: &dyn Fn(&mut Map<String, Value>)) {
    match value {
        Value::Array(entries) => entries.iter_mut().for_each(|entry| each(entry, change)),
        Value::Object(members) => {
            change(members);
            let inner = members
                .iter_mut()
                .filter(|(name, _)| !["enum", "const", "default", "examples"].contains(&name.as_str()));
            inner.for_each(|(_, member)| each(member, change));
        }
        _ => {}
    }
}

fn is(members: &Map<String, Value>, wanted: &str) -> bool {
    match members.get("type") {
        Some(Value::String(only)) => only == wanted,
        Some(Value::Array(several)) => several.iter().any(|one| one == wanted),
        _ => false,
    }
}

/// A text that is a time, one of some values or fits a pattern from beginning to end is not long anyway.
fn bound_text(members: &mut Map<String, Value>, longest: usize) {
    let text = |keyword: &str| members.get(keyword).and_then(Value::as_str);
    let has_form =
        text("pattern").is_some_and(|pattern| pattern.starts_with('^')) || text("format") == Some("date-time");
    let known = ["maxLength", "enum", "const"].iter().any(|keyword| members.contains_key(*keyword));
    if is(members, "string") && !has_form && !known {
        members.insert("maxLength".to_owned(), longest.into());
        members.insert(MAX_BYTES.to_owned(), longest.into());
    }
}

fn bound_list(members: &mut Map<String, Value>) {
    if is(members, "array") {
        members.entry("maxItems").or_insert_with(|| MAX_LIST.into());
    }
}

/// Says as numbers what the widths of integers say in Rust, so that a client knows what is out of range.
fn bound_integer(members: &mut Map<String, Value>) {
    let bounds: (Value, Value) = match members.get("format").and_then(Value::as_str) {
        Some("int32") => (i32::MIN.into(), i32::MAX.into()),
        Some("int64") => (i64::MIN.into(), i64::MAX.into()),
        Some("uint8") => (0.into(), u8::MAX.into()),
        Some("uint16") => (0.into(), u16::MAX.into()),
        Some("uint32") => (0.into(), u32::MAX.into()),
        Some("uint" | "uint64") => (0.into(), u64::MAX.into()),
        _ => return,
    };
    members.remove("format");
    members.entry("minimum").or_insert(bounds.0);
    members.entry("maximum").or_insert(bounds.1);
}
