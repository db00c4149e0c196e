//! `PUT /usage/gauge/{metric}`.

use serde_json::json;
use testkit::{
    TestApp,
    billing::{DAY, change_plan, plan},
    on_both_engines,
};

on_both_engines!(a_gauge_sets_the_value_and_lasts, a_gauge_meets_quotas, a_gauge_must_fit);

async fn a_gauge_sets_the_value_and_lasts(app: TestApp) {
    let workspace = app.workspace("acme").await;
    let used =
        async || workspace.key().get(&format!("/usage/{}", workspace.id)).await.expect(200).at("/metrics/0/used");
    let set = workspace.key().put("/usage/gauge/seats%20taken", json!({ "value": 5 })).await.expect(200);
    assert_eq!(set.json(), json!({ "metric": "seats taken", "used": 5 }));
    workspace.key().put("/usage/gauge/seats%20taken", json!({ "value": 3 })).await.expect(200);
    assert_eq!(used().await, 3);
    app.advance(DAY * 32).await;
    assert_eq!(used().await, 3);
    workspace.key().post("/usage/ingest", json!({ "metric": "seats taken", "value": 2 })).await.expect(201);
    assert_eq!(used().await, 5);
    app.advance(DAY * 32).await;
    assert_eq!(used().await, json!(null));
}

async fn a_gauge_meets_quotas(app: TestApp) {
    let team = plan(&app, "team", None, None).await;
    let hard = json!({ "metric": "seats", "limit": 5, "policy": "hard", "entitlement": "invite" });
    let metered = json!({ "metric": "disk", "limit": 5, "policy": "metered" });
    change_plan(&app, &team, json!({ "entitlements": { "invite": true }, "quotas": [hard, metered] })).await;
    let workspace = app.workspace("acme").await;
    let user = workspace.owner();
    user.post("/account/subscription/select", json!({ "planKey": "team" })).await.expect(201);
    let invite = async || user.get("/entitlements").await.expect(200).at("/entitlements/invite");
    let set = user.put("/usage/gauge/seats", json!({ "value": 5 })).await.expect(200);
    assert_eq!(
        (set.at("/remaining"), set.at("/warningLevel"), invite().await),
        (json!(0), json!("critical"), json!(false))
    );
    let set = user.put("/usage/gauge/seats", json!({ "value": 4 })).await.expect(200);
    assert_eq!((set.at("/warningLevel"), invite().await), (json!("approaching"), json!(true)));
    user.put("/usage/gauge/disk", json!({ "value": 9 })).await.expect(200);
    assert_eq!(testkit::facts::told(&app, "quota.exhausted").await.len(), 1);
}

async fn a_gauge_must_fit(app: TestApp) {
    let user = app.workspace("acme").await.owner();
    for value in [json!(-1), json!(1.5), json!(null), json!(9_007_199_254_740_992i64)] {
        user.put("/usage/gauge/seats", json!({ "value": value })).await.refuses(&["value"]);
    }
    user.put(&format!("/usage/gauge/{}", "m".repeat(129)), json!({ "value": 1 })).await.refuses(&["metric"]);
    user.put("/usage/gauge/a%0Ab", json!({ "value": 1 })).await.refuses(&["metric"]);
    user.put("/usage/gauge/a%00b", json!({ "value": 1 })).await.error(404, "NOT_FOUND");
    user.put("/usage/gauge/seats", json!({ "value": 0 })).await.expect(200);
}
