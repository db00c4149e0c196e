//! What may be saved: every value of the flag's type, every operator with values it understands, nothing without a
//! bound. All problems are told at once, each with its path.

use kernel::{Problems, Text};
use serde_json::Value;

use super::{
    Groups,
    compile::split,
    condition::{Test, is_pattern},
};
use crate::model::{Branch, Condition, Definition, FlagKey, Operator, Rule, State, ValueType};

const MAX_BRANCHES: usize = 100;
const MAX_CONDITIONS: usize = 50;
const MAX_VALUES: usize = 1_000;
const MAX_ATTRIBUTE: usize = 256;
/// Of a text or JSON value that a flag returns, in bytes of JSON.
const MAX_VALUE: usize = 64 * 1024;
/// Of a text that conditions compare with.
const MAX_OPERAND: usize = 4 * 1024;
/// Of a whole definition, in bytes of JSON.
const MAX_DEFINITION: usize = 512 * 1024;

/// Tells everything that is wrong with a definition, given the app's saved groups.
pub fn check(definition: &Definition, groups: &Groups, problems: &mut Problems) {
    check_key(&definition.key, problems);
    problems.add_some("description", Text::problem(&definition.description));
    let value_type = definition.value_type;
    check_value("offValue", &definition.off_value, value_type, problems);
    check_value("onValue", &definition.on_value, value_type, problems);
    match &definition.rule {
        Some(rule) => check_rule(rule, value_type, groups, problems),
        None => problems.check("rule", definition.state != State::OnWithRule, "is required when state is on-with-rule"),
    }
    if problems.is_empty() && serde_json::to_string(definition).is_ok_and(|text| text.len() > MAX_DEFINITION) {
        problems.add("body", format!("must not be longer than {MAX_DEFINITION} bytes as JSON"));
    }
}

pub fn check_key(key: &str, problems: &mut Problems) {
    problems.add_some("key", FlagKey::problem(key));
}

/// Problems of a group's branches. A group is of no type; that its values suit is asked per flag that uses it.
pub fn check_branches(branches: &[Branch], path: &str, value_type: Option<ValueType>, problems: &mut Problems) {
    if branches.len() > MAX_BRANCHES {
        problems.add(path, format!("must not have more than {MAX_BRANCHES} entries"));
        return;
    }
    for (index, branch) in branches.iter().enumerate() {
        let path = format!("{path}[{index}]");
        check_value(
            &format!("{path}.returnValue"),
            &branch.return_value,
            value_type.unwrap_or(ValueType::Json),
            problems,
        );
        if branch.conditions.len() > MAX_CONDITIONS {
            problems.add(format!("{path}.conditions"), format!("must not have more than {MAX_CONDITIONS} entries"));
            continue;
        }
        for (index, condition) in branch.conditions.iter().enumerate() {
            check_condition(condition, &format!("{path}.conditions[{index}]"), problems);
        }
    }
}

fn check_rule(rule: &Rule, value_type: ValueType, groups: &Groups, problems: &mut Problems) {
    let percentage = (0.0..=100.0).contains(&rule.rollout_pct);
    problems.check("rule.rolloutPct", percentage, "must be between 0 and 100");
    if let Some(otherwise) = &rule.otherwise_value {
        check_value("rule.otherwiseValue", otherwise, value_type, problems);
    }
    match &rule.group_ref {
        None => check_branches(&rule.branches, "rule.branches", Some(value_type), problems),
        Some(_) if !rule.branches.is_empty() => {
            problems.add("rule.branches", "must be empty when groupRef names a group");
        }
        Some(group) => match groups.get(group) {
            None => problems.add("rule.groupRef", "is not a saved group of this app"),
            Some(branches) => {
                let fits = branches.iter().all(|branch| value_type.admits(&branch.return_value));
                problems.check("rule.groupRef", fits, "is a group that returns values of another type");
            }
        },
    }
}

fn check_value(field: &str, value: &Value, value_type: ValueType, problems: &mut Problems) {
    if !value_type.admits(value) {
        problems.add(field, if value.is_null() { "is required" } else { value_type.requirement() });
    } else if value.to_string().len() > MAX_VALUE {
        problems.add(field, format!("must not be longer than {MAX_VALUE} bytes as JSON"));
    }
}

fn check_condition(condition: &Condition, path: &str, problems: &mut Problems) {
    let Condition { attribute, operator, values } = condition;
    if attribute.len() > MAX_ATTRIBUTE || split(attribute).is_none() {
        let message = "must be a dotted path of at most 256 bytes that begins with user, tenant, device or custom";
        problems.add(format!("{path}.attribute"), message);
    }
    let field = format!("{path}.values");
    match (operator.takes_values(), values.len()) {
        (true, 0) => problems.add(field, "must have at least one entry"),
        (true, MAX_VALUES..) if values.len() > MAX_VALUES => {
            problems.add(field, format!("must not have more than {MAX_VALUES} entries"));
        }
        (true, _) => check_operands(*operator, values, &field, problems),
        (false, 0) => {}
        (false, _) => problems.add(field, "must be empty, because this operator takes no values"),
    }
}

fn check_operands(operator: Operator, values: &[Value], field: &str, problems: &mut Problems) {
    for (index, value) in values.iter().enumerate() {
        let field = format!("{field}[{index}]");
        if let Err(misfit) = Test::new(operator, std::slice::from_ref(value)) {
            problems.add(field, misfit);
        } else if value.as_str().is_some_and(|text| text.len() > MAX_OPERAND) {
            problems.add(field, format!("must not be longer than {MAX_OPERAND} bytes"));
        } else if operator == Operator::Matches && !value.as_str().is_some_and(is_pattern) {
            problems
                .add(field, "must be a regular expression without look-around and back-references, of moderate size");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::json;

    use super::*;

    fn definition(changes: &Value) -> Definition {
        let mut whole = json!({ "key": "k", "description": "", "state": "on-with-rule", "valueType": "boolean",
                                "offValue": false, "onValue": true, "rule": { "branches": [] } });
        for (name, value) in changes.as_object().expect("an object") {
            whole[name] = value.clone();
        }
        serde_json::from_value(whole).expect("a definition")
    }

    #[track_caller]
    fn refused(changes: &Value, fields: &[&str]) {
        let group = |value: Value| [Branch { conditions: Vec::new(), return_value: value }].into();
        let groups: Groups =
            HashMap::from([("texts".to_owned(), group(json!("a"))), ("flags".to_owned(), group(json!(true)))]);
        let mut problems = Problems::new();
        check(&definition(changes), &groups, &mut problems);
        let found: Vec<String> = match problems.finish() {
            Ok(()) => Vec::new(),
            Err(error) => error.details().iter().map(|problem| problem.field.clone()).collect(),
        };
        assert_eq!(found, fields, "{changes}");
    }

    fn condition(attribute: &str, operator: &str, values: &Value) -> Value {
        let conditions = json!([{ "attribute": attribute, "operator": operator, "values": values }]);
        json!({ "rule": { "branches": [{ "conditions": conditions, "returnValue": true }] } })
    }

    #[test]
    fn a_definition_is_checked_as_a_whole() {
        refused(&json!({}), &[]);
        refused(&json!({ "key": "a b", "offValue": 1, "onValue": null }), &["key", "offValue", "onValue"]);
        refused(&json!({ "rule": null }), &["rule"]);
        refused(&json!({ "rule": null, "state": "off" }), &[]);
        refused(&json!({ "valueType": "string", "offValue": "", "onValue": "x" }), &[]);
        refused(&json!({ "valueType": "json", "offValue": {}, "onValue": [1] }), &[]);
        refused(&json!({ "valueType": "number", "offValue": 1.5, "onValue": "2" }), &["onValue"]);
        refused(
            &json!({ "rule": { "rolloutPct": 101, "otherwiseValue": "x" } }),
            &["rule.rolloutPct", "rule.otherwiseValue"],
        );
        refused(&json!({ "rule": { "branches": [{ "returnValue": "x" }] } }), &["rule.branches[0].returnValue"]);
    }

    #[test]
    fn groups_are_named_not_mixed_and_of_the_right_type() {
        let inline = json!([{ "conditions": [], "returnValue": true }]);
        refused(&json!({ "rule": { "groupRef": "flags" } }), &[]);
        refused(&json!({ "rule": { "groupRef": "flags", "branches": inline } }), &["rule.branches"]);
        refused(&json!({ "rule": { "groupRef": "gone" } }), &["rule.groupRef"]);
        refused(&json!({ "rule": { "groupRef": "texts" } }), &["rule.groupRef"]);
    }

    #[test]
    fn operators_are_checked_against_their_values() {
        let values = "rule.branches[0].conditions[0].values";
        refused(&condition("user.id", "eq", &json!([1, "a", null, true])), &[]);
        refused(&condition("user.id", "eq", &json!([])), &[values]);
        refused(&condition("user.id", "exists", &json!([])), &[]);
        refused(&condition("user.id", "exists", &json!([true])), &[values]);
        refused(&condition("user.id", "matches", &json!(["("])), &[&format!("{values}[0]")]);
        refused(&condition("user.id", "gt", &json!([1, "2"])), &[&format!("{values}[1]")]);
        for attribute in ["", "user", "user.", "plan", ".x", "session.id"] {
            refused(&condition(attribute, "exists", &json!([])), &["rule.branches[0].conditions[0].attribute"]);
        }
        refused(&condition("org.plan", "exists", &json!([])), &[]);
    }
}
