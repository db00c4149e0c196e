//! What time does to subscriptions.

use serde_json::{Value, json};
use testkit::{
    TestApp,
    billing::{DAY, enable_provider, events, plan, state},
    on_both_engines,
};

on_both_engines!(
    a_trial_ends_at_its_own_moment,
    a_canceled_trial_can_be_reactivated_while_it_lasts,
    a_canceled_subscription_ends_with_its_period,
    after_a_canceled_one_a_new_one_begins,
    a_period_that_passes_without_effect_makes_no_work,
);

async fn a_trial_ends_at_its_own_moment(app: TestApp) {
    let workspace = app.workspace("acme").await;
    let started = workspace.owner().post("/billing/trial/start", json!({})).await.expect(201);
    app.advance(DAY * 40).await;
    let expected = json!({
        "plan": { "slug": "pro", "name": "Pro" }, "status": "canceled", "gateEngaged": true, "endsAt": started.at("/endsAt"),
    });
    let user = workspace.owner();
    assert_eq!(state(&user).await, expected);
    let told = ["subscription.created", "subscription.trial_started", "subscription.trial_ended"];
    assert_eq!(events(&app).await, told);
    let history = format!("/account/tenant/{}/subscription/history", workspace.id);
    let history = app.key().get(&history).await.expect(200);
    assert_eq!((history.at("/0/to"), history.at("/0/actor/type")), (json!("canceled"), json!("system")));
    let status = user.get("/account/subscription/status").await.expect(200);
    assert_eq!((status.at("/shouldSelectPlan"), status.at("/trial")), (json!(true), json!(false)));
    let tenant = app.key().get(&format!("/account/tenant/byId/{}", workspace.id)).await.expect(200);
    assert_eq!((tenant.at("/trial"), tenant.at("/paymentStatus/shouldSelectPlan")), (json!(false), json!(true)));
    assert_eq!(user.post("/billing/cancel", json!({})).await.expect(201).text("/status"), "canceled");
}

async fn a_canceled_trial_can_be_reactivated_while_it_lasts(app: TestApp) {
    let (free, paid) = (app.workspace("one").await.owner(), app.workspace("two").await.owner());
    for user in [&free, &paid] {
        let started = user.post("/billing/trial/start", json!({})).await.expect(201);
        let canceled = user.post("/billing/cancel", json!({})).await.expect(201);
        assert_eq!(canceled.at("/endsAt"), started.at("/endsAt"));
    }
    assert_eq!(free.post("/billing/reactivate", json!({})).await.expect(201).text("/status"), "active");
    enable_provider(&app, "sandbox_x").await;
    assert_eq!(paid.post("/billing/reactivate", json!({})).await.expect(201).text("/status"), "trial");
}

async fn a_canceled_subscription_ends_with_its_period(app: TestApp) {
    let workspace = app.workspace("acme").await;
    plan(&app, "team", Some(10.0), None).await;
    let user = workspace.owner();
    user.post("/billing/subscriptions", json!({ "planSlug": "team" })).await.expect(201);
    let ends = user.post("/billing/cancel", json!({})).await.expect(201).at("/endsAt");
    app.advance(DAY * 32).await;
    let expected = json!({ "plan": { "slug": "team", "name": "The team plan" }, "status": "canceled", "endsAt": ends });
    assert_eq!(state(&workspace.owner()).await, expected);
    assert_eq!(events(&app).await, ["subscription.created", "subscription.canceled"]);
    let plans = app.key().get("/account/payments/plan").await.expect(200);
    app.key().delete(&testkit::catalog::plan_path(&plans.at("/0"))).await.expect(200);
    assert_eq!(state(&workspace.owner()).await["plan"]["name"], "The team plan");
}

async fn after_a_canceled_one_a_new_one_begins(app: TestApp) {
    let workspace = app.workspace("acme").await;
    let first = workspace.owner().post("/billing/trial/start", json!({})).await.expect(201);
    app.advance(DAY * 15).await;
    let user = workspace.owner();
    let kept = user.post("/billing/subscriptions", json!({ "planSlug": "free" })).await.expect(201);
    assert_eq!((kept.at("/id"), kept.text("/status")), (first.at("/id"), "canceled".to_owned()));
    user.post("/billing/trial/start", json!({})).await.error(409, "TRIAL_USED");
    user.post("/account/subscription/select", json!({ "planKey": "free" })).await.expect(201);
    let second = user.post("/billing/subscriptions", json!({})).await.expect(201);
    assert_ne!(second.at("/id"), first.at("/id"));
    assert_eq!((second.text("/status"), second.at("/gateEngaged")), ("active".to_owned(), Value::Null));
    assert_eq!(events(&app).await.iter().filter(|kind| *kind == "subscription.created").count(), 2);
}

async fn a_period_that_passes_without_effect_makes_no_work(app: TestApp) {
    let user = app.workspace("acme").await.owner();
    user.post("/billing/subscriptions", json!({})).await.expect(201);
    app.drain().await;
    assert_eq!(app.service().next_due().await.expect("can be asked"), None);
    app.advance(DAY * 400).await;
    assert_eq!(events(&app).await, ["subscription.created"]);
}
