//! The tables of this room.

use std::time::Duration;

use store::{Table, table};

/// How long a checkout can still be confirmed.
const SESSIONS_KEPT: Duration = Duration::from_hours(90 * 24);

pub const TABLES: &[Table] = &[
    table!("prices"("id") of app),
    table!("plans"("id") of app),
    table!("taxes"("id") of app),
    table!("subscriptions"("id") of app, workspace; acted_on "what time does to subscriptions"),
    table!("trials"("tenant_id, plan_id") of app, workspace),
    table!("subscription_changes"("id") of app, workspace),
    table!("checkout_sessions"("id") of app, workspace; expires "expires_at" + SESSIONS_KEPT),
    table!("sandbox_subscriptions"("tenant_id") of app, workspace; acted_on "the sandbox's charges"),
    table!("sandbox_portals"("digest") of app, workspace; expires "expires_at" + Duration::ZERO),
    table!("provider_objects"("app_id, account, kind, key") of app),
    table!("provider_customers"("tenant_id, account") of app, workspace),
    table!("provider_subscriptions"("tenant_id") of app, workspace),
    table!("provider_intents"("id") of app, workspace; acted_on "what is left to do with the provider"),
    table!("provider_endpoints"("app_id") of app; acted_on "registering with the provider"),
    table!("provider_events"("app_id, event_id") of app; expires "expires_at" + Duration::ZERO;
        acted_on "what the provider told"),
    table!("entitlement_sets"("tenant_id") of app, workspace; acted_on "entitlements that time changes"),
    table!("entitlement_overrides"("tenant_id") of app, workspace),
    table!("usage_counters"("tenant_id, metric, period_start") of app, workspace; acted_on "usage syncs"),
    table!("usage_events"("id") of app, workspace; expires "expires_at" + Duration::ZERO),
];
