//! Bulk import: workspaces and their people from another system, all of them or none.
//!
//! A batch is judged while it is read and staged in sealed rows that nobody sees. Once it is approved, a job turns the rows
//! into workspaces and members, a few at a time: each row goes in the transaction that uses it, so that none is lost or
//! used twice, whatever is killed when.

mod batch;
pub mod facts;
mod imports;
mod tables;

use std::sync::Arc;

use files::Files;
use spine::{Runner, Signal, outbound::Outbound};
use tenancy::{OperatorKey, Tenancy};
use web::Routes;

pub use batch::{CsvReader, CsvRow, ImportUser, PeopleTable, Person, Piece, Place, Splitter};
pub use imports::ImportId;
use imports::Importing;
pub use tables::{CLAIMS, TABLES};

/// What the routes of this room work with. Cheap to clone.
#[derive(Clone)]
pub struct Imports {
    pub(crate) tenancy: Tenancy,
    pub(crate) outbound: Outbound,
    pub(crate) files: Arc<Files>,
    /// Rung when a batch was approved.
    pub(crate) due: Signal,
}

impl Imports {
    pub fn new(tenancy: Tenancy, outbound: Outbound, files: Files) -> Self {
        Self { tenancy, outbound, files: Arc::new(files), due: Signal::new() }
    }

    /// Adds the background work of this room.
    pub fn register(&self, runner: &Runner) {
        runner.add(Importing::new(self.clone()));
    }
}

impl AsRef<Tenancy> for Imports {
    fn as_ref(&self) -> &Tenancy {
        &self.tenancy
    }
}

impl AsRef<OperatorKey> for Imports {
    fn as_ref(&self) -> &OperatorKey {
        &self.tenancy.operator
    }
}

pub fn routes() -> Routes<Imports> {
    imports::http::routes().merge(imports::operator::routes())
}
