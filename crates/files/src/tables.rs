//! The tables of this room.

use std::time::Duration;

use store::{Table, table};

pub const TABLES: &[Table] = &[table!("files"("id") of app, workspace; expires "expires_at" + Duration::ZERO)];
