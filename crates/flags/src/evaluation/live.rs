//! What the service itself knows about an access token's user and workspace, read for every evaluation, so that a change of
//! plan or role counts at once.

use billing::live::{LiveBilling, LiveSubscription};
use serde_json::{Map, Value, json};
use tenancy::{
    people::full_name,
    standing::{DetailedStanding, Standing},
};

use crate::rules::{Json, Live};

pub(super) fn attributes(known: DetailedStanding) -> Live {
    let DetailedStanding { standing, teams, user_created_at, tenant_metadata, tenant_app_metadata, tenant_created_at } =
        known;
    let Standing { first_name, last_name, .. } = &standing;
    let text = |text: String| Some(Json::text(text));
    let flag = |value: bool| Some(Json::Bool(value));
    Live {
        user: vec![
            ("id", text(standing.user.to_string())),
            ("name", text(full_name(first_name, last_name))),
            ("email", text(standing.email)),
            ("firstName", text(standing.first_name)),
            ("lastName", text(standing.last_name)),
            ("role", text(standing.role)),
            ("teams", Some(stored(&teams))),
            ("onboarded", flag(standing.onboarded)),
            ("parameters", Some(Json::owned(&Value::Object(standing.parameters.0)))),
            ("createdAt", text(user_created_at.to_string())),
        ],
        tenant: vec![
            ("id", text(standing.tenant.to_string())),
            ("name", text(standing.tenant_name)),
            ("plan", standing.plan.and_then(text)),
            ("locale", text(standing.tenant_locale)),
            ("trial", flag(standing.trial)),
            ("onboarded", flag(standing.tenant_onboarded)),
            ("metadata", Some(stored(&tenant_metadata))),
            ("appMetadata", Some(stored(&tenant_app_metadata))),
            ("createdAt", text(tenant_created_at.to_string())),
        ],
    }
}

/// What the workspace may use, how its subscription stands, and what it used. An app whose rules look at none of it does
/// not pay for the reading.
pub(super) fn billing(live: &LiveBilling) -> Vec<(&'static str, Option<Json<'static>>)> {
    let subscription = live.subscription.map(|LiveSubscription { status, trial, gate_engaged }| {
        json!({ "status": status.as_str(), "trial": trial, "gateEngaged": gate_engaged })
    });
    // Not nested, since a metric's name may have dots.
    let mut usage = Map::new();
    for (metric, used) in &live.usage {
        usage.insert(format!("{metric}.used"), json!(used.used));
        if let (Some(limit), Some(percent)) = (used.limit, used.percent()) {
            usage.extend([(format!("{metric}.limit"), json!(limit)), (format!("{metric}.pct"), json!(percent))]);
        }
    }
    vec![
        ("entitlements", Some(Json::owned(&json!(live.entitlements)))),
        ("subscription", subscription.as_ref().map(Json::owned)),
        ("usage", Some(Json::owned(&Value::Object(usage)))),
    ]
}

/// JSON that this service wrote.
fn stored(text: &str) -> Json<'static> {
    Json::owned(&serde_json::from_str::<Value>(text).unwrap_or_default())
}
