//! A flag as people write it and as it is stored: what it evaluates to when off, when on, and by which rule.
//!
//! These types accept anything of the right shape; [`crate::rules::check`] says what is wrong with it, and only what
//! passed that is ever stored.

use kernel::{id_kinds, text_types};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::text_enum;

id_kinds! {
    /// A feature flag.
    FlagId(FlagKind) = "flag";
    /// A saved group of branches.
    GroupId(GroupKind) = "flaggroup";
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "FlagState")]
pub enum State {
    #[default]
    Off,
    On,
    OnWithRule,
}

text_enum! {
    #[derive(Default)]
    #[schemars(rename = "FlagValueType")]
    wire pub enum ValueType {
        #[default]
        Boolean = "boolean",
        String = "string",
        Number = "number",
        Json = "json",
    }
}

impl ValueType {
    /// Whether `value` may be a value of such a flag. `null` never is: it stands for a member that is absent.
    pub fn admits(self, value: &Value) -> bool {
        match self {
            Self::Boolean => value.is_boolean(),
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Json => !value.is_null(),
        }
    }

    /// Reads on from a field's name.
    pub fn requirement(self) -> &'static str {
        match self {
            Self::Boolean => "must be true or false, because valueType is boolean",
            Self::String => "must be a string, because valueType is string",
            Self::Number => "must be a number, because valueType is number",
            Self::Json => "must be JSON other than null",
        }
    }
}

/// Who gets which value while the state is `on-with-rule`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FlagRule")]
pub struct Rule {
    /// The first whose conditions all hold decides. Empty when `groupRef` names a group.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub branches: Vec<Branch>,
    /// When no branch matches, or outside the rollout; `onValue` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise_value: Option<Value>,
    /// The share of identities that the rule applies to at all.
    #[serde(default = "everybody", serialize_with = "as_people_write_it")]
    #[schemars(range(min = 0, max = 100))]
    pub rollout_pct: f64,
    /// The key of a saved group whose branches are used.
    #[serde(default)]
    pub group_ref: Option<String>,
}

fn everybody() -> f64 {
    100.0
}

/// 20 rather than 20.0.
pub(crate) fn as_people_write_it<S: serde::Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let whole = *number as i64;
    if whole as f64 == *number { serializer.serialize_i64(whole) } else { serializer.serialize_f64(*number) }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FlagBranch")]
pub struct Branch {
    /// All must hold.
    #[serde(default)]
    #[schemars(length(max = 50))]
    pub conditions: Vec<Condition>,
    pub return_value: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FlagCondition")]
pub struct Condition {
    /// A dotted path that begins with `user`, `tenant`, `device` or `custom`.
    #[schemars(length(min = 1, max = 256))]
    pub attribute: String,
    pub operator: Operator,
    #[serde(default)]
    #[schemars(schema_with = "scalars")]
    pub values: Vec<Value>,
}

fn scalars(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "maxItems": 1000, "items": { "type": ["string", "number", "boolean", "null"] } })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "FlagOperator")]
pub enum Operator {
    Eq,
    Neq,
    Contains,
    NotContains,
    In,
    NotIn,
    StartsWith,
    EndsWith,
    Gt,
    Gte,
    Lt,
    Lte,
    Before,
    After,
    Matches,
    SemverGt,
    SemverLt,
    SemverEq,
    Exists,
    NotExists,
}

impl Operator {
    /// Matches when none of the values does, and when the attribute is missing.
    pub fn is_negative(self) -> bool {
        matches!(self, Self::Neq | Self::NotContains | Self::NotIn | Self::NotExists)
    }

    pub fn takes_values(self) -> bool {
        !matches!(self, Self::Exists | Self::NotExists)
    }
}

/// Everything that decides what a flag evaluates to: stored as JSON, versioned and rolled back as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    pub key: String,
    pub description: String,
    pub state: State,
    pub value_type: ValueType,
    pub off_value: Value,
    pub on_value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
}

impl Definition {
    pub fn uses_group(&self, key: &str) -> bool {
        self.rule.as_ref().is_some_and(|rule| rule.group_ref.as_deref() == Some(key))
    }
}

/// A saved group: branches that several flags share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupDefinition {
    pub key: String,
    pub name: String,
    pub branches: Vec<Branch>,
}

text_types! {
    /// Flag and group keys: what fits into a path, a log line and a metric without escaping.
    FlagKey {
        "pattern": "^[A-Za-z0-9._:-]{1,128}$",
        "x-message": "must be 1 to 128 letters, digits or any of . _ : -",
    }
}
