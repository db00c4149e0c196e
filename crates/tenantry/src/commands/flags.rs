//! `tenantry flag list|get|apply|delete`: flags that live in a repository, in YAML or JSON.

use serde_json::{Map, Value, json};

use super::{flag_file::FlagFile, print, table, text};
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
            let file = FlagFile::read(&file)?;
            let app = app(api, &of, file.app.as_deref()).await?;
            let done = api.post(&format!("/admin/apps/{app}/flags/apply"), &file.body(dry_run)).await?;
            let done = Value::from_iter(list_of(&done).iter().map(|step| told(step, dry_run)));
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

/// One step of a file; of a dry run, what it would be.
fn told(step: &Value, dry_run: bool) -> Value {
    let action = match text(step, "/action") {
        "created" if dry_run => "would create",
        "changed" if dry_run => "would change",
        action => action,
    };
    json!({ "action": action, "kind": step["kind"], "key": step["key"] })
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
