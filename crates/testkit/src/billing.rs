//! Plans and subscriptions, as tests make and look at them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{Caller, TestApp, catalog::PLANS};

pub const DAY: Duration = Duration::from_hours(24);

/// Makes a plan; without an amount it is free, and without days it has no trial.
pub async fn plan(app: &TestApp, key: &str, amount: Option<f64>, trial_days: Option<u32>) -> Value {
    let price = |amount: f64| json!({ "amount": amount, "currency": "EUR", "recurrenceInterval": "month" });
    let prices: Vec<Value> = amount.map(price).into_iter().collect();
    let body = json!({
        "key": key, "name": format!("The {key} plan"), "prices": prices, "trial": trial_days.is_some(),
        "trialDays": trial_days,
    });
    app.key().post(PLANS, body).await.expect(200).json()
}

/// Puts a quota and an entitlement on the plan with this path.
pub async fn change_plan(app: &TestApp, plan: &Value, change: Value) -> Value {
    app.key().put(&crate::catalog::plan_path(plan), change).await.expect(200).json()
}

/// Turns on a payment provider that is never asked.
pub async fn enable_provider(app: &TestApp, secret: &str) {
    app.key().put("/account/app", json!({ "payproviderEnabled": true })).await.expect(200);
    app.key().put("/account/app/credentials", json!({ "payproviderSecretKey": secret })).await.expect(200);
}

/// The kinds of the facts that webhooks tell about billing, in order.
pub async fn events(app: &TestApp) -> Vec<String> {
    let query = "SELECT kind FROM outbox WHERE tenant_id IS NOT NULL ORDER BY id";
    let facts = app.service().core().db.read(move |tx| tx.all::<(String,)>(query, &[])).await;
    let about_billing = |kind: &String| {
        ["subscription.", "payment.", "quota.", "entitlements.", "usage.drift"]
            .iter()
            .any(|start| kind.starts_with(start))
            && !matches!(
                kind.as_str(),
                "subscription.price_changed" | "subscription.change_scheduled" | "subscription.updated"
            )
    };
    facts.expect("the outbox can be read").into_iter().map(|(kind,)| kind).filter(about_billing).collect()
}

pub async fn state(user: &Caller) -> Value {
    user.get("/billing/state").await.expect(200).json()
}
