//! `POST /admin/apps/{app_id}/explain` and `…/simulate`.

use http::Method;
use serde_json::{Value, json};
use testkit::{
    TestApp, Workspace,
    billing::{DAY, change_plan, enable_provider, plan},
    on_both_engines,
};

on_both_engines!(
    what_decides_is_explained_in_one_sentence,
    a_subscription_of_the_sandbox_is_driven_through_its_life,
    only_what_can_happen_is_simulated,
);

async fn explained(app: &TestApp, workspace: &Workspace, question: Value) -> Value {
    let mut body = question;
    body["workspaceId"] = json!(workspace.id);
    app.operator().post(&format!("/admin/apps/{}/explain", app.app_id()), body).await.expect(200).json()
}

async fn what_decides_is_explained_in_one_sentence(app: TestApp) {
    let team = plan(&app, "team", None, None).await;
    let quotas = json!([{ "metric": "calls", "limit": 2, "policy": "hard", "entitlement": "api" }]);
    change_plan(&app, &team, json!({ "entitlements": { "api": true, "sso": false }, "quotas": quotas })).await;
    let acme = app.workspace("acme").await;
    let ask = async |question: Value| explained(&app, &acme, question).await;
    let none = ask(json!({ "entitlement": "api" })).await;
    assert_eq!((&none["allowed"], &none["decidedBy"]), (&json!(false), &json!("status")));
    assert_eq!(none["sentence"], "api is not allowed: the workspace has no subscription.");
    acme.owner().post("/account/subscription/select", json!({ "planKey": "team" })).await.expect(201);
    let by_plan = ask(json!({ "entitlement": "api" })).await;
    assert_eq!(by_plan["sentence"], "api is allowed: the plan team includes it.");
    assert_eq!((&by_plan["plan"], &by_plan["status"]), (&json!("team"), &json!("active")));
    assert!(by_plan["since"].is_string() && by_plan["period"]["end"].is_string());
    assert_eq!(
        ask(json!({ "entitlement": "sso" })).await["sentence"],
        "sso is not allowed: the plan team does not include it."
    );
    acme.key().post("/usage/ingest", json!({ "metric": "calls", "value": 3 })).await.expect(201);
    let by_quota = ask(json!({ "entitlement": "api" })).await;
    assert_eq!(by_quota["sentence"], "api is not allowed: the quota of calls is used up, 3 of 2.");
    assert_eq!((&by_quota["decidedBy"], &by_quota["usage"]["used"]), (&json!("quota"), &json!(3)));
    assert!(by_quota["since"].is_string());
    let limit = ask(json!({ "metric": "calls" })).await;
    assert_eq!((&limit["value"], &limit["decidedBy"]), (&json!(2), &json!("plan")));
    assert_eq!(limit["sentence"], "calls is limited to 2 by the plan; 3 used in this period.");
    let unlimited = ask(json!({ "metric": "other" })).await;
    assert_eq!((unlimited.get("value"), &unlimited["usage"]), (Some(&Value::Null), &Value::Null));
    let own = json!({ "entitlements": { "api": true }, "quotas": [{ "metric": "calls", "limit": 9 }] });
    app.key().put(&format!("/account/tenant/{}/overrides", acme.id), own).await.expect(200);
    let by_override = ask(json!({ "entitlement": "api" })).await;
    assert_eq!(by_override["sentence"], "api is allowed: an override grants it.");
    assert_eq!(by_override["override"], json!({ "entitlement": true, "until": null }));
    assert_eq!(ask(json!({ "metric": "calls" })).await["override"], json!({ "limit": 9, "until": null }));
    let path = format!("/admin/apps/{}/explain", app.app_id());
    for body in [json!({}), json!({ "entitlement": "a", "metric": "b" })] {
        let mut body = body;
        body["workspaceId"] = json!(acme.id);
        app.operator().post(&path, body).await.refuses(&["entitlement"]);
    }
    let unknown = json!({ "workspaceId": "tenant_00000000000000000000000001", "metric": "m" });
    app.operator().post(&path, unknown).await.error(404, "NOT_FOUND");
}

async fn paid(app: &TestApp) -> Workspace {
    enable_provider(app, "sandbox_test").await;
    app.key().put("/account/app", json!({ "uiUrl": "https://shop.example" })).await.expect(200);
    let acme = app.workspace("acme").await;
    let begun = acme.owner().post("/account/subscription/checkout", json!({ "planKey": "pro" })).await.expect(201);
    let path = begun.text("/checkoutUrl").replace("http://tenantry.test", "");
    let form = "cardNumber=4242424242424242&expiry=12/40&cvc=123";
    let caller = app.anon().header("content-type", "application/x-www-form-urlencoded");
    caller.send(Method::POST, &path, form).await.expect(303);
    acme
}

fn path(app: &TestApp) -> String {
    format!("/admin/apps/{}/simulate", app.app_id())
}

async fn simulated(app: &TestApp, workspace: &Workspace, event: &str) -> Value {
    let body = json!({ "workspaceId": workspace.id, "event": event });
    app.operator().post(&path(app), body).await.expect(200).json()
}

async fn a_subscription_of_the_sandbox_is_driven_through_its_life(app: TestApp) {
    let pro = app.key().get("/account/payments/plan").await.expect(200).at("/1");
    change_plan(&app, &pro, json!({ "entitlements": { "api": true } })).await;
    let acme = paid(&app).await;
    assert_eq!(simulated(&app, &acme, "renewal_paid").await["events"], json!(["payment.succeeded"]));
    let failed = simulated(&app, &acme, "renewal_failed").await;
    assert_eq!(failed["events"], json!(["subscription.past_due", "payment.failed"]));
    assert_eq!(failed["subscription"]["status"], "past_due");
    let gated = simulated(&app, &acme, "dunning_exhausted").await;
    assert_eq!(
        (&gated["events"], &gated["subscription"]["gateEngaged"]),
        (&json!(["entitlements.changed"]), &json!(true))
    );
    let back = simulated(&app, &acme, "renewal_paid").await;
    assert_eq!(back["events"], json!(["entitlements.changed", "payment.succeeded"]));
    assert_eq!(back["subscription"]["status"], "active");
    app.advance(DAY).await;
    assert_eq!(simulated(&app, &acme, "period_ended").await["events"], json!(["payment.succeeded"]));
    app.drain().await;
    assert_eq!(testkit::facts::told(&app, "payment.succeeded").await.len(), 4);
    acme.owner().post("/billing/cancel", json!({})).await.expect(201);
    let over = simulated(&app, &acme, "period_ended").await;
    assert_eq!(
        (&over["events"], &over["subscription"]["status"]),
        (&json!(["entitlements.changed"]), &json!("canceled"))
    );
    let other = app.workspace("other").await;
    other.owner().post("/billing/trial/start", json!({})).await.expect(201);
    let ended = simulated(&app, &other, "trial_ended").await;
    assert_eq!(ended["events"], json!(["subscription.trial_ended", "entitlements.changed"]));
    assert_eq!(ended["subscription"]["gateEngaged"], true);
}

async fn only_what_can_happen_is_simulated(app: TestApp) {
    let acme = app.workspace("acme").await;
    let call =
        async |event: &str| app.operator().post(&path(&app), json!({ "workspaceId": acme.id, "event": event })).await;
    call("trial_ended").await.error(409, "NOT_SIMULATED");
    enable_provider(&app, "sandbox_test").await;
    call("trial_ended").await.error(404, "NOT_FOUND");
    call("nonsense").await.refuses(&["event"]);
    acme.owner().post("/billing/trial/start", json!({})).await.expect(201);
    for event in ["renewal_paid", "renewal_failed", "dunning_exhausted", "period_ended"] {
        call(event).await.error(409, "NOT_SIMULATED");
    }
    enable_provider(&app, "sk_live_1").await;
    call("trial_ended").await.error(409, "NOT_SIMULATED");
}
