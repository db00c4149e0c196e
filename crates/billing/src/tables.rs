//! The tables of this room.

use store::{Table, table};

pub const TABLES: &[Table] =
    &[table!("prices"("id") of app), table!("plans"("id") of app), table!("taxes"("id") of app)];
