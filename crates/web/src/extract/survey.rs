//! All that is missing or of the wrong type in a body that could not be read. Reading stops at the first misfit; a
//! caller who mends a request wants to hear of every one, so the schema is held against the whole of it.

use kernel::FieldProblem;
use schemars::JsonSchema;
use serde_json::{Map, Value};

/// Misfits beyond this many help nobody.
const MOST: usize = 100;

/// The misfits of `value`, in the order of the schema's members. May miss what only reading finds.
pub(super) fn misfits<T: JsonSchema>(value: &Value) -> Vec<FieldProblem> {
    let schema = schemars::generate::SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    let mut survey = Survey { definitions: schema.get("$defs").and_then(Value::as_object), found: Vec::new() };
    survey.look("", &schema, value);
    survey.found
}

struct Survey<'a> {
    definitions: Option<&'a Map<String, Value>>,
    found: Vec<FieldProblem>,
}

impl<'a> Survey<'a> {
    fn look(&mut self, field: &str, schema: &'a Value, value: &Value) {
        let Some(schema) = self.plain(schema) else { return };
        if self.found.len() >= MOST || (value.is_null() && allows(schema, "null")) {
            return;
        }
        if let Some(wanted) = misfit(schema, value) {
            return self.note(if field.is_empty() { "body" } else { field }, wanted);
        }
        match value {
            Value::Object(members) => self.look_at_members(field, schema, members),
            Value::Array(entries) => {
                let Some(of_each) = schema.get("items") else { return };
                for (place, entry) in entries.iter().enumerate() {
                    self.look(&format!("{field}[{place}]"), of_each, entry);
                }
            }
            _ => {}
        }
    }

    fn look_at_members(&mut self, field: &str, schema: &'a Value, members: &Map<String, Value>) {
        let path = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                self.note(&path(name), "is required");
            }
        }
        for (name, of_member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if let Some(value) = members.get(name) {
                self.look(&path(name), of_member, value);
            }
        }
    }

    /// The schema behind references and behind "or null"; nothing where there is a real choice.
    fn plain(&self, schema: &'a Value) -> Option<&'a Value> {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/")) {
            return self.plain(self.definitions?.get(name)?);
        }
        let Some(choices) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array) else {
            return Some(schema);
        };
        let mut real = choices.iter().filter(|choice| choice.get("type").and_then(Value::as_str) != Some("null"));
        match (real.next(), real.next()) {
            (Some(only), None) => self.plain(only),
            _ => None,
        }
    }

    fn note(&mut self, field: &str, message: &str) {
        self.found.push(FieldProblem { field: field.to_owned(), message: message.to_owned() });
    }
}

fn allows(schema: &Value, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == wanted,
        Some(Value::Array(several)) => several.iter().any(|one| one == wanted),
        _ => true,
    }
}

/// What the value must be, when it is not.
fn misfit(schema: &Value, value: &Value) -> Option<&'static str> {
    let fits = match value {
        // "Or null" may stand outside of what is looked at here; reading knows.
        Value::Null => true,
        Value::Bool(_) => allows(schema, "boolean"),
        Value::Number(number) => {
            allows(schema, "number") || (allows(schema, "integer") && number.as_f64().is_some_and(|n| n.fract() == 0.0))
        }
        Value::String(_) => allows(schema, "string"),
        Value::Array(_) => allows(schema, "array"),
        Value::Object(_) => allows(schema, "object"),
    };
    let wanted = [
        ("string", "must be a string"),
        ("integer", "must be an integer"),
        ("number", "must be a number"),
        ("boolean", "must be true or false"),
        ("array", "must be a list"),
        ("object", "must be an object"),
    ];
    if fits { None } else { wanted.iter().find(|(kind, _)| allows(schema, kind)).map(|(_, message)| *message) }
}
