//! `tenantry backup FILE` and `tenantry restore FILE`.

use std::path::Path;

use serde_json::json;
use service::installation::Recovered;
use store::{AttachedCounts, read_backup_info};

use super::print;
use crate::{api::Api, cli::Output, config::Config, startup};

/// The server makes the backup, and this command saves what it sends.
pub async fn backup(api: &Api, file: &Path, with_files: bool, output: Output) -> Result<(), String> {
    if file.exists() {
        return Err(format!("{} already exists. Choose another name: a backup is never overwritten.", file.display()));
    }
    let partial = file.with_added_extension("partial");
    api.download(&format!("/admin/backup?withFiles={with_files}"), None, &partial).await?;
    let info = read_backup_info(&partial).await.map_err(|error| startup::explain(&error))?;
    std::fs::rename(&partial, file).map_err(|error| format!("Cannot write {}: {error}", file.display()))?;
    let bytes = file.metadata().map(|metadata| metadata.len()).unwrap_or_default();
    let AttachedCounts { held, missing, left_out } = info.attached;
    let answer = json!({
        "file": file, "bytes": bytes, "files": held, "filesMissing": missing, "filesLeftOut": left_out,
    });
    print(output, &answer, |_| {
        let held = told(held, "of workspaces: they are in it as they are, for whoever has it to read.");
        let missing = told(missing, "could not be found; tenantry doctor names them.");
        let left_out = told(
            left_out,
            "of workspaces are not in it: use --with-files, or keep a copy of their folder. Those in an S3 bucket are never in it: see to copies of the bucket.",
        );
        format!(
            "Wrote {} ({bytes} bytes).\nSecrets in it stay encrypted: keep the master key too, in a different place. \
             Neither that key nor the operator key is in it.{held}{missing}{left_out}",
            file.display()
        )
    });
    Ok(())
}

/// A line of its own, where there is something to tell.
fn told(count: u64, what: &str) -> String {
    match count {
        0 => String::new(),
        1 => format!("\n1 file {what}"),
        count => format!("\n{count} files {what}"),
    }
}

/// Needs an empty store and the master key that the backup's secrets are sealed with.
pub async fn restore(config: &Config, file: &Path, output: Output) -> Result<(), String> {
    let recovered = startup::restore(config, file).await.map_err(|error| startup::explain(&error))?;
    let Recovered { rows, tables, files, operator_file } = recovered;
    let AttachedCounts { held, missing, left_out } = files;
    let answer = json!({
        "file": file, "tables": tables, "rows": rows, "operatorKeyFile": operator_file, "files": held,
        "filesMissing": missing, "filesLeftOut": left_out,
    });
    print(output, &answer, |_| {
        let kept = match &operator_file {
            Some(file) => format!("in {}", file.display()),
            None => "as configured".to_owned(),
        };
        let folder = config.files.place.shown();
        let held = told(held, &format!("of workspaces were put into {folder}."));
        let missing = told(missing, "were missing when the backup was made; tenantry doctor names them.");
        let left_out = told(left_out, &format!("of workspaces are not in the backup: bring them back to {folder}."));
        format!(
            "Restored {rows} rows of {tables} tables into {}.\nThe operator key is {kept}.{held}{missing}{left_out}",
            config.database
        )
    });
    Ok(())
}
