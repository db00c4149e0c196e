//! What the operator sends: new flags and groups, and partial updates of them.

use kernel::{Code, Error, Name, Problems, Result, Text};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use web::{Given, Patch, Validate};

use super::AppDefinitions;
use crate::{
    model::{Branch, Definition, FlagKey, GroupDefinition, Rule, State, ValueType},
    rules::{Groups, check, check_branches, check_key},
};

/// A new flag. Values of a boolean flag are `false` and `true` unless given; of others both are required.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewFlag {
    pub key: FlagKey,
    pub description: Option<Text>,
    pub state: Option<State>,
    pub value_type: Option<ValueType>,
    pub off_value: Option<Value>,
    pub on_value: Option<Value>,
    pub rule: Option<Rule>,
}

impl Validate for NewFlag {
    /// Checked once more with the app's groups at hand, in [`check_flag`].
    fn validate(&self, problems: &mut Problems) {
        if self.rule.as_ref().is_none_or(|rule| rule.group_ref.is_none()) {
            check(&self.definition(), &Groups::new(), problems);
        }
    }
}

impl NewFlag {
    pub(super) fn definition(&self) -> Definition {
        let value_type = self.value_type.unwrap_or_default();
        Definition {
            key: self.key.to_string(),
            description: self.description.clone().map(String::from).unwrap_or_default(),
            state: self.state.unwrap_or_default(),
            value_type,
            off_value: self.off_value.clone().unwrap_or_else(|| default_value(value_type, false)),
            on_value: self.on_value.clone().unwrap_or_else(|| default_value(value_type, true)),
            rule: self.rule.clone(),
        }
    }
}

/// `null` is refused later, as a value that is required.
pub(super) fn default_value(value_type: ValueType, on: bool) -> Value {
    match value_type {
        ValueType::Boolean => Value::Bool(on),
        _ => Value::Null,
    }
}

/// A partial update: what is missing stays. `rule` is replaced whole, and `null` removes it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlagUpdate {
    /// May be sent, but not changed: code asks for it.
    #[serde(default)]
    pub key: Given<String>,
    #[serde(default)]
    pub description: Patch<Text>,
    #[serde(default)]
    pub state: Given<State>,
    #[serde(default)]
    pub value_type: Given<ValueType>,
    #[serde(default)]
    pub off_value: Patch<Value>,
    #[serde(default)]
    pub on_value: Patch<Value>,
    #[serde(default)]
    pub rule: Patch<Rule>,
}

impl Validate for FlagUpdate {}

impl FlagUpdate {
    pub(super) fn apply(&self, before: &Definition) -> Result<Definition> {
        same_key(self.key.0.as_deref(), &before.key)?;
        let value_type = self.value_type.or(before.value_type);
        let value = |patch: &Patch<Value>, current: &Value, on: bool| {
            let kept = if patch.is_missing() { Some(current.clone()) } else { patch.value().cloned() };
            kept.unwrap_or_else(|| default_value(value_type, on))
        };
        Ok(Definition {
            key: before.key.clone(),
            description: self.description.clone().apply(Some(before.description.clone())).unwrap_or_default(),
            state: self.state.or(before.state),
            value_type,
            off_value: value(&self.off_value, &before.off_value, false),
            on_value: value(&self.on_value, &before.on_value, true),
            rule: self.rule.clone().apply(before.rule.clone()),
        })
    }
}

fn same_key(sent: Option<&str>, present: &str) -> Result<()> {
    match sent {
        Some(sent) if sent != present => Err(Error::invalid("key", "cannot be changed; create another one instead")),
        _ => Ok(()),
    }
}

/// Tells everything that is wrong with a flag among the app's groups.
pub(super) fn check_flag(definition: &Definition, app: &AppDefinitions) -> Result<()> {
    let mut problems = Problems::new();
    check(definition, &app.groups_by_key(), &mut problems);
    problems.finish()
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "NewFlagGroup")]
pub struct NewGroup {
    pub key: FlagKey,
    pub name: Name,
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub branches: Vec<Branch>,
}

impl Validate for NewGroup {
    fn validate(&self, problems: &mut Problems) {
        check_branches(&self.branches, "branches", None, problems);
    }
}

impl NewGroup {
    pub(super) fn definition(&self) -> GroupDefinition {
        GroupDefinition { key: self.key.to_string(), name: self.name.to_string(), branches: self.branches.clone() }
    }
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FlagGroupUpdate")]
pub struct GroupUpdate {
    /// May be sent, but not changed: flags refer to it.
    #[serde(default)]
    pub key: Given<String>,
    #[serde(default)]
    pub name: Given<Name>,
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub branches: Given<Vec<Branch>>,
}

impl Validate for GroupUpdate {}

impl GroupUpdate {
    pub(super) fn apply(&self, before: &GroupDefinition) -> Result<GroupDefinition> {
        same_key(self.key.0.as_deref(), &before.key)?;
        Ok(GroupDefinition {
            key: before.key.clone(),
            name: self.name.clone().or(before.name.clone()),
            branches: self.branches.clone().or(before.branches.clone()),
        })
    }
}

/// Tells everything that is wrong with a group, also for the flags that use it.
pub(super) fn check_group(group: &GroupDefinition, app: &AppDefinitions) -> Result<()> {
    let mut problems = Problems::new();
    check_key(&group.key, &mut problems);
    problems.add_some("name", Name::problem(&group.name));
    check_branches(&group.branches, "branches", None, &mut problems);
    for flag in app.flags.iter().filter(|flag| flag.definition.uses_group(&group.key)) {
        let Definition { key, value_type, .. } = &flag.definition;
        for (index, branch) in group.branches.iter().enumerate() {
            if !value_type.admits(&branch.return_value) {
                let message =
                    format!("does not suit the flag {key}, which uses this group: {}", value_type.requirement());
                problems.add(format!("branches[{index}].returnValue"), message);
            }
        }
    }
    problems.finish()
}

/// 409 while flags use the group.
pub(super) fn check_group_unused(group: &GroupDefinition, app: &AppDefinitions) -> Result<()> {
    let users = app.flags.iter().filter(|flag| flag.definition.uses_group(&group.key));
    let keys: Vec<&str> = users.map(|flag| flag.definition.key.as_str()).take(10).collect();
    if keys.is_empty() {
        return Ok(());
    }
    Err(Error::new(Code::FlagGroupInUse, format!("Flags use this group: {}.", keys.join(", "))))
}

/// Which version to go back to.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "FlagRollback")]
pub struct Rollback {
    #[schemars(range(min = 1))]
    pub version: i64,
}

impl Validate for Rollback {}
