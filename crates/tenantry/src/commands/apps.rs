//! `tenantry app create|list|get|update|delete|export|import`.

use serde_json::{Map, Value, json};

use super::{archives, print, table, text};
use crate::{api::Api, cli::AppCommand};

pub async fn run(api: &Api, command: AppCommand) -> Result<(), String> {
    match command {
        AppCommand::Create { name, domain, ui_url, redirect_uris, default_callback_uri, output } => {
            let mut body = json!({ "name": name, "domain": domain });
            let optional =
                [("uiUrl", ui_url.map(Value::from)), ("defaultCallbackUri", default_callback_uri.map(Value::from))];
            let redirects = (!redirect_uris.is_empty()).then(|| ("redirectUris", Some(Value::from(redirect_uris))));
            for (member, value) in optional.into_iter().chain(redirects) {
                if let Some(value) = value {
                    body[member] = value;
                }
            }
            let created = api.post("/admin/apps", &body).await?;
            print(output, &created, |created| {
                format!(
                    "Created {} ({}).\n\n  API key  {}\n\nKeep the key: it is not shown again.",
                    text(created, "/app/name"),
                    text(created, "/app/id"),
                    text(created, "/apiKey")
                )
            });
        }
        AppCommand::Get { app, output } => {
            let found = api.get(&format!("/admin/apps/{app}")).await?;
            print(output, &found, |found| format!("{found:#}"));
        }
        AppCommand::Update { app, name, ui_url, redirect_uris, default_callback_uri, set, output } => {
            let path = format!("/admin/apps/{app}");
            let named = [("name", name), ("uiUrl", ui_url), ("defaultCallbackUri", default_callback_uri)];
            let named = named.into_iter().filter_map(|(member, value)| Some((member.to_owned(), value?.into())));
            let redirects = (!redirect_uris.is_empty()).then(|| ("redirectUris".to_owned(), redirect_uris.into()));
            let change: Map<String, Value> = named.chain(redirects).chain(set).collect();
            if change.is_empty() {
                return Err("Say what to change, for example --name or --redirect-uri.".to_owned());
            }
            // The service ignores what it does not know, which on a command line is a slip of the finger.
            let before = api.get(&path).await?;
            if let Some(unknown) = change.keys().find(|member| before.get(member).is_none()) {
                return Err(format!("{unknown} is not a member of the profile; see `tenantry app get {app}`."));
            }
            let changed = api.put(&path, &Value::Object(change)).await?;
            print(output, &changed, |changed| format!("{changed:#}"));
        }
        AppCommand::Delete { app, confirm, output } => {
            let path = format!("/admin/apps/{app}");
            let found = api.get(&path).await?;
            if text(&found, "/domain") != confirm {
                let domain = text(&found, "/domain");
                return Err(format!(
                    "{app} has the domain {domain}. To delete it with all that is in it: --confirm {domain}"
                ));
            }
            let answer = api.delete(&path).await?;
            print(output, &answer, |_| format!("Deleted {app}. What is left of it is cleared away in the background."));
        }
        AppCommand::Export { app, file, key, output } => archives::export(api, &app, &file, &key, output).await?,
        AppCommand::Import { file, dry_run, key, output } => {
            archives::import(api, &file, dry_run, &key, output).await?;
        }
        AppCommand::List(output) => {
            let apps = api.get("/admin/apps").await?;
            print(output, &apps, |apps| {
                let rows: Vec<Vec<String>> = apps
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|app| ["/id", "/domain", "/name", "/createdAt"].map(|at| text(app, at).to_owned()).to_vec())
                    .collect();
                table(&["ID", "DOMAIN", "NAME", "CREATED"], &rows)
            });
        }
    }
    Ok(())
}
