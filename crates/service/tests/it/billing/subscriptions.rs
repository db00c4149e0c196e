//! `/billing/subscriptions` and `/billing/state`, `cancel`, `reactivate`, `trial/start`.

use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use testkit::{
    TestApp, assert_body,
    billing::{enable_provider, events, plan, state},
    facts::told,
    on_both_engines,
};

on_both_engines!(
    without_a_subscription_there_is_nothing_to_see_or_change,
    a_first_subscription_is_to_the_oldest_free_plan,
    whatever_exists_is_returned_unchanged,
    a_paid_plan_needs_a_checkout_where_a_provider_is_enabled,
    a_trial_is_of_a_plan_that_has_one,
    a_plan_is_tried_once,
    a_trial_takes_the_place_of_nothing_that_is_paid_for,
    what_is_canceled_can_be_reactivated,
    of_eight_at_once_one_makes_the_subscription,
    two_changes_at_once_leave_one_of_them,
);

async fn without_a_subscription_there_is_nothing_to_see_or_change(app: TestApp) {
    let user = app.workspace("acme").await.owner();
    user.get("/billing/state").await.error(404, "NOT_FOUND");
    user.post("/billing/cancel", Value::Null).await.error(404, "NOT_FOUND");
    user.post("/billing/reactivate", Value::Null).await.error(404, "NOT_FOUND");
}

async fn a_first_subscription_is_to_the_oldest_free_plan(app: TestApp) {
    plan(&app, "gratis", None, None).await;
    let workspace = app.workspace("acme").await;
    let made = workspace.owner().call(Method::POST, "/billing/subscriptions", None).await.expect(201);
    assert_body!(made, @r#"
    {
      "createdAt": "[time]",
      "id": "[subscription id]",
      "plan": {
        "name": "Free",
        "slug": "free"
      },
      "status": "active",
      "workspaceId": "[tenant id]"
    }
    "#);
    assert_eq!(made.text("/workspaceId"), workspace.id.to_string());
    let facts = told(&app, "subscription.").await;
    let data = json!({
        "workspaceId": workspace.id, "subscriptionId": made.text("/id"), "plan": "free", "status": "active",
    });
    assert_eq!(facts, [("subscription.created".to_owned(), data)]);
    let expected = json!({ "plan": { "slug": "free", "name": "Free" }, "status": "active" });
    assert_eq!(state(&workspace.owner()).await, expected);
}

async fn whatever_exists_is_returned_unchanged(app: TestApp) {
    let user = app.workspace("acme").await.owner();
    let first = user.post("/billing/subscriptions", json!({ "planSlug": "pro" })).await.expect(201);
    assert_eq!((first.text("/status"), first.text("/plan/slug")), ("trial".to_owned(), "pro".to_owned()));
    for body in [json!({}), json!({ "planSlug": "free" }), json!({ "planSlug": "nonesuch" })] {
        assert_eq!(user.post("/billing/subscriptions", body).await.expect(201).json(), first.json());
    }
    app.advance(testkit::billing::DAY * 15).await;
    let again = app.workspace("other").await.owner();
    again.post("/billing/subscriptions", json!({ "planSlug": "nonesuch" })).await.refuses(&["planSlug"]);
}

async fn a_paid_plan_needs_a_checkout_where_a_provider_is_enabled(app: TestApp) {
    plan(&app, "team", Some(10.0), None).await;
    let (first, second) = (app.workspace("one").await.owner(), app.workspace("two").await.owner());
    let team = json!({ "planSlug": "team" });
    assert_eq!(first.post("/billing/subscriptions", team.clone()).await.expect(201).text("/status"), "active");
    app.key().put("/account/app", json!({ "payproviderEnabled": true })).await.expect(200);
    let third = app.workspace("three").await.owner();
    third.post("/billing/subscriptions", team.clone()).await.expect(201);
    enable_provider(&app, "sandbox_x").await;
    second.post("/billing/subscriptions", team).await.error(400, "CHECKOUT_REQUIRED");
    second.get("/billing/state").await.error(404, "NOT_FOUND");
    assert_eq!(first.get("/account/subscription/status").await.expect(200).at("/shouldSetupPayments"), json!(true));
    let tried = second.post("/billing/subscriptions", json!({ "planSlug": "pro" })).await.expect(201);
    assert_eq!(tried.text("/status"), "trial");
}

async fn a_trial_is_of_a_plan_that_has_one(app: TestApp) {
    let user = app.workspace("acme").await.owner();
    user.post("/billing/trial/start", json!({ "planSlug": "free" })).await.refuses(&["planSlug"]);
    user.post("/billing/trial/start", json!({ "planSlug": "nonesuch" })).await.refuses(&["planSlug"]);
    let started = user.call(Method::POST, "/billing/trial/start", None).await.expect(201);
    assert_body!(started, @r#"
    {
      "createdAt": "[time]",
      "endsAt": "[time]",
      "id": "[subscription id]",
      "plan": {
        "name": "Pro",
        "slug": "pro"
      },
      "status": "trial",
      "workspaceId": "[tenant id]"
    }
    "#);
    assert_eq!(events(&app).await, ["subscription.created", "subscription.trial_started"]);
    let again = user.post("/billing/trial/start", json!({ "planSlug": "pro" })).await.expect(201);
    assert_eq!(again.json(), started.json());
    let status = user.get("/account/subscription/status").await.expect(200);
    assert_eq!((status.at("/trial"), status.at("/trialDaysLeft")), (json!(true), json!(14)));
}

async fn a_plan_is_tried_once(app: TestApp) {
    let user = app.workspace("acme").await.owner();
    user.post("/account/subscription/select", json!({ "planKey": "free" })).await.expect(201);
    let first = user.post("/billing/trial/start", json!({})).await.expect(201);
    let told = ["subscription.created", "subscription.plan_changed", "subscription.trial_started"];
    assert_eq!(events(&app).await, told);
    user.post("/account/subscription/select", json!({ "planKey": "free" })).await.expect(201);
    assert_eq!(state(&user).await["status"], "active");
    user.post("/billing/trial/start", json!({})).await.error(409, "TRIAL_USED");
    plan(&app, "max", Some(99.0), Some(7)).await;
    let other = user.post("/billing/trial/start", json!({ "planSlug": "max" })).await.expect(201);
    assert_eq!((other.text("/id"), other.text("/status")), (first.text("/id"), "trial".to_owned()));
}

async fn a_trial_takes_the_place_of_nothing_that_is_paid_for(app: TestApp) {
    let workspace = app.workspace("acme").await;
    plan(&app, "team", Some(10.0), None).await;
    let monthly = json!({ "currency": "EUR", "recurrenceInterval": "month" });
    let details = format!("/account/tenant/{}/paymentDetails", workspace.id);
    app.key().post(&details, json!({ "planKey": "team", "priceOffer": monthly })).await.expect(200);
    let user = workspace.owner();
    user.post("/billing/trial/start", json!({})).await.error(409, "SUBSCRIPTION_RUNNING");
    user.post("/billing/cancel", json!({})).await.expect(201);
    user.post("/billing/trial/start", json!({})).await.error(409, "SUBSCRIPTION_RUNNING");
}

async fn what_is_canceled_can_be_reactivated(app: TestApp) {
    let user = app.workspace("acme").await.owner();
    let made = user.post("/billing/subscriptions", json!({ "planSlug": "free" })).await.expect(201);
    assert_eq!(user.post("/billing/reactivate", json!({})).await.expect(201).json(), made.json());
    let canceled = user.post("/billing/cancel", json!({})).await.expect(201);
    assert_eq!(canceled.text("/status"), "cancel_at_period_end");
    let data = told(&app, "subscription.canceled").await;
    assert_eq!(data[0].1["endsAt"], canceled.at("/endsAt"));
    assert_eq!(user.post("/billing/cancel", json!({})).await.expect(201).json(), canceled.json());
    let back = user.post("/billing/reactivate", json!({})).await.expect(201);
    assert_eq!(back.json(), made.json());
    assert_eq!(events(&app).await, ["subscription.created", "subscription.canceled", "subscription.reactivated"]);
}

async fn of_eight_at_once_one_makes_the_subscription(app: TestApp) {
    let user = app.workspace("acme").await.owner();
    let race = join_all((0..8).map(|_| user.post("/billing/subscriptions", json!({ "planSlug": "pro" })))).await;
    let first = race[0].json();
    assert!(race.into_iter().all(|answer| answer.expect(201).json() == first));
    let none = join_all((0..8).map(|_| user.post("/billing/cancel", json!({})))).await;
    assert!(none.iter().all(|answer| answer.status() == 201));
    let told = ["subscription.created", "subscription.trial_started", "subscription.canceled"];
    assert_eq!(events(&app).await, told);
}

async fn two_changes_at_once_leave_one_of_them(app: TestApp) {
    let user = app.workspace("acme").await.owner();
    for key in ["one", "two"] {
        plan(&app, key, Some(10.0), None).await;
    }
    user.post("/billing/subscriptions", json!({})).await.expect(201);
    let change = |number: usize| {
        let key = if number.is_multiple_of(2) { "one" } else { "two" };
        user.post("/account/subscription/change", json!({ "planKey": key }))
    };
    let race = join_all((0..12).map(change)).await;
    assert!(race.iter().all(|answer| answer.status() == 201));
    // Each change begins where the one before ended.
    let changes = told(&app, "subscription.plan_changed").await;
    let mut plan = json!("free");
    for (_, data) in &changes {
        assert_eq!(data["fromPlan"], plan);
        plan = data["toPlan"].clone();
    }
    assert_eq!(state(&user).await["plan"]["slug"], plan);
}
