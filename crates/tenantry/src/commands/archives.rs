//! `tenantry app export`, `tenantry app import` and `tenantry archive verify`.

use std::path::Path;

use kernel::Secret;
use serde_json::{Value, json};
use service::archive::{self, Manifest};
use vault::ArchiveKey;

use super::{print, text};
use crate::{
    api::{Api, Upload},
    cli::{ArchiveCommand, ArchiveKeyFiles, Output},
    startup,
};

/// The server makes the archive, and this command saves what it sends.
pub async fn export(api: &Api, app: &str, file: &Path, key: &ArchiveKeyFiles, output: Output) -> Result<(), String> {
    if file.exists() {
        return Err(format!("{} already exists. Choose another name: nothing is overwritten.", file.display()));
    }
    let body = match read(key)? {
        Given::Passphrase(passphrase) => json!({ "passphrase": passphrase.expose() }),
        Given::Key(key) => json!({ "key": key.expose() }),
    };
    let partial = file.with_added_extension("partial");
    api.download(&format!("/admin/apps/{app}/export"), Some(&body), &partial).await?;
    std::fs::rename(&partial, file).map_err(|error| format!("Cannot write {}: {error}", file.display()))?;
    let bytes = file.metadata().map(|metadata| metadata.len()).unwrap_or_default();
    print(output, &json!({ "file": file, "bytes": bytes }), |_| {
        format!(
            "Wrote {} ({bytes} bytes).\nIt can only be opened with the passphrase or key that you gave: keep that too, in a \
             different place.",
            file.display()
        )
    });
    Ok(())
}

pub async fn import(
    api: &Api,
    file: &Path,
    dry_run: bool,
    key: &ArchiveKeyFiles,
    output: Output,
) -> Result<(), String> {
    let given = read(key)?;
    let header = match &given {
        Given::Passphrase(passphrase) => ("x-archive-passphrase", passphrase.expose().as_str()),
        Given::Key(key) => ("x-archive-key", key.expose().as_str()),
    };
    let path = format!("/admin/apps/import?dryRun={dry_run}");
    let upload = Upload { file, content_type: "application/octet-stream", secret: Some(header), watcher: None };
    let imported = api.upload(&path, &upload).await?;
    print(output, &imported, |imported| {
        let verb = if dry_run { "Nothing was imported. The archive would bring" } else { "Imported" };
        format!(
            "{verb} {} ({}, {}): {} rows, {} files.",
            text(imported, "/name"),
            text(imported, "/appId"),
            text(imported, "/domain"),
            imported["rows"],
            imported["files"]
        )
    });
    Ok(())
}

pub async fn run(command: ArchiveCommand) -> Result<(), String> {
    let ArchiveCommand::Verify { file, key, output } = command;
    let key = match read(&key)? {
        Given::Passphrase(passphrase) => ArchiveKey::Passphrase(passphrase),
        Given::Key(key) => ArchiveKey::Key(key.expose().parse().map_err(|wrong| format!("The key {wrong}."))?),
    };
    let manifest = archive::verify(&file, key).await.map_err(|error| startup::explain(&error))?;
    print(output, &told(&manifest), |_| {
        format!(
            "{} is whole. It holds {} ({}, {}) as of {}, made by release {}: {} rows, {} files.",
            file.display(),
            manifest.name,
            manifest.app_id,
            manifest.domain,
            manifest.made_at,
            manifest.release,
            manifest.rows(),
            manifest.files.len()
        )
    });
    Ok(())
}

fn told(manifest: &Manifest) -> Value {
    let tables: Vec<Value> =
        manifest.tables.iter().map(|table| json!({ "name": table.name, "rows": table.rows })).collect();
    json!({
        "appId": manifest.app_id, "name": manifest.name, "domain": manifest.domain, "madeAt": manifest.made_at,
        "release": manifest.release, "schema": manifest.schema, "rows": manifest.rows(),
        "files": manifest.files.len(), "missingFiles": manifest.missing_files, "tables": tables,
    })
}

/// What the file that was named holds.
enum Given {
    Passphrase(Secret<String>),
    Key(Secret<String>),
}

fn read(key: &ArchiveKeyFiles) -> Result<Given, String> {
    let first_line = |file: &Path| {
        let content =
            std::fs::read_to_string(file).map_err(|error| format!("Cannot read {}: {error}", file.display()))?;
        Ok::<_, String>(Secret::new(content.lines().next().unwrap_or_default().trim().to_owned()))
    };
    match (&key.passphrase_file, &key.key_file) {
        (Some(file), _) => Ok(Given::Passphrase(first_line(file)?)),
        (None, Some(file)) => Ok(Given::Key(first_line(file)?)),
        (None, None) => Err("Give --passphrase-file or --key-file.".to_owned()),
    }
}
