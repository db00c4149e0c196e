//! `tenantry key create|list|revoke`.

use serde_json::{Value, json};

use super::{print, table, text};
use crate::{api::Api, cli::KeyCommand};

pub async fn run(api: &Api, command: KeyCommand) -> Result<(), String> {
    match command {
        KeyCommand::Create { app, name, privileges, output } => {
            let mut body = json!({ "name": name });
            if !privileges.is_empty() {
                body["privileges"] = json!(privileges);
            }
            let created = api.post(&format!("/admin/apps/{app}/keys"), &body).await?;
            print(output, &created, |created| {
                format!(
                    "Created {} ({}).\n\n  API key  {}\n\nKeep the key: it is not shown again.",
                    text(created, "/record/name"),
                    text(created, "/record/id"),
                    text(created, "/key")
                )
            });
        }
        KeyCommand::List { app, output } => {
            let keys = api.get(&format!("/admin/apps/{app}/keys")).await?;
            print(output, &keys, |keys| {
                let rows: Vec<Vec<String>> = keys.as_array().into_iter().flatten().map(row).collect();
                table(&["ID", "NAME", "CREATED", "LAST USED", "PRIVILEGES"], &rows)
            });
        }
        KeyCommand::Revoke { app, key, output } => {
            let answer = api.delete(&format!("/admin/apps/{app}/keys/{key}")).await?;
            print(output, &answer, |_| format!("Revoked {key}. It is no longer accepted."));
        }
    }
    Ok(())
}

fn row(key: &Value) -> Vec<String> {
    let privileges: Vec<&str> = key["privileges"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut row = ["/id", "/name", "/createdAt", "/lastUsedAt"].map(|at| text(key, at).to_owned()).to_vec();
    row.push(privileges.join(" "));
    row
}
