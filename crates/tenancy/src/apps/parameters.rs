//! User parameters: what an app keeps about members beside what everybody has. The app defines them; one that it does not
//! define is kept as it is.

use std::borrow::Cow;

use ::store::text_enum;
use kernel::{Code, Error, Label, OptionalName, Problems, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use web::Validate;

const MOST: usize = 64;
const MAX_BYTES: usize = 16 * 1024;

/// Parameters of one member, by name: at most 64, and 16 KiB as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parameters(pub Map<String, Value>);

impl JsonSchema for Parameters {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "UserParameters".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let names = Label::json_schema(generator);
        json_schema!({
            "type": "object",
            "maxProperties": MOST,
            "propertyNames": names,
            "additionalProperties": { "type": ["string", "number", "boolean", "null"] },
            "x-maxBytes": MAX_BYTES,
        })
    }
}

text_enum! {
    /// What a parameter's values are.
    wire pub enum ParameterType {
        String = "string",
        Number = "number",
        Boolean = "boolean",
    }
}

text_enum! {
    /// Who may change a parameter: only the app, also those who run the workspace, or also the person.
    wire pub enum EditableBy {
        App = "app",
        Owner = "owner",
        User = "user",
    }
}

/// A parameter that the app knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParameterDefinition {
    pub key: Label,
    pub r#type: ParameterType,
    /// What people read.
    #[serde(default)]
    pub label: OptionalName,
    /// Only the app without it.
    #[serde(default = "by_app")]
    pub editable_by: EditableBy,
    /// Whether ID tokens and `userinfo` show it, with the scope `profile`.
    #[serde(default)]
    pub claim: bool,
}

const fn by_app() -> EditableBy {
    EditableBy::App
}

/// The body of `PUT /account/app/userParameters`: all of them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ParameterDefinitions(#[schemars(length(max = MOST))] pub Vec<ParameterDefinition>);

impl Validate for ParameterDefinitions {
    fn validate(&self, problems: &mut Problems) {
        for (place, definition) in self.0.iter().enumerate() {
            let is_first = self.0[..place].iter().all(|other| other.key != definition.key);
            problems.check(&format!("[{place}].key"), is_first, "is defined twice");
        }
    }
}

impl ParameterDefinition {
    fn takes(&self, value: &Value) -> bool {
        match self.r#type {
            ParameterType::String => value.is_string() || value.is_null(),
            ParameterType::Number => value.is_number() || value.is_null(),
            ParameterType::Boolean => value.is_boolean() || value.is_null(),
        }
    }
}

/// What is wrong with values by what the app defines; `place` is what they are called in the request.
pub fn judge(definitions: &[ParameterDefinition], parameters: &Parameters, place: &str, problems: &mut Problems) {
    for definition in definitions {
        let wrong = parameters.0.get(&*definition.key).is_some_and(|value| !definition.takes(value));
        if wrong {
            let problem = format!("must be a {}", definition.r#type.as_str());
            problems.add(format!("{place}.{}", &*definition.key), problem);
        }
    }
}

/// 400 for a value of another type than the app defines; 403 when somebody changes what is not theirs to change. What the app
/// does not define, people cannot change about themselves.
pub(crate) fn may_become(
    definitions: &[ParameterDefinition],
    editor: EditableBy,
    before: &Parameters,
    after: &Parameters,
) -> Result<()> {
    let mut problems = Problems::new();
    judge(definitions, after, "parameters", &mut problems);
    problems.finish()?;
    let changed = |key: &&String| before.0.get(*key) != after.0.get(*key);
    let mut changes = before.0.keys().chain(after.0.keys()).filter(changed);
    match changes.find(|key| !may_edit(definitions, editor, key)) {
        None => Ok(()),
        Some(key) => {
            let message = match editor {
                EditableBy::User => format!("You cannot change the parameter {key} yourself."),
                _ => format!("The parameter {key} can only be changed by a key of the whole app."),
            };
            Err(Error::new(Code::Forbidden, message))
        }
    }
}

fn may_edit(definitions: &[ParameterDefinition], editor: EditableBy, key: &str) -> bool {
    let definition = definitions.iter().find(|definition| &*definition.key == key);
    match (editor, definition.map(|definition| definition.editable_by)) {
        (EditableBy::App, _) | (_, Some(EditableBy::User)) => true,
        (EditableBy::Owner, by) => by != Some(EditableBy::App),
        (EditableBy::User, _) => false,
    }
}

/// Those that ID tokens and `userinfo` show; `None` when there are none.
pub fn claims(definitions: &[ParameterDefinition], parameters: &Parameters) -> Option<Map<String, Value>> {
    let shown = definitions.iter().filter(|definition| definition.claim);
    let claims: Map<String, Value> =
        shown.filter_map(|one| Some((one.key.to_string(), parameters.0.get(&*one.key)?.clone()))).collect();
    (!claims.is_empty()).then_some(claims)
}
