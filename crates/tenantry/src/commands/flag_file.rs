//! A file of flags and groups, in YAML or JSON, read strictly: a word that nobody knows is a mistake that would otherwise
//! decide who sees what.

use std::{io::Read as _, path::Path};

use serde_json::{Value, json};

use super::text;

/// What a file asks for.
#[derive(Debug, PartialEq)]
pub struct FlagFile {
    pub app: Option<String>,
    groups: Vec<Value>,
    flags: Vec<Value>,
}

/// What each part of a file may say, and which parts it has inside.
struct Part {
    members: &'static [&'static str],
    inside: &'static [(&'static str, &'static Part)],
}

const CONDITION: Part = Part { members: &["attribute", "operator", "values"], inside: &[] };
const BRANCH: Part = Part { members: &["conditions", "returnValue"], inside: &[("conditions", &CONDITION)] };
const RULE: Part =
    Part { members: &["branches", "otherwiseValue", "rolloutPct", "groupRef"], inside: &[("branches", &BRANCH)] };
const FLAG: Part = Part {
    members: &["key", "description", "state", "valueType", "offValue", "onValue", "rule"],
    inside: &[("rule", &RULE)],
};
const GROUP: Part = Part { members: &["key", "name", "branches"], inside: &[("branches", &BRANCH)] };
const FILE: Part = Part { members: &["app", "groups", "flags"], inside: &[("groups", &GROUP), ("flags", &FLAG)] };

impl FlagFile {
    pub fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let content = if path == Path::new("-") {
            let mut content = String::new();
            std::io::stdin().read_to_string(&mut content).map(|_| content)
        } else {
            std::fs::read_to_string(path)
        };
        let content = content.map_err(|error| format!("Cannot read {shown}: {error}"))?;
        Self::parse(&content).map_err(|problem| format!("{shown}: {problem}"))
    }

    /// JSON is YAML, so one reader serves both.
    fn parse(content: &str) -> Result<Self, String> {
        let value: Value = yaml_serde::from_str(content).map_err(|error| error.to_string())?;
        let whole = match value {
            Value::Array(_) => json!({ "flags": value }),
            Value::Object(ref object) if object.contains_key("key") => json!({ "flags": [value] }),
            Value::Object(_) => value,
            _ => return Err("must be a flag, a list of flags, or an object with flags and groups".to_owned()),
        };
        let mut unknown = Vec::new();
        find_unknown(&whole, &FILE, "", &mut unknown);
        if !unknown.is_empty() {
            return Err(unknown.join("; "));
        }
        let entries = |member: &str| match &whole[member] {
            Value::Null => Ok(Vec::new()),
            Value::Array(entries) => Ok(entries.clone()),
            _ => Err(format!("{member} must be a list")),
        };
        let app = match &whole["app"] {
            Value::Null => None,
            Value::String(app) => Some(app.clone()),
            _ => return Err("app must be an app's id".to_owned()),
        };
        let file = Self { app, groups: entries("groups")?, flags: entries("flags")? };
        match file.groups.iter().chain(&file.flags).find(|entry| text(entry, "/key").is_empty()) {
            Some(entry) => Err(format!("an entry has no key: {entry}")),
            None => Ok(file),
        }
    }

    /// As the service takes it.
    pub fn body(&self, dry_run: bool) -> Value {
        json!({ "groups": self.groups, "flags": self.flags, "dryRun": dry_run })
    }
}

/// Every member that nobody knows, with its place. What has the wrong type is left to the service to refuse.
fn find_unknown(value: &Value, part: &Part, place: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Array(entries) => {
            for (index, entry) in entries.iter().enumerate() {
                find_unknown(entry, part, &format!("{place}[{index}]"), unknown);
            }
        }
        Value::Object(members) => {
            for (name, inside) in members {
                let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                if !part.members.contains(&name.as_str()) {
                    unknown.push(format!("{place} is not known (known are {})", part.members.join(", ")));
                } else if let Some((_, part)) = part.inside.iter().find(|(known, _)| known == name) {
                    find_unknown(inside, part, &place, unknown);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_flag_a_list_or_both_kinds() {
        let one = FlagFile::parse("key: nav\nstate: on-with-rule\nrule:\n  rolloutPct: 20\n").unwrap();
        assert_eq!(one.flags, [json!({ "key": "nav", "state": "on-with-rule", "rule": { "rolloutPct": 20 } })]);
        let list = FlagFile::parse("- key: a\n- key: b\n").unwrap();
        assert_eq!(list.flags.len(), 2);
        let whole = r#"{ "app": "app_1", "groups": [{ "key": "g" }], "flags": [{ "key": "f" }] }"#;
        let whole = FlagFile::parse(whole).unwrap();
        assert_eq!((whole.app.as_deref(), whole.groups.len(), whole.flags.len()), (Some("app_1"), 1, 1));
        // `state: on` and `state: off` are words, not YAML 1.1's booleans.
        assert_eq!(FlagFile::parse("key: a\nstate: off").unwrap().flags[0]["state"], "off");
        for wrong in ["3", "- state: off", "flags: 3", "key: [", "flags: [{}]", "app: 3\nflags: []"] {
            assert!(FlagFile::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_member_that_nobody_knows_is_named_with_its_place() {
        let wrong = "groups:\n- key: g\n  conditions: []\nflags:\n- key: f\n  stat: on\n  rule: { branches: [{ conditions: \
                     [{ attribute: user.id, value: [1] }] }] }\nflag: []\n";
        let problem = FlagFile::parse(wrong).unwrap_err();
        for place in
            ["groups[0].conditions", "flags[0].stat ", "flags[0].rule.branches[0].conditions[0].value ", "flag "]
        {
            assert!(problem.contains(place), "{place}: {problem}");
        }
        // A value may be any JSON.
        FlagFile::parse("key: f\nvalueType: json\noffValue: { stat: 1 }\nonValue: [{ x: 1 }]").unwrap();
    }
}
