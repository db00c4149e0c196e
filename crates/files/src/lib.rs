//! Files of workspaces: uploaded by a form that the app hands out, kept under names of our own in a folder or in a storage
//! elsewhere, and read under signed addresses.
//!
//! Bytes go through in pieces and never as a whole. A row says that a file exists; bytes without a row are swept.

mod archive;
mod census;
mod content;
mod download;
pub mod facts;
mod http;
mod multipart;
mod names;
mod storage;
mod store;
mod sweep;
mod tables;
mod takeover;
mod tickets;
mod upload;
mod upload_form;

use std::time::Duration;

use ::store::text_enum;
use kernel::{TenantId, Timestamp, id_kinds};
use spine::Runner;
use tenancy::{OperatorKey, Tenancy};
use web::Routes;

pub use archive::{OBJECTS, StoredObject, archived};
pub use census::Census;
pub use download::OwnFile;
pub use storage::{Allowed, Fault, Place, S3Address, Storage};
use sweep::Sweep;
pub use tables::TABLES;
pub use tickets::{Ticket, UploadTicket};
pub use upload_form::{Arrived, UploadForm};

id_kinds! {
    /// A file; `key` on the wire.
    FileId(WorkspaceFile) = "file";
}

/// How long a file stays that nobody asked to keep.
pub(crate) const UNKEPT: Duration = Duration::from_hours(24);

/// How large files may be, and where they are.
#[derive(Clone, Debug)]
pub struct Settings {
    pub place: Place,
    /// Of one file.
    pub max_bytes: u64,
    /// Of all files of a workspace.
    pub workspace_bytes: u64,
}

/// What the routes of this room work with. Cheap to clone.
#[derive(Clone)]
pub struct Files {
    pub(crate) tenancy: Tenancy,
    pub(crate) storage: Storage,
    pub(crate) max_bytes: u64,
    pub(crate) workspace_bytes: u64,
}

impl Files {
    /// Within a runtime.
    pub fn new(tenancy: Tenancy, settings: Settings) -> Self {
        let Settings { place, max_bytes, workspace_bytes } = settings;
        Self { tenancy, storage: Storage::new(place), max_bytes, workspace_bytes }
    }

    /// Where the bytes are.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Adds the background work of this room.
    pub fn register(&self, runner: &Runner) {
        runner.add(Sweep::new(self.tenancy.db.clone(), self.storage.clone()));
    }
}

text_enum! {
    /// How far a file has come.
    pub(crate) enum FileState {
        /// The form was handed out.
        Prepared = "prepared",
        /// The bytes are here.
        Uploaded = "uploaded",
        Finished = "finished",
    }
}

/// A file as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) id: FileId,
    pub(crate) tenant: TenantId,
    /// What the bytes are called in the storage.
    pub(crate) object: String,
    pub(crate) file_name: String,
    pub(crate) content_type: String,
    pub(crate) state: FileState,
    pub(crate) size: i64,
    /// SHA-256 of the bytes, in hex; empty where they never passed here.
    pub(crate) sha256: String,
    /// Whether the first bytes are what the type says.
    pub(crate) fits_type: bool,
    pub(crate) persisted: bool,
    pub(crate) public_file: bool,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) created_at: Timestamp,
}

impl AsRef<Tenancy> for Files {
    fn as_ref(&self) -> &Tenancy {
        &self.tenancy
    }
}

impl AsRef<OperatorKey> for Files {
    fn as_ref(&self) -> &OperatorKey {
        &self.tenancy.operator
    }
}

pub fn routes() -> Routes<Files> {
    http::routes().merge(upload::routes()).merge(download::routes())
}
