//! A batch as it arrives: cut into pieces, judged piece by piece, and told about with the place of everything that is wrong.

mod csv;
mod cut;
mod doubles;
mod findings;
mod form;
mod people_table;
mod place;
#[cfg(test)]
mod properties;
mod splitter;
mod staged;
mod survey;

pub use csv::{CsvReader, CsvRow};
pub(crate) use findings::{Findings, with_value};
pub use form::ImportUser;
pub(crate) use form::{ImportBatch, ImportTenant};
pub use people_table::PeopleTable;
pub use place::Place;
pub use splitter::{Person, Piece, Splitter};
pub(crate) use staged::{Bundle, StagedTenant, StagedUser};
pub(crate) use survey::{Judged, Survey};

/// In one batch.
pub(crate) const MOST_TENANTS: usize = 10_000;
/// In one batch, owners included.
pub(crate) const MOST_USERS: usize = 100_000;
/// People that one transaction stores at most: a transaction stays below ten milliseconds.
pub(crate) const MOST_AT_ONCE: usize = 32;
