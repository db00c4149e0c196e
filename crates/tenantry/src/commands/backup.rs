//! `tenantry backup FILE` and `tenantry restore FILE`.

use std::path::Path;

use serde_json::json;
use service::installation::Recovered;

use super::print;
use crate::{api::Api, cli::Output, config::Config, startup};

/// The server makes the backup, and this command saves what it sends.
pub async fn backup(api: &Api, file: &Path, output: Output) -> Result<(), String> {
    if file.exists() {
        return Err(format!("{} already exists. Choose another name: a backup is never overwritten.", file.display()));
    }
    let partial = file.with_added_extension("partial");
    api.download("/admin/backup", None, &partial).await?;
    std::fs::rename(&partial, file).map_err(|error| format!("Cannot write {}: {error}", file.display()))?;
    let bytes = file.metadata().map(|metadata| metadata.len()).unwrap_or_default();
    print(output, &json!({ "file": file, "bytes": bytes }), |_| {
        format!(
            "Wrote {} ({bytes} bytes).\nSecrets in it stay encrypted: keep the master key too, in a different place.",
            file.display()
        )
    });
    Ok(())
}

/// Needs an empty store and the master key that the backup's secrets are sealed with.
pub async fn restore(config: &Config, file: &Path, output: Output) -> Result<(), String> {
    let recovered = startup::restore(config, file).await.map_err(|error| startup::explain(&error))?;
    let Recovered { rows, tables, operator_file } = recovered;
    let answer = json!({ "file": file, "tables": tables, "rows": rows, "operatorKeyFile": operator_file });
    print(output, &answer, |_| {
        let kept = match &operator_file {
            Some(file) => format!("in {}", file.display()),
            None => "as configured".to_owned(),
        };
        format!("Restored {rows} rows of {tables} tables into {}.\nThe operator key is {kept}.", config.database)
    });
    Ok(())
}
