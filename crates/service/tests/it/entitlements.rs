//! `/entitlements`, and what changes it.

use serde_json::{Value, json};
use testkit::{
    Caller, TestApp,
    billing::{DAY, change_plan, plan},
    facts::told,
    on_both_engines,
};

on_both_engines!(
    without_a_subscription_there_are_none,
    they_are_the_plans_while_the_subscription_gives_access,
    a_used_up_hard_quota_takes_its_entitlement_away_until_the_next_period,
    an_edited_plan_counts_at_once_and_is_told_afterwards,
    overrides_go_before_plan_and_quota,
    an_overrides_unit_amount_goes_before_the_plans,
    overrides_end,
    backends_read_them_with_a_key,
    members_of_other_workspaces_see_their_own,
);

async fn seen(caller: &Caller) -> Value {
    caller.get("/entitlements").await.expect(200).at("/entitlements")
}

fn terms(limit: i64, policy: &str) -> Value {
    let quota = json!({ "metric": "calls", "limit": limit, "policy": policy, "entitlement": "api" });
    json!({ "entitlements": { "api": true, "sso": false }, "quotas": [quota] })
}

async fn team(app: &TestApp, limit: i64, policy: &str) -> Value {
    let team = plan(app, "team", None, None).await;
    change_plan(app, &team, terms(limit, policy)).await
}

async fn subscribed(app: &TestApp, name: &str) -> testkit::Workspace {
    let workspace = app.workspace(name).await;
    workspace.owner().post("/billing/subscriptions", json!({ "planSlug": "team" })).await.expect(201);
    workspace
}

/// The data of every `entitlements.changed`, without its workspace.
async fn changes(app: &TestApp) -> Vec<(Value, Value)> {
    let facts = told(app, "entitlements.changed").await;
    facts.into_iter().map(|(_, data)| (data["entitlements"].clone(), data["changed"].clone())).collect()
}

async fn without_a_subscription_there_are_none(app: TestApp) {
    let workspace = app.workspace("acme").await;
    assert_eq!(workspace.owner().get("/entitlements").await.expect(200).json(), json!({ "entitlements": {} }));
    workspace.owner().post("/billing/subscriptions", json!({})).await.expect(201);
    assert_eq!(seen(&workspace.owner()).await, json!({}));
    assert_eq!(changes(&app).await, []);
}

async fn they_are_the_plans_while_the_subscription_gives_access(app: TestApp) {
    team(&app, 10, "hard").await;
    let workspace = subscribed(&app, "acme").await;
    let all = json!({ "api": true, "sso": false });
    assert_eq!(seen(&workspace.owner()).await, all);
    workspace.owner().post("/billing/cancel", json!({})).await.expect(201);
    assert_eq!(seen(&workspace.owner()).await, all);
    app.advance(DAY * 32).await;
    let none = json!({ "api": false, "sso": false });
    assert_eq!(seen(&workspace.owner()).await, none);
    workspace.owner().post("/account/subscription/select", json!({ "planKey": "free" })).await.expect(201);
    assert_eq!(seen(&workspace.owner()).await, json!({}));
    let expected = [(all, json!(["api", "sso"])), (none, json!(["api"])), (json!({}), json!(["api", "sso"]))];
    assert_eq!(changes(&app).await, expected);
}

async fn a_used_up_hard_quota_takes_its_entitlement_away_until_the_next_period(app: TestApp) {
    team(&app, 10, "hard").await;
    let workspace = subscribed(&app, "acme").await;
    let ingest = |value: i64| {
        let key = workspace.key();
        async move { key.post("/usage/ingest", json!({ "metric": "calls", "value": value })).await.expect(201) }
    };
    ingest(9).await;
    assert_eq!(seen(&workspace.owner()).await["api"], true);
    ingest(1).await;
    assert_eq!(seen(&workspace.owner()).await["api"], false);
    ingest(5).await;
    app.advance(DAY * 31).await;
    assert_eq!(seen(&workspace.owner()).await["api"], true);
    let api: Vec<Value> = changes(&app).await.into_iter().map(|(set, _)| set["api"].clone()).collect();
    assert_eq!(api, [true, false, true]);
    assert!(told(&app, "quota.").await.is_empty());
}

async fn an_edited_plan_counts_at_once_and_is_told_afterwards(app: TestApp) {
    let team = team(&app, 10, "hard").await;
    let (one, two) = (subscribed(&app, "one").await, subscribed(&app, "two").await);
    one.key().post("/usage/ingest", json!({ "metric": "calls", "value": 5 })).await.expect(201);
    change_plan(&app, &team, terms(5, "hard")).await;
    assert_eq!(
        (seen(&one.owner()).await["api"].clone(), seen(&two.owner()).await["api"].clone()),
        (json!(false), json!(true))
    );
    assert_eq!(changes(&app).await.len(), 2);
    app.drain().await;
    assert_eq!(changes(&app).await.len(), 3);
    change_plan(&app, &team, json!({ "entitlements": { "api": true, "audit": true } })).await;
    app.drain().await;
    assert_eq!(changes(&app).await.len(), 5);
    assert_eq!(seen(&two.owner()).await, json!({ "api": true, "audit": true }));
}

fn overrides(workspace: &testkit::Workspace) -> String {
    format!("/account/tenant/{}/overrides", workspace.id)
}

async fn overrides_go_before_plan_and_quota(app: TestApp) {
    team(&app, 1, "hard").await;
    let workspace = subscribed(&app, "acme").await;
    let path = overrides(&workspace);
    let nothing = json!({ "entitlements": {}, "quotas": [], "until": null });
    assert_eq!(app.key().get(&path).await.expect(200).json(), nothing);
    workspace.key().post("/usage/ingest", json!({ "metric": "calls" })).await.expect(201);
    let limit = json!([{ "metric": "calls", "limit": 3 }]);
    let put = app.key().put(&path, json!({ "entitlements": { "sso": true }, "quotas": limit })).await.expect(200);
    assert_eq!(put.json(), json!({ "entitlements": { "sso": true }, "quotas": limit, "until": null }));
    assert_eq!(seen(&workspace.owner()).await, json!({ "api": true, "sso": true }));
    let quota = workspace.owner().get("/usage/quota/calls").await.expect(200);
    assert_eq!((quota.at("/limit"), quota.at("/used")), (json!(3), json!(1)));
    app.key().put(&path, json!({ "entitlements": { "api": true }, "quotas": null })).await.expect(200);
    assert_eq!(seen(&workspace.owner()).await, json!({ "api": true, "sso": false }));
    app.key().delete(&path).await.expect(200);
    assert_eq!(seen(&workspace.owner()).await, json!({ "api": false, "sso": false }));
    app.key().put(&path, json!({ "quotas": [limit[0], limit[0]] })).await.refuses(&["quotas[1].metric"]);
    workspace.token(&["TENANT_WRITE"]).await.put(&path, json!({})).await.error(403, "FORBIDDEN");
    app.other_app().await.put(&path, json!({})).await.error(404, "NOT_FOUND");
}

async fn an_overrides_unit_amount_goes_before_the_plans(app: TestApp) {
    let team = plan(&app, "team", Some(10.0), None).await;
    let quota = json!({ "metric": "calls", "limit": 1, "policy": "metered", "unitAmount": 2 });
    change_plan(&app, &team, json!({ "quotas": [quota] })).await;
    let workspace = app.workspace("acme").await;
    let monthly = json!({ "currency": "EUR", "recurrenceInterval": "month" });
    let choice = json!({ "planKey": "team", "priceOffer": monthly });
    app.key().post(&format!("/account/tenant/{}/planDetails", workspace.id), choice).await.expect(200);
    for (metric, value) in [("calls", 3), ("seats", 2)] {
        workspace.key().post("/usage/ingest", json!({ "metric": metric, "value": value })).await.expect(201);
    }
    let dry_run = format!("/account/payments/plan/{}/dry-run", team["id"].as_str().expect("an id"));
    let cost = async || app.key().post(&dry_run, json!({})).await.expect(200).at("/cost/0/before");
    assert_eq!(cost().await, 14);
    let path = overrides(&workspace);
    for (quotas, expected) in [
        (json!([{ "metric": "calls", "limit": 2 }]), 12),
        (json!([{ "metric": "calls", "limit": 1, "unitAmount": 0.5 }]), 11),
        (json!([{ "metric": "calls", "limit": 1, "unitAmount": 0 }]), 10),
        (json!([{ "metric": "seats", "limit": 0, "unitAmount": 3 }]), 20),
    ] {
        let put = app.key().put(&path, json!({ "quotas": quotas })).await.expect(200);
        assert_eq!((put.at("/quotas"), app.key().get(&path).await.expect(200).at("/quotas")), (quotas.clone(), quotas));
        assert_eq!(cost().await, expected);
    }
    let negative = json!([{ "metric": "calls", "limit": 1, "unitAmount": -1 }]);
    app.key().put(&path, json!({ "quotas": negative })).await.refuses(&["quotas[0].unitAmount"]);
}

async fn overrides_end(app: TestApp) {
    let workspace = app.workspace("acme").await;
    let path = overrides(&workspace);
    let now = app.now();
    app.key().put(&path, json!({ "until": now })).await.refuses(&["until"]);
    let body = json!({ "entitlements": { "beta": true }, "until": now.plus(DAY) });
    app.key().put(&path, body).await.expect(200);
    assert_eq!(seen(&workspace.owner()).await, json!({ "beta": true }));
    app.advance(DAY * 2).await;
    assert_eq!(seen(&workspace.owner()).await, json!({}));
    assert_eq!(changes(&app).await.len(), 2);
}

async fn backends_read_them_with_a_key(app: TestApp) {
    team(&app, 10, "hard").await;
    let workspace = subscribed(&app, "acme").await;
    assert_eq!(seen(&workspace.key()).await["api"], true);
    app.key().get("/entitlements").await.error(400, "MISSING_HEADER");
    let weak = app.key_with(&["APP_READ"]).await.in_workspace(workspace.id);
    weak.get("/entitlements").await.error(403, "MISSING_PRIVILEGE");
}

async fn members_of_other_workspaces_see_their_own(app: TestApp) {
    team(&app, 10, "hard").await;
    subscribed(&app, "acme").await;
    assert_eq!(seen(&app.workspace("other").await.owner()).await, json!({}));
}
