//! Archives of one app: everything in it, encrypted, for another installation on either engine and under another master key.
//!
//! Which tables belong to an app is what the rooms' registers say; nothing is listed here. An archive is checked whole before
//! anything is stored, goes through a scratch store that today's migrations are applied to, and its app becomes visible in
//! the last transaction of an import.

mod cells;
mod contents;
mod export;
mod folder;
mod http;
mod import;
mod manifest;
mod scratch;

use std::{io, path::Path};

use kernel::{AppId, Code, Error, Result};
use store::{Arg, Owner, Table, ToArg as _};
use vault::ArchiveKey;

use contents::Archive;
pub(crate) use folder::clear;
pub(crate) use http::routes;
pub use manifest::{FilePart, Manifest, SealedPart, TablePart};

/// The table of apps themselves.
const APPS: &str = "apps";

/// Refuses an archive that is not whole, and says what is in one that is.
pub async fn verify(file: &Path, key: ArchiveKey) -> Result<Manifest> {
    let file = file.to_owned();
    blocking(move || {
        let archive = Archive::open(&file, &key)?;
        archive.verify()?;
        Ok(archive.manifest)
    })
    .await
}

/// The tables whose rows move with an app. The app itself is the first.
fn moving() -> Vec<&'static Table> {
    let apps = crate::tables::all().filter(|table| table.name == APPS);
    let moves = |table: &&Table| table.purge_of(Owner::App).is_some() && table.stays.is_none();
    apps.chain(crate::tables::all().filter(moves)).collect()
}

/// The column of such a table that names the app, and what stands there.
fn naming(table: &Table, app: AppId) -> (&'static str, Arg<'static>) {
    match table.purge_of(Owner::App) {
        Some(owned) => (owned.app.as_str(), owned.app.of(app)),
        None => ("id", app.to_arg().into_owned()),
    }
}

/// Runs what waits for files and ciphers in a thread that may wait.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)?
}

/// What a failed read or write of an archive means: the archive is to blame, or the disk.
fn unreadable(error: io::Error) -> Error {
    if vault::is_refusal(&error) {
        return Error::invalid("archive", error.to_string());
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::invalid("archive", "ends too early"),
        _ => Error::new(
            Code::StorageUnavailable,
            "An archive cannot be written or read here at the moment: is the disk full?",
        )
        .with_source(error),
    }
}
