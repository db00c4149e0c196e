//! `tenantry signing-key rotate|revoke|list`.

use serde_json::{Value, json};

use super::{print, table, text};
use crate::{api::Api, cli::KeysCommand};

pub async fn run(api: &Api, command: KeysCommand) -> Result<(), String> {
    match command {
        KeysCommand::Rotate { saml: true, output } => {
            let rotation = api.post("/admin/saml-keys/rotate", &json!({})).await?;
            print(output, &rotation, |rotation| {
                format!(
                    "Published the SAML key {} in every connection's metadata.\nThe one before opens assertions for 30 days: have \
                     identity providers that do not fetch metadata themselves load it again until then.",
                    text(rotation, "/key/id")
                )
            });
        }
        KeysCommand::Rotate { saml: false, output } => {
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
        KeysCommand::List { saml: true, output } => {
            let keys = api.get("/admin/saml-keys").await?;
            print(output, &keys, |keys| listed(keys, ["/id", "/createdAt", "/retiresAt"], ["KEY", "MADE", "RETIRES"]));
        }
        KeysCommand::List { saml: false, output } => {
            let keys = api.get("/admin/signing-keys").await?;
            let titles = ["KEY", "SIGNS FROM", "RETIRES"];
            print(output, &keys, |keys| listed(keys, ["/kid", "/activeFrom", "/retiresAt"], titles));
        }
    }
    Ok(())
}

fn listed(keys: &Value, columns: [&str; 3], titles: [&str; 3]) -> String {
    let shown = |key: &Value, at: &str| key.pointer(at).and_then(Value::as_str).unwrap_or("-").to_owned();
    let keys = keys.as_array().into_iter().flatten();
    let rows: Vec<Vec<String>> = keys.map(|key| columns.map(|at| shown(key, at)).to_vec()).collect();
    table(&titles, &rows)
}
