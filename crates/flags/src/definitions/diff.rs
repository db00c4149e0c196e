//! What differs between two versions, leaf by leaf, for people to read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One member that differs. Absent on the side where there was none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FlagDifference")]
pub struct Difference {
    /// `rule.branches[0].returnValue`
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
}

pub(super) fn differences(from: &Value, to: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", Some(from), Some(to), &mut found);
    found
}

fn compare(path: &str, from: Option<&Value>, to: Option<&Value>, found: &mut Vec<Difference>) {
    match (from, to) {
        (from, to) if from == to => {}
        (Some(Value::Object(from)), Some(Value::Object(to))) => {
            let dotted = |name: &String| if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            for (name, value) in from {
                compare(&dotted(name), Some(value), to.get(name), found);
            }
            for (name, value) in to.iter().filter(|(name, _)| !from.contains_key(*name)) {
                compare(&dotted(name), None, Some(value), found);
            }
        }
        (Some(Value::Array(from)), Some(Value::Array(to))) => {
            for index in 0..from.len().max(to.len()) {
                compare(&format!("{path}[{index}]"), from.get(index), to.get(index), found);
            }
        }
        (from, to) => found.push(Difference { path: path.to_owned(), from: from.cloned(), to: to.cloned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_leaf_that_differs_is_named() {
        let from = json!({ "state": "off", "rule": { "branches": [{ "v": 1 }, { "v": 2 }] }, "gone": true });
        let to = json!({ "state": "on", "rule": { "branches": [{ "v": 1 }, { "v": 3 }, { "v": 4 }] }, "new": {} });
        let found: Vec<String> = differences(&from, &to).iter().map(|d| d.path.clone()).collect();
        assert_eq!(found, ["state", "rule.branches[1].v", "rule.branches[2]", "gone", "new"]);
        assert_eq!(differences(&to, &to), []);
    }
}
