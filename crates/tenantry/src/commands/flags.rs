//! `tenantry flag list|get|apply|delete`: flags that live in a repository, in YAML or JSON.

use std::{io::Read as _, path::Path};

use serde_json::{Map, Value, json};

use super::{print, table, text};
use crate::{
    api::Api,
    cli::{FlagCommand, OfApp},
};

/// What a file may say of a flag; the rest of what the API answers is the service's own.
const FLAG_MEMBERS: &[&str] = &["key", "description", "state", "valueType", "offValue", "onValue", "rule"];

pub async fn run(api: &Api, command: FlagCommand) -> Result<(), String> {
    match command {
        FlagCommand::List { of, output } => {
            let flags = api.get(&format!("/admin/apps/{}/flags", app(api, &of, None).await?)).await?;
            print(output, &flags, |flags| {
                let rows: Vec<Vec<String>> = list_of(flags).iter().map(row).collect();
                table(&["KEY", "STATE", "TYPE", "VERSION", "LAST EVALUATED", "ID"], &rows)
            });
        }
        FlagCommand::Get { key, of, output } => {
            let app = app(api, &of, None).await?;
            let flag = find(api, &app, &key).await?;
            print(output, &flag, |flag| yaml(&only(flag, FLAG_MEMBERS)));
        }
        FlagCommand::Apply { file, of, dry_run, output } => {
            let file = File::read(&file)?;
            let app = app(api, &of, file.app.as_deref()).await?;
            let done = Value::from(file.apply(api, &app, dry_run).await?);
            print(output, &done, |done| {
                let line =
                    |step: &Value| format!("{} {} {}", text(step, "/action"), text(step, "/kind"), text(step, "/key"));
                list_of(done).iter().map(line).collect::<Vec<_>>().join("\n")
            });
        }
        FlagCommand::Delete { key, of, output } => {
            let app = app(api, &of, None).await?;
            let flag = find(api, &app, &key).await?;
            let answer = api.delete(&format!("/admin/apps/{app}/flags/{}", text(&flag, "/id"))).await?;
            print(output, &answer, |_| format!("Deleted {key}."));
        }
    }
    Ok(())
}

/// The app that the command line or the file names, or the only one there is.
pub(super) async fn app(api: &Api, of: &OfApp, in_file: Option<&str>) -> Result<String, String> {
    if let Some(named) = of.app.as_deref().or(in_file) {
        return Ok(named.to_owned());
    }
    let apps = api.get("/admin/apps?limit=2").await?;
    match list_of(&apps) {
        [only] => Ok(text(only, "/id").to_owned()),
        [] => Err("There is no app yet.".to_owned()),
        _ => Err("There are several apps: choose one with --app.".to_owned()),
    }
}

async fn find(api: &Api, app: &str, key: &str) -> Result<Value, String> {
    let flags = api.get(&format!("/admin/apps/{app}/flags")).await?;
    let flag = list_of(&flags).iter().find(|flag| text(flag, "/key") == key && flag["discovered"] == false);
    flag.cloned().ok_or_else(|| format!("No flag has the key {key}."))
}

fn row(flag: &Value) -> Vec<String> {
    let version = flag["version"].as_i64().map_or(String::new(), |version| version.to_string());
    let state = if flag["discovered"] == true { "(discovered)" } else { text(flag, "/state") };
    let (key, value_type) = (text(flag, "/key"), text(flag, "/valueType"));
    let seen = [text(flag, "/usage/lastEvaluatedAt"), text(flag, "/lastSeenAt")].concat();
    vec![key.to_owned(), state.to_owned(), value_type.to_owned(), version, seen, text(flag, "/id").to_owned()]
}

fn list_of(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn only(object: &Value, members: &[&str]) -> Value {
    let kept = members.iter().filter_map(|member| Some(((*member).to_owned(), object.get(member)?.clone())));
    Value::Object(kept.collect::<Map<_, _>>())
}

fn yaml(value: &Value) -> String {
    yaml_serde::to_string(value).unwrap_or_else(|_| format!("{value:#}")).trim_end().to_owned()
}

/// What a file asks for. Groups come first, because flags refer to them.
#[derive(Debug, PartialEq)]
struct File {
    app: Option<String>,
    groups: Vec<Value>,
    flags: Vec<Value>,
}

impl File {
    fn read(path: &Path) -> Result<Self, String> {
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
        let entries = |value: Option<&Value>, member: &str| match value {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(entries)) => Ok(entries.clone()),
            Some(_) => Err(format!("{member} must be a list")),
        };
        let file = match &value {
            Value::Array(flags) => Self { app: None, groups: Vec::new(), flags: flags.clone() },
            Value::Object(object) if object.contains_key("key") => {
                Self { app: None, groups: Vec::new(), flags: vec![value.clone()] }
            }
            Value::Object(object) => Self {
                app: object.get("app").and_then(Value::as_str).map(str::to_owned),
                groups: entries(object.get("groups"), "groups")?,
                flags: entries(object.get("flags"), "flags")?,
            },
            _ => return Err("must be a flag, a list of flags, or an object with flags and groups".to_owned()),
        };
        match file.groups.iter().chain(&file.flags).find(|entry| text(entry, "/key").is_empty()) {
            Some(entry) => Err(format!("an entry has no key: {entry}")),
            None => Ok(file),
        }
    }

    async fn apply(&self, api: &Api, app: &str, dry_run: bool) -> Result<Vec<Value>, String> {
        let mut done = Vec::new();
        for (kind, path, entries) in [("group", "flag-groups", &self.groups), ("flag", "flags", &self.flags)] {
            let path = format!("/admin/apps/{app}/{path}");
            let known = if entries.is_empty() { Value::Null } else { api.get(&path).await? };
            for entry in entries {
                let key = text(entry, "/key");
                let present =
                    list_of(&known).iter().find(|known| text(known, "/key") == key && known["id"].is_string());
                let action = match present {
                    None if dry_run => "would create",
                    None => {
                        api.post(&path, entry).await.map_err(|problem| format!("{kind} {key}: {problem}"))?;
                        "created"
                    }
                    Some(present) if is_as(present, entry) => "unchanged",
                    Some(_) if dry_run => "would change",
                    Some(present) => {
                        let path = format!("{path}/{}", text(present, "/id"));
                        api.put(&path, entry).await.map_err(|problem| format!("{kind} {key}: {problem}"))?;
                        "changed"
                    }
                };
                done.push(json!({ "action": action, "kind": kind, "key": key }));
            }
        }
        Ok(done)
    }
}

/// Whether every member that the file gives has that value already. What a file leaves out inside a rule has its
/// default there, so a rule that is written shorter than it is shown is sent again, which changes nothing.
fn is_as(present: &Value, wanted: &Value) -> bool {
    let Value::Object(members) = wanted else { return false };
    members.iter().all(|(member, value)| present.get(member).is_some_and(|known| same(known, value)))
}

/// 20 and 20.0 are the same number.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|known| same(value, known)))
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_flag_a_list_or_both_kinds() {
        let one = File::parse("key: nav\nstate: on-with-rule\nrule:\n  rolloutPct: 20\n").unwrap();
        assert_eq!(one.flags, [json!({ "key": "nav", "state": "on-with-rule", "rule": { "rolloutPct": 20 } })]);
        let list = File::parse("- key: a\n- key: b\n").unwrap();
        assert_eq!(list.flags.len(), 2);
        let whole =
            File::parse(r#"{ "app": "app_1", "groups": [{ "key": "g" }], "flags": [{ "key": "f" }] }"#).unwrap();
        assert_eq!((whole.app.as_deref(), whole.groups.len(), whole.flags.len()), (Some("app_1"), 1, 1));
        // `state: on` and `state: off` are words, not YAML 1.1's booleans.
        assert_eq!(File::parse("key: a\nstate: off").unwrap().flags[0]["state"], "off");
        for wrong in ["3", "- state: off", "flags: 3", "key: [", "flags: [{}]"] {
            assert!(File::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_so_already_is_not_sent_again() {
        let present = json!({ "id": "flag_1", "key": "a", "state": "on", "rule": { "rolloutPct": 20.0 } });
        assert!(is_as(&present, &json!({ "key": "a", "rule": { "rolloutPct": 20 } })));
        assert!(!is_as(&present, &json!({ "key": "a", "state": "off" })));
        assert!(!is_as(&present, &json!({ "key": "a", "onValue": true })));
    }
}
