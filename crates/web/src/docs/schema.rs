//! Reads JSON schemas for people: what a value is in a few words, which members it has, and what one could look like.

use serde_json::{Map, Value, json};

/// Nested members are shown this deep; beyond it the type's name must do.
const MAX_DEPTH: usize = 4;

/// One member of an object, by its path within the body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) path: String,
    pub(super) kind: String,
    pub(super) required: bool,
    pub(super) note: String,
}

/// Schemas together with the document that their references point into.
#[derive(Clone, Copy)]
pub(super) struct Schemas<'a> {
    pub(super) document: &'a Value,
}

impl<'a> Schemas<'a> {
    /// Follows references, and the choice between one schema and null.
    fn resolve(self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        for _ in 0..8 {
            let reference = schema["$ref"].as_str().and_then(|text| text.strip_prefix('#'));
            let next = match reference {
                Some(pointer) => self.document.pointer(pointer),
                None => only_choice(schema),
            };
            match next {
                Some(next) => schema = next,
                None => break,
            }
        }
        schema
    }

    pub(super) fn kind(self, schema: &'a Value) -> String {
        let null = if allows_null(schema) { " or null" } else { "" };
        let inner = self.resolve(schema);
        let text = if let Some(values) = choices(inner) {
            format!("one of {}", values.join(", "))
        } else {
            match type_name(inner) {
                Some("array") => format!("list of {}", self.kind(&inner["items"]).replacen("one of", "any of", 1)),
                Some(name) => match inner["format"].as_str().filter(|format| *format != "double") {
                    Some(format) => format!("{name} ({format})"),
                    None => name.to_owned(),
                },
                None => "any value".to_owned(),
            }
        };
        // A reference to a type that may itself be null would say it twice.
        if text.ends_with(" or null") { text } else { text + null }
    }

    pub(super) fn members(self, schema: &'a Value) -> Vec<Member> {
        let mut members = Vec::new();
        self.collect(schema, "", 0, &mut members);
        members
    }

    fn collect(self, schema: &'a Value, prefix: &str, depth: usize, members: &mut Vec<Member>) {
        let schema = self.resolve(schema);
        if type_name(schema) == Some("array") {
            return self.collect(&schema["items"], &format!("{prefix}[]"), depth, members);
        }
        let Some(properties) = schema["properties"].as_object().filter(|_| depth < MAX_DEPTH) else { return };
        for (name, property) in properties {
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            let required = schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)));
            let note = self.note(property, property);
            members.push(Member { path: path.clone(), kind: self.kind(property), required, note });
            self.collect(property, &path, depth + 1, members);
        }
    }

    /// What `holder` says about a value of `schema`, and the value's bounds.
    pub(super) fn note(self, holder: &'a Value, schema: &'a Value) -> String {
        let described = [holder, self.resolve(schema)].iter().find_map(|schema| schema["description"].as_str());
        let bounds = [
            ("minimum", "at least"),
            ("maximum", "at most"),
            ("minLength", "length at least"),
            ("maxLength", "length at most"),
        ];
        // The bounds of a machine's integers are no news to a person.
        let telling = |bound: &&Value| {
            bound.as_i64().is_some_and(|bound| bound.unsigned_abs() < u64::from(i32::MAX.unsigned_abs()))
        };
        let bounds =
            bounds.iter().filter_map(|(key, words)| Some(format!("{words} {}", schema.get(key).filter(telling)?)));
        let bounds: Vec<String> = bounds.collect();
        match described {
            Some(described) if bounds.is_empty() => described.to_owned(),
            Some(described) => format!("{}; {}", described.trim_end_matches('.'), bounds.join("; ")),
            None => bounds.join("; "),
        }
    }

    /// A value that fits, made of placeholders; only what is required, so that the example stays short.
    pub(super) fn example(self, schema: &'a Value) -> Value {
        self.example_at(schema, 0)
    }

    fn example_at(self, schema: &'a Value, depth: usize) -> Value {
        let schema = self.resolve(schema);
        if let Some(first) = choices(schema).and_then(|values| values.into_iter().next()) {
            return json!(first);
        }
        match type_name(schema) {
            Some("string") => json!(match schema["format"].as_str() {
                Some("date-time") => "2026-01-31T09:30:00.000Z",
                Some("uri") => "https://example.com",
                Some("email") => "ada@example.com",
                _ => "text",
            }),
            Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
            Some("number") => json!(1.5),
            Some("boolean") => json!(true),
            Some("array") if depth < MAX_DEPTH => json!([self.example_at(&schema["items"], depth + 1)]),
            Some("object") if depth < MAX_DEPTH => self.example_object(schema, depth),
            _ => Value::Null,
        }
    }

    fn example_object(self, schema: &'a Value, depth: usize) -> Value {
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let members = required.filter_map(|name| {
            let property = schema["properties"].get(name)?;
            Some((name.to_owned(), self.example_at(property, depth + 1)))
        });
        Value::Object(members.collect::<Map<_, _>>())
    }
}

fn allows_null(schema: &Value) -> bool {
    let in_types = schema["type"].as_array().is_some_and(|types| types.contains(&json!("null")));
    let mut choices = schema["anyOf"].as_array().into_iter().flatten();
    in_types || choices.any(|choice| choice["type"] == "null")
}

/// The one schema of an `anyOf` besides null, or of an `allOf`.
fn only_choice(schema: &Value) -> Option<&Value> {
    let choices = schema["anyOf"].as_array().or_else(|| schema["allOf"].as_array())?;
    let mut choices = choices.iter().filter(|choice| choice["type"] != "null");
    choices.next().filter(|_| choices.next().is_none())
}

/// The first type that is not null.
fn type_name(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::String(name) => Some(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        _ => schema.get("properties").map(|_| "object"),
    }
}

/// The values of an enumeration, which may be written as one list or as constants with a description each.
fn choices(schema: &Value) -> Option<Vec<String>> {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(values) = schema["enum"].as_array() {
        return Some(values.iter().filter(|value| !value.is_null()).map(plain).collect());
    }
    if let Some(value) = schema.get("const") {
        return Some(vec![plain(value)]);
    }
    let alternatives = schema["oneOf"].as_array()?;
    let values: Option<Vec<Vec<String>>> = alternatives.iter().map(choices).collect();
    values.map(|values| values.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_read_as_words_members_and_examples() {
        let document = json!({ "components": { "schemas": {
            "Price": { "type": "object", "properties": {
                "amount": { "type": "number", "minimum": 0, "description": "Major units." },
                "interval": { "oneOf": [{ "const": "month" }, { "enum": ["year"] }] },
            }, "required": ["amount"] },
        } } });
        let schemas = Schemas { document: &document };
        let plan = json!({ "type": "object", "required": ["prices"], "properties": {
            "prices": { "type": "array", "items": { "$ref": "#/components/schemas/Price" } },
            "note": { "type": ["string", "null"] },
            "best": { "anyOf": [{ "$ref": "#/components/schemas/Price" }, { "type": "null" }] },
        } });
        let members = schemas.members(&plan);
        let told: Vec<String> = members.iter().map(|m| format!("{}: {}", m.path, m.kind)).collect();
        assert_eq!(
            told,
            [
                "prices: list of object",
                "prices[].amount: number",
                "prices[].interval: one of month, year",
                "note: string or null",
                "best: object or null",
                "best.amount: number",
                "best.interval: one of month, year",
            ]
        );
        assert_eq!(members[1].note, "Major units; at least 0");
        assert_eq!(schemas.example(&plan), json!({ "prices": [{ "amount": 1.5 }] }));
    }
}
