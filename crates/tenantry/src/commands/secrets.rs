//! `tenantry secret rotate|list|retire`.

use serde_json::{Value, json};

use super::{print, table, text};
use crate::{api::Api, cli::SecretCommand};

pub async fn run(api: &Api, command: SecretCommand) -> Result<(), String> {
    match command {
        SecretCommand::Rotate { app, output } => {
            let secret = api.post(&format!("/admin/apps/{app}/secrets/rotate"), &json!({})).await?;
            print(output, &secret, |secret| {
                let id = text(secret, "/id");
                format!("New API tokens are signed with {id}.\nTokens signed by older secrets stay valid.")
            });
        }
        SecretCommand::List { app, output } => {
            let secrets = api.get(&format!("/admin/apps/{app}/secrets")).await?;
            print(output, &secrets, |secrets| {
                let rows: Vec<Vec<String>> = secrets.as_array().into_iter().flatten().map(row).collect();
                table(&["SECRET", "STATE", "TOKENS", "MADE"], &rows)
            });
        }
        SecretCommand::Retire { app, secret, output } => {
            let answer = api.delete(&format!("/admin/apps/{app}/secrets/{secret}")).await?;
            print(output, &answer, |_| format!("Retired {secret}. Tokens it signed are no longer accepted."));
        }
    }
    Ok(())
}

fn row(secret: &Value) -> Vec<String> {
    let state = match (&secret["retiredAt"], &secret["signs"]) {
        (Value::String(at), _) => format!("retired {at}"),
        (_, Value::Bool(true)) => "signs".to_owned(),
        _ => "verifies".to_owned(),
    };
    vec![text(secret, "/id").to_owned(), state, secret["tokens"].to_string(), text(secret, "/createdAt").to_owned()]
}
