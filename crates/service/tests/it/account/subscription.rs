//! `/account/subscription/status`, `select` and `change`.

use serde_json::{Value, json};
use testkit::{
    TestApp, assert_body,
    billing::{enable_provider, events, plan, state},
    facts::told,
    on_both_engines,
};

on_both_engines!(
    the_status_tells_what_is_missing,
    only_a_free_plan_is_selected,
    a_change_counts_at_once_without_a_provider,
    a_paid_plan_is_not_changed_to_past_the_provider,
    a_plan_set_by_key_is_a_subscription_too,
);

const SELECT: &str = "/account/subscription/select";
const CHANGE: &str = "/account/subscription/change";
const STATUS: &str = "/account/subscription/status";

async fn the_status_tells_what_is_missing(app: TestApp) {
    let user = app.workspace("acme").await.owner();
    assert_body!(user.get(STATUS).await.expect(200), @r#"
    {
      "paymentFailed": false,
      "paymentsAutoRedirect": false,
      "paymentsEnabled": false,
      "shouldSelectPlan": true,
      "shouldSetupPayments": false,
      "trial": false,
      "trialDaysLeft": 0
    }
    "#);
    user.post(SELECT, json!({ "planKey": "free" })).await.expect(201);
    let status = user.get(STATUS).await.expect(200);
    assert_eq!((status.at("/shouldSelectPlan"), status.text("/plan/key")), (json!(false), "free".to_owned()));
    let offered = user.get("/account/subscription/plans").await.expect(200).at("/0");
    assert_eq!(status.at("/plan"), offered);
}

async fn only_a_free_plan_is_selected(app: TestApp) {
    let user = app.workspace("acme").await.owner();
    user.post(SELECT, json!({ "planKey": "pro" })).await.refuses(&["planKey"]);
    user.post(SELECT, json!({ "planKey": "nonesuch" })).await.refuses(&["planKey"]);
    user.post(SELECT, json!({})).await.refuses(&["planKey"]);
    user.get("/billing/state").await.error(404, "NOT_FOUND");
    assert_eq!(user.post(SELECT, json!({ "planKey": "free" })).await.expect(201).body(), "");
    user.post(SELECT, json!({ "planKey": "free" })).await.expect(201);
    assert_eq!(events(&app).await, ["subscription.created"]);
}

async fn a_change_counts_at_once_without_a_provider(app: TestApp) {
    let workspace = app.workspace("acme").await;
    let user = workspace.owner();
    user.post(CHANGE, json!({ "planKey": "nonesuch" })).await.refuses(&["planKey"]);
    let yearly = json!({ "currency": "EUR", "recurrenceInterval": "year" });
    user.post(CHANGE, json!({ "planKey": "pro", "priceOffer": yearly })).await.refuses(&["priceOffer"]);
    assert_eq!(user.post(CHANGE, json!({ "planKey": "pro" })).await.expect(201).body(), "");
    assert_eq!(state(&user).await["status"], "active");
    user.post(CHANGE, json!({ "planKey": "pro" })).await.expect(201);
    let dollars = json!({ "currency": "USD", "recurrenceInterval": "month" });
    user.post(CHANGE, json!({ "planKey": "pro", "priceOffer": dollars })).await.expect(201);
    user.post(CHANGE, json!({ "planKey": "pro", "priceOffer": dollars })).await.expect(201);
    let details = app.key().get(&format!("/account/tenant/{}/paymentDetails", workspace.id)).await.expect(200);
    assert_eq!(details.at("/priceOffer"), dollars);
    user.post(CHANGE, json!({ "planKey": "free" })).await.expect(201);
    assert_eq!(events(&app).await, ["subscription.created", "subscription.plan_changed"]);
    let (_, data) = told(&app, "subscription.plan_changed").await.remove(0);
    assert_eq!((&data["fromPlan"], &data["toPlan"], &data["plan"]), (&json!("pro"), &json!("free"), &json!("free")));
    assert_eq!(told(&app, "subscription.price_changed").await.len(), 1);
}

async fn a_paid_plan_is_not_changed_to_past_the_provider(app: TestApp) {
    let user = app.workspace("acme").await.owner();
    enable_provider(&app, "sandbox_x").await;
    user.post(CHANGE, json!({ "planKey": "pro" })).await.error(400, "CHECKOUT_REQUIRED");
    user.get("/billing/state").await.error(404, "NOT_FOUND");
    user.post(CHANGE, json!({ "planKey": "free" })).await.expect(201);
    user.post(CHANGE, json!({ "planKey": "pro" })).await.error(400, "CHECKOUT_REQUIRED");
    assert_eq!(state(&user).await["plan"]["slug"], "free");
}

async fn a_plan_set_by_key_is_a_subscription_too(app: TestApp) {
    enable_provider(&app, "sandbox_x").await;
    let owner = json!({ "email": "ada@example.com", "firstName": "Ada", "lastName": "L" });
    let body = json!({ "owner": owner, "plan": "pro", "muteNotifications": true });
    let made = app.key().post("/account/tenant", body).await.expect(200);
    let status = json!({
        "shouldSelectPlan": false, "shouldSetupPayments": true, "paymentsEnabled": false, "provider": "payprovider",
    });
    assert_eq!(made.at("/paymentStatus"), status);
    let tenant = made.id("/id");
    let members = app.key().in_workspace(tenant).get("/account/tenant/user").await.expect(200);
    let user = app.user(&members.at("/0"));
    assert_eq!(state(&user).await, json!({ "plan": { "slug": "pro", "name": "Pro" }, "status": "active" }));
    plan(&app, "team", None, None).await;
    let details = format!("/account/tenant/{tenant}/planDetails");
    app.key().post(&details, json!({ "planKey": "team" })).await.expect(200);
    assert_eq!(events(&app).await, ["subscription.created", "subscription.plan_changed"]);
    user.post("/billing/cancel", Value::Null).await.expect(201);
    app.key().post(&details, json!({ "planKey": "team" })).await.expect(200);
    assert_eq!(state(&user).await["status"], "active");
}
