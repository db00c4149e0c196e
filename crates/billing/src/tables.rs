//! The tables of this room.

use std::time::Duration;

use store::{Table, table};

/// How long an event with the same idempotency key is known to be the same.
const KEYS_KEPT: Duration = Duration::from_hours(400 * 24);

pub const TABLES: &[Table] = &[
    table!("prices"("id") of app),
    table!("plans"("id") of app),
    table!("taxes"("id") of app),
    table!("subscriptions"("id") of app, workspace),
    table!("trials"("tenant_id, plan_id") of app, workspace),
    table!("subscription_changes"("id") of app, workspace),
    table!("entitlement_sets"("tenant_id") of app, workspace),
    table!("entitlement_overrides"("tenant_id") of app, workspace),
    table!("usage_counters"("tenant_id, metric, period_start") of app, workspace),
    table!("usage_events"("id") of app, workspace; expires "created_at" + KEYS_KEPT),
];
