//! Dry runs of plans.

use serde_json::json;
use testkit::{
    TestApp,
    billing::{change_plan, enable_provider, plan},
    on_both_engines,
};

on_both_engines!(a_changed_plan_is_tried_on_all_its_workspaces, another_plan_is_tried_on_one_workspace);

async fn a_changed_plan_is_tried_on_all_its_workspaces(app: TestApp) {
    let team = plan(&app, "team", Some(10.0), None).await;
    let quota = |limit: i64| {
        json!([{ "metric": "calls", "limit": limit, "policy": "hard", "entitlement": "api" },
                                    { "metric": "gigabytes", "limit": 1, "policy": "metered", "unitAmount": 2 }])
    };
    change_plan(&app, &team, json!({ "entitlements": { "api": true, "sso": true }, "quotas": quota(5) })).await;
    let monthly = json!({ "currency": "EUR", "recurrenceInterval": "month" });
    let mut ids = Vec::new();
    for (name, calls) in [("one", 3), ("two", 7), ("three", 1)] {
        let workspace = app.workspace(name).await;
        let body = json!({ "planKey": "team", "priceOffer": monthly });
        app.key().post(&format!("/account/tenant/{}/paymentDetails", workspace.id), body).await.expect(200);
        workspace.key().post("/usage/ingest", json!({ "metric": "calls", "value": calls })).await.expect(201);
        workspace.key().post("/usage/ingest", json!({ "metric": "gigabytes", "value": 2 })).await.expect(201);
        ids.push(workspace.id);
    }
    app.workspace("elsewhere").await;
    let path = format!("/account/payments/plan/{}/dry-run", team["id"].as_str().expect("an id"));
    let nothing = app.key().post(&path, json!({})).await.expect(200).json();
    assert_eq!((&nothing["workspaces"], &nothing["affected"]), (&json!(3), &json!([])));
    assert_eq!(nothing["cost"], json!([{ "currency": "EUR", "before": 36, "after": 36 }]));
    let change = json!({ "entitlements": { "api": true, "beta": true }, "quotas": quota(2) });
    let seen = app.key().post(&path, change).await.expect(200).json();
    assert_eq!(
        seen["entitlements"],
        json!([
            { "name": "api", "gained": 0, "lost": 1 },
            { "name": "beta", "gained": 3, "lost": 0 },
            { "name": "sso", "gained": 0, "lost": 3 },
        ])
    );
    assert_eq!(seen["quotas"], json!([{ "metric": "calls", "crossing": 1, "freed": 0 }]));
    let affected = seen["affected"].as_array().expect("a list");
    let one = affected.iter().find(|one| one["workspaceId"] == json!(ids[0])).expect("the first");
    assert_eq!((&one["lost"], &one["crossing"]), (&json!(["api", "sso"]), &json!(["calls"])));
    let freed = app.key().post(&path, json!({ "quotas": quota(100) })).await.expect(200).json();
    assert_eq!(freed["quotas"], json!([{ "metric": "calls", "crossing": 0, "freed": 1 }]));
    let unchanged = app.key().get(&path.replace("/dry-run", "")).await.expect(200);
    assert_eq!(unchanged.at("/entitlements"), json!({ "api": true, "sso": true }));
    app.key().post(&path, json!({ "quotas": [{ "metric": "" }] })).await.expect(400);
    app.other_app().await.post(&path, json!({})).await.error(404, "NOT_FOUND");
}

async fn another_plan_is_tried_on_one_workspace(app: TestApp) {
    enable_provider(&app, "sandbox_test").await;
    let team = plan(&app, "team", Some(10.0), None).await;
    change_plan(&app, &team, json!({ "entitlements": { "api": true } })).await;
    let acme = app.workspace("acme").await;
    let path = format!("/account/tenant/{}/planDetails/dry-run", acme.id);
    let monthly = json!({ "currency": "EUR", "recurrenceInterval": "month" });
    let seen = app.key().post(&path, json!({ "planKey": "team", "priceOffer": monthly })).await.expect(200).json();
    assert_eq!(
        seen,
        json!({
            "workspaces": 1,
            "entitlements": [{ "name": "api", "gained": 1, "lost": 0 }],
            "quotas": [],
            "cost": [{ "currency": "EUR", "before": 0, "after": 10 }],
            "affected": [{ "workspaceId": acme.id, "gained": ["api"], "lost": [], "crossing": [], "freed": [] }],
        })
    );
    acme.owner().get("/billing/state").await.error(404, "NOT_FOUND");
    app.key().post(&path, json!({ "planKey": "nonesuch" })).await.refuses(&["planKey"]);
    acme.token(&["TENANT_READ"]).await.post(&path, json!({ "planKey": "free" })).await.error(403, "FORBIDDEN");
}
