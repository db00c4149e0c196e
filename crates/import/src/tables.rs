//! The tables of this room.

use std::time::Duration;

use store::{Table, table};

/// Longer than any batch takes to arrive.
pub(crate) const STAGED_FOR: Duration = Duration::from_hours(1);

pub const TABLES: &[Table] = &[
    // Staged rows before what they belong to: a batch that was cut off leaves them behind.
    table!("import_rows"("id") of app; expires "expires_at" + Duration::ZERO,
        unless "EXISTS (SELECT 1 FROM imports WHERE imports.id = import_rows.import_id)"; sealed "sealed" by "id"),
    table!("imports"("id") of app; expires "expires_at" + Duration::ZERO; acted_on "the importer"),
];

/// What ends the claims on rows of this room.
pub const CLAIMS: &[&str] = &[spine::claims!("imports")];
