//! The tables of this room.

use store::{Table, table};

/// Signing keys are sealed again by [`SigningKeys::reseal`](crate::SigningKeys::reseal): they belong to no app.
pub const TABLES: &[Table] = &[table!("signing_keys"("kid"))];
