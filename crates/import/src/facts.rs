//! What this room tells: that an import began, and how it ended. What it made tells of itself.

use crate::imports::{ImportId, ImportState};

spine::facts! {
    /// A batch was approved and will be imported.
    ImportStarted = "import.started" {
        reference: ImportId,
        /// Workspaces in the batch.
        tenants: i64,
        /// People in the batch, owners included.
        users: i64,
    }
    /// An import ended.
    ImportFinished = "import.finished" {
        reference: ImportId,
        status: ImportState,
        /// Workspaces that were made.
        tenants: i64,
        /// Members that were made.
        users: i64,
        /// Workspaces and people that could not be stored.
        left_out: i64,
    }
}
