//! The tables of this room.

use store::{Table, table};

pub const TABLES: &[Table] = &[
    table!("prices"("id") of app),
    table!("plans"("id") of app),
    table!("taxes"("id") of app),
    table!("subscriptions"("id") of app, workspace),
    table!("trials"("tenant_id, plan_id") of app, workspace),
    table!("subscription_changes"("id") of app, workspace),
];
