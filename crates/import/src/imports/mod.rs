//! Imports: what a batch becomes once it is approved, how far it has come, and the job that carries it out.

mod fetch;
pub(crate) mod http;
mod job;
pub(crate) mod operator;
mod source;
mod staging;
mod store;
mod turn;

use std::fmt::Display;

use ::store::text_enum;
use kernel::{AppId, Author, Timestamp, id_kinds};

use crate::batch::Findings;
pub(crate) use job::Importing;
use source::Source;
pub(crate) use staging::Staging;

id_kinds! {
    /// One import; `reference` on the wire.
    ImportId(BulkImport) = "import";
}

text_enum! {
    /// How far an import has come.
    #[schemars(rename = "ImportState")]
    wire pub enum ImportState {
        /// The batch is still being read: nobody sees it.
        #[schemars(skip)]
        Reading = "READING",
        Scheduled = "SCHEDULED",
        Running = "RUNNING",
        Completed = "COMPLETED",
        Error = "ERROR",
    }
}

/// An import as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    pub(crate) id: ImportId,
    pub(crate) app: AppId,
    pub(crate) state: ImportState,
    pub(crate) tenants: i64,
    pub(crate) users: i64,
    pub(crate) passwords: bool,
    pub(crate) errors: Findings,
    pub(crate) warnings: Findings,
    pub(crate) done_tenants: i64,
    pub(crate) done_users: i64,
    pub(crate) left_out: i64,
    /// The workspace that is being filled: its place in the batch, and its id unless it could not be made.
    pub(crate) item: Option<i64>,
    pub(crate) workspace: Option<String>,
    /// Whether webhooks are left out.
    pub(crate) quiet: bool,
    /// In whose name it runs.
    pub(crate) author: Author,
    pub(crate) created_at: Timestamp,
}

impl Import {
    /// Notes what of the batch could not be stored any more.
    fn leave_out(&mut self, place: impl Display, problem: impl Display) {
        self.errors.add(place, problem);
        self.left_out += 1;
    }
}
