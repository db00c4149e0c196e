//! `tenantry key create|revoke`.

use serde_json::json;

use super::{print, text};
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
        KeyCommand::Revoke { app, key, output } => {
            let answer = api.delete(&format!("/admin/apps/{app}/keys/{key}")).await?;
            print(output, &answer, |_| format!("Revoked {key}. It is no longer accepted."));
        }
    }
    Ok(())
}
