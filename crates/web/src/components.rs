//! Puts the schemas of requests and answers under one roof. A type that reads as it writes is listed once; one that
//! differs keeps its name for answers and is called `…Input` in requests.

use kernel::text::{MAX_QUERY_TEXT, MAX_TEXT};
use serde_json::{Map, Value};

use crate::schemas;

pub(crate) struct Components {
    pub(crate) requests: Map<String, Value>,
    pub(crate) answers: Map<String, Value>,
}

const PREFIX: &str = "#/components/schemas/";

/// Merges both sets and lets the requests in `paths` refer to the renamed ones.
pub(crate) fn merge(paths: &mut Map<String, Value>, components: Components) -> Map<String, Value> {
    let Components { mut requests, mut answers } = components;
    requests.values_mut().for_each(|schema| schemas::bound(schema, MAX_TEXT));
    unite(&requests, &mut answers);
    let differing = differing(&requests, &answers);
    for operation in paths.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten();
        let queries = parameters.filter(|parameter| parameter["in"] == "query");
        queries.for_each(|query| schemas::bound(query, MAX_QUERY_TEXT));
        operation.get_mut("requestBody").into_iter().for_each(|body| schemas::bound(body, MAX_TEXT));
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

/// What reads as it writes was within the limits when it was read, so its one schema names them.
fn unite(requests: &Map<String, Value>, answers: &mut Map<String, Value>) {
    for (name, answer) in answers {
        let mut bounded = answer.clone();
        schemas::bound(&mut bounded, MAX_TEXT);
        if requests.get(name) == Some(&bounded) {
            *answer = bounded;
        }
    }
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
