//! The tables of this room. Rows of users who are gone are deleted by the reader of such facts.

use store::{Table, table};

pub const TABLES: &[Table] = &[
    table!("scim_users"("id") of app, workspace),
    table!("scim_groups"("id") of app, workspace),
    table!("scim_group_members"("group_id, member_id") of app, workspace),
];
