//! `POST /admin/backup`: the whole store as one file, made by the server while it keeps working.

use std::{path::PathBuf, sync::Arc, time::Duration};

use http::StatusCode;
use kernel::{Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Attached, AttachedSource};
use tenancy::callers::Operator;
use web::{Describe, Operation, Params, Routes, State};

use super::download;
use crate::{Core, MIGRATIONS, installation};

pub fn routes() -> Routes<Core> {
    Routes::new("Operations")
        .post("/admin/backup", make, "Make a backup and download it")
        // As long as it takes: a large store is read whole before the first byte is sent.
        .timeout(Duration::from_hours(6))
        .description(
            "One file with everything in it, in the same format from either engine. Secrets in it stay sealed under the \
             master key, which is not part of it. Files of workspaces are in it `withFiles`, as they are, unless they \
             are in a storage elsewhere; it says how many there are. The service keeps accepting writes meanwhile.",
        )
}

struct BackupFile(axum::response::Response);

impl axum::response::IntoResponse for BackupFile {
    fn into_response(self) -> axum::response::Response {
        self.0
    }
}

impl Describe for BackupFile {
    fn describe(operation: &mut Operation) {
        operation.raw_answer(StatusCode::OK, "application/vnd.sqlite3");
    }
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BackupQuery {
    /// Whether it holds the bytes of workspaces' files, too.
    with_files: Option<bool>,
}

async fn make(_: Operator, State(core): State<Core>, Params(query): Params<BackupQuery>) -> Result<BackupFile> {
    let folder = core.backup_folder.clone();
    store::private::create_folder(&folder).map_err(Error::internal)?;
    let file = Temporary(folder.join(format!("backup-{}.sqlite", core.db.entropy().base62(12))));
    let info = installation::backup_info(&core.keyring);
    let info: Vec<(&str, &str)> = info.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let storage = core.files.storage();
    // What lies in a storage elsewhere has copies of its own there.
    let is_held = query.with_files.unwrap_or(false) && !storage.is_remote();
    let source = is_held.then(|| Arc::new(storage.clone()) as Arc<dyn AttachedSource>);
    let files = Attached { names: files::OBJECTS, source };
    core.db.backup_to(&file.0, &info, Some(files), core.keyring.backup_key(), MIGRATIONS).await?;
    // Whoever cannot note it has a backup all the same: a full disk is the best time for one.
    if let Err(error) = installation::note_backup(&core.db).await {
        tracing::warn!(?error, "the time of the backup could not be noted");
    }

    // Its name goes at once, so that nothing is left behind however the download ends.
    let response = download::stream(&file.0, "application/vnd.sqlite3").await?;
    Ok(BackupFile(response))
}

/// A file that is removed when it is no longer needed, also when making it failed.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(file = %self.0.display(), %error, "a temporary backup could not be removed");
        }
    }
}
