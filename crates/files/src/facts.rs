//! What this room tells.

use crate::FileId;

spine::facts! {
    /// A form for an upload was handed out.
    FilePrepared = "file.prepared" { key: FileId, file_name: String, content_type: String }
    /// A file was uploaded and taken over.
    FileStored = "file.stored" {
        key: FileId,
        file_name: String,
        /// In bytes.
        size: i64,
        /// Whether it stays beyond a day.
        persisted: bool,
        /// Whether its address works until it is deleted.
        public: bool,
    }
    /// A file was deleted.
    FileDeleted = "file.deleted" { key: FileId, file_name: String }
}
