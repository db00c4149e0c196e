//! Taking over what was uploaded. Bytes that came through here have been looked at on their way; those that were posted to a
//! storage elsewhere are looked at now, and get a name of their own there, so that whoever still has the form changes nothing.

use kernel::{AppId, Code, Error, Result};
use vault::sha256_hex;

use ::store::Tx;

use crate::{
    File, FileState, Files,
    content::{self, FIRST, without_metadata},
    storage::{Remote, Storage},
    store,
};

/// The file with the object that its row shall name. Nothing of it counts before the row is written.
pub(crate) async fn take_over(files: &Files, file: File, remove_metadata: bool) -> Result<File> {
    match (&files.storage, file.state) {
        (Storage::S3(remote), FileState::Prepared) => take_over_posted(files, remote, file, remove_metadata).await,
        (Storage::Folder(_), FileState::Prepared) => Err(not_uploaded()),
        _ if remove_metadata => rewritten(files, file).await,
        _ => Ok(file),
    }
}

fn not_uploaded() -> Error {
    Error::new(Code::Conflict, "The file was not uploaded yet. Post it with the form of prepare first.")
}

/// Refuses a file that a workspace has no room for. Hold the workspace's lock.
pub(crate) fn check_room(tx: &mut Tx<'_>, files: &Files, app: AppId, file: &File) -> Result<()> {
    let most = i64::try_from(files.workspace_bytes).unwrap_or(i64::MAX);
    if store::used(tx, app, file.tenant)? + file.size > most {
        let message = format!("The files of a workspace have at most {most} bytes together. Delete some first.");
        return Err(Error::new(Code::BodyTooLarge, message));
    }
    Ok(())
}

pub(crate) fn too_large(most: u64) -> Error {
    Error::new(Code::BodyTooLarge, format!("A file has at most {most} bytes."))
}

async fn take_over_posted(files: &Files, remote: &Remote, file: File, remove_metadata: bool) -> Result<File> {
    let name = file.id.to_string();
    let held = remote.posted(&name).await?.ok_or_else(not_uploaded)?;
    // The form says so too; but forms are read by storages of many makers.
    if held.size > files.max_bytes {
        files.storage.discard(&name).await;
        return Err(too_large(files.max_bytes));
    }
    let first = remote.first_of_posted(&name, &held, FIRST).await?;
    let object = files.tenancy.db.entropy().base62(32);
    let size = i64::try_from(held.size).map_err(Error::internal)?;
    let fits_type = content::fits(&file.content_type, &first);
    let file = File { object, size, fits_type, sha256: String::new(), ..file };
    if remove_metadata && content::has_metadata(&file.content_type) {
        let bytes = remote.read_posted(&name, &held).await?;
        if let Some(rewritten) = put_without_metadata(files, &file, bytes).await? {
            return Ok(rewritten);
        }
    }
    remote.keep_posted(&name, &held, &file.object).await?;
    Ok(file)
}

/// The same file without what its picture carries beside itself, as another object.
async fn rewritten(files: &Files, file: File) -> Result<File> {
    if !content::has_metadata(&file.content_type) {
        return Ok(file);
    }
    let bytes = files.storage.read(&file.object).await?;
    let new = File { object: files.tenancy.db.entropy().base62(32), ..file.clone() };
    Ok(put_without_metadata(files, &new, bytes).await?.unwrap_or(file))
}

/// Puts these bytes under the file's object; `None` when they are no picture whose parts can be told.
async fn put_without_metadata(files: &Files, file: &File, bytes: Vec<u8>) -> Result<Option<File>> {
    let content_type = file.content_type.clone();
    let kept = tokio::task::spawn_blocking(move || without_metadata(&content_type, &bytes)).await;
    let Some(kept) = kept.map_err(Error::internal)? else { return Ok(None) };
    let (size, sha256) = (i64::try_from(kept.len()).map_err(Error::internal)?, sha256_hex(&kept));
    files.storage.put(&file.object, kept).await?;
    Ok(Some(File { size, sha256, ..file.clone() }))
}
