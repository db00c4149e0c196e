//! Puts the schemas of requests and answers under one roof. A type that reads as it writes is listed once; one that
//! differs keeps its name for answers and is called `…Input` in requests.

use serde_json::{Map, Value};

pub(crate) struct Components {
    pub(crate) requests: Map<String, Value>,
    pub(crate) answers: Map<String, Value>,
}

const PREFIX: &str = "#/components/schemas/";

/// Merges both sets and lets the requests in `paths` refer to the renamed ones.
pub(crate) fn merge(paths: &mut Map<String, Value>, components: Components) -> Map<String, Value> {
    let Components { requests, mut answers } = components;
    let differing = differing(&requests, &answers);
    for operation in paths.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        for part in ["parameters", "requestBody"] {
            if let Some(part) = operation.get_mut(part) {
                rename(part, &differing);
            }
        }
    }
    for (name, mut schema) in requests {
        rename(&mut schema, &differing);
        let name = if differing.contains(&name) { format!("{name}Input") } else { name };
        answers.insert(name, schema);
    }
    answers.sort_keys();
    answers
}

/// The names whose two schemas differ, or that refer to one whose schemas do.
fn differing(requests: &Map<String, Value>, answers: &Map<String, Value>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    loop {
        let found = requests.iter().find(|(name, schema)| {
            !names.contains(name)
                && answers.get(*name).is_some_and(|answer| answer != *schema || refers(schema, &names))
        });
        match found {
            Some((name, _)) => names.push(name.clone()),
            None => return names,
        }
    }
}

/// Says as numbers what the widths of integers say in Rust, so that a client knows what is out of range.
pub(crate) fn bound_integers(value: &mut Value) {
    match value {
        Value::Array(entries) => entries.iter_mut().for_each(bound_integers),
        Value::Object(members) => {
            bound(members);
            members.values_mut().for_each(bound_integers);
        }
        _ => {}
    }
}

fn bound(members: &mut Map<String, Value>) {
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

/// Whether `text` is a reference to one of the names.
fn is_one_of(text: &str, names: &[String]) -> bool {
    text.strip_prefix(PREFIX).is_some_and(|name| names.iter().any(|known| known == name))
}

fn refers(schema: &Value, names: &[String]) -> bool {
    match schema {
        Value::String(text) => is_one_of(text, names),
        Value::Array(entries) => entries.iter().any(|entry| refers(entry, names)),
        Value::Object(members) => members.values().any(|member| refers(member, names)),
        _ => false,
    }
}

fn rename(schema: &mut Value, names: &[String]) {
    match schema {
        Value::String(text) if is_one_of(text, names) => text.push_str("Input"),
        Value::Array(entries) => entries.iter_mut().for_each(|entry| rename(entry, names)),
        Value::Object(members) => members.values_mut().for_each(|member| rename(member, names)),
        _ => {}
    }
}
