//! `tenantry signing-key rotate|revoke|list`.

use serde_json::{Value, json};

use super::{print, table, text};
use crate::{api::Api, cli::KeysCommand};

pub async fn run(api: &Api, command: KeysCommand) -> Result<(), String> {
    match command {
        KeysCommand::Rotate(output) => {
            let rotation = api.post("/admin/signing-keys/rotate", &json!({})).await?;
            print(output, &rotation, |rotation| {
                format!(
                    "Published the signing key {}.\nIt signs from {} on; tokens signed by older keys stay valid.",
                    text(rotation, "/key/kid"),
                    text(rotation, "/key/activeFrom")
                )
            });
        }
        KeysCommand::Revoke { kid, output } => {
            let revocation = api.post(&format!("/admin/signing-keys/{kid}/revoke"), &json!({})).await?;
            print(output, &revocation, |revocation| {
                format!(
                    "Revoked the signing key {kid}: everybody with tokens signed by it has to sign in again.\nThe newest key is {}, \
                     which signs from {} on.",
                    text(revocation, "/key/kid"),
                    text(revocation, "/key/activeFrom")
                )
            });
        }
        KeysCommand::List(output) => {
            let keys = api.get("/admin/signing-keys").await?;
            print(output, &keys, |keys| {
                let shown = |key: &Value, at: &str| match key.pointer(at).and_then(Value::as_str) {
                    Some(text) => text.to_owned(),
                    None => "-".to_owned(),
                };
                let rows: Vec<Vec<String>> = keys
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|key| ["/kid", "/activeFrom", "/retiresAt"].map(|at| shown(key, at)).to_vec())
                    .collect();
                table(&["KEY", "SIGNS FROM", "RETIRES"], &rows)
            });
        }
    }
    Ok(())
}
