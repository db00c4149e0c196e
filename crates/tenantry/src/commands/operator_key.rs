//! `tenantry operator-key rotate`.

use std::path::Path;

use serde_json::json;

use super::{print, text};
use crate::{api::Api, cli::OperatorKeyCommand};

pub async fn run(api: &Api, command: OperatorKeyCommand) -> Result<(), String> {
    let OperatorKeyCommand::Rotate { now, key_file, output } = command;
    let mut body = json!({ "now": now });
    if let Some(file) = &key_file {
        body["key"] = read(file)?.into();
    }
    let replaced = api.post("/admin/operator-key", &body).await?;
    print(output, &replaced, |replaced| {
        let kept = match key_file {
            None => {
                format!("  Operator key  {}\n\nIt is kept in operator.key in the data folder.", text(replaced, "/key"))
            }
            Some(file) => format!("The operator key is the one in {}.", file.display()),
        };
        let before = match now {
            true => "The key before it is refused from now on.".to_owned(),
            false => format!("The key before it works until {}.", text(replaced, "/previousUntil")),
        };
        format!("{kept} {before}")
    });
    Ok(())
}

fn read(file: &Path) -> Result<String, String> {
    let content = std::fs::read_to_string(file).map_err(|error| format!("Cannot read {}: {error}", file.display()))?;
    Ok(content.trim().to_owned())
}
