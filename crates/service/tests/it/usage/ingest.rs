//! `POST /usage/ingest`, `GET /usage/quota/{metric}` and `DELETE /usage/events/{event_id}`.

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{
    TestApp, Workspace,
    billing::{DAY, change_plan, plan},
    facts::told,
    on_both_engines,
};

on_both_engines!(
    an_event_counts_once,
    an_event_must_fit,
    an_event_counts_in_the_period_it_lies_in,
    the_answer_tells_what_the_event_decided,
    a_metered_quota_is_told_once_a_period,
    of_many_at_once_all_count_and_one_uses_the_quota_up,
    a_counter_stops_where_numbers_stop_being_exact,
    a_mistaken_event_is_taken_back_once,
    an_app_may_take_usage_from_keys_alone,
);

const INGEST: &str = "/usage/ingest";

async fn metered(app: &TestApp, limit: i64, policy: &str) -> Workspace {
    let team = plan(app, "team", None, None).await;
    let quota = json!({ "metric": "calls", "limit": limit, "policy": policy, "entitlement": "api" });
    change_plan(app, &team, json!({ "entitlements": { "api": true }, "quotas": [quota] })).await;
    let workspace = app.workspace("acme").await;
    workspace.owner().post("/billing/subscriptions", json!({ "planSlug": "team" })).await.expect(201);
    workspace
}

async fn used(workspace: &Workspace) -> Value {
    workspace.owner().get("/usage/quota/calls").await.expect(200).at("/used")
}

async fn an_event_counts_once(app: TestApp) {
    let workspace = metered(&app, 100, "hard").await;
    let user = workspace.owner();
    let first = user.post(INGEST, json!({ "metric": "calls" })).await.expect(201);
    assert_eq!((first.at("/accepted"), first.at("/deduped")), (json!(true), json!(false)));
    assert!(first.text("/eventId").starts_with("usage_"));
    let keyed = json!({ "metric": "calls", "value": 5, "idempotencyKey": "k1" });
    let original = user.post(INGEST, keyed).await.expect(201);
    for again in [json!({ "metric": "calls", "value": 5 }), json!({ "metric": "other", "value": 9 })] {
        let mut again = again;
        again["idempotencyKey"] = json!("k1");
        let answer = user.post(INGEST, again).await.expect(201);
        assert_eq!((answer.at("/deduped"), answer.at("/eventId")), (json!(true), original.at("/eventId")));
    }
    assert_eq!(used(&workspace).await, 6);
    let elsewhere = app.workspace("other").await;
    let other = elsewhere.owner().post(INGEST, json!({ "metric": "calls", "idempotencyKey": "k1" })).await.expect(201);
    assert_eq!(other.at("/deduped"), false);
    assert_eq!(elsewhere.owner().get("/usage/quota/calls").await.expect(200).json(), Value::Null);
}

async fn an_event_must_fit(app: TestApp) {
    let user = app.workspace("acme").await.owner();
    for (body, field) in [
        (json!({}), "metric"),
        (json!({ "metric": "" }), "metric"),
        (json!({ "metric": "m".repeat(129) }), "metric"),
        (json!({ "metric": "m", "value": 0 }), "value"),
        (json!({ "metric": "m", "value": 1.5 }), "value"),
        (json!({ "metric": "m", "value": 9_007_199_254_740_992i64 }), "value"),
        (json!({ "metric": "m", "idempotencyKey": "" }), "idempotencyKey"),
        (json!({ "metric": "m", "idempotencyKey": "k".repeat(257) }), "idempotencyKey"),
        (json!({ "metric": "m", "timestamp": "2020-01-01T00:00:00Z" }), "timestamp"),
        (json!({ "metric": "m", "timestamp": "2920-01-01T00:00:00Z" }), "timestamp"),
    ] {
        user.post(INGEST, body).await.refuses(&[field]);
    }
}

async fn an_event_counts_in_the_period_it_lies_in(app: TestApp) {
    let workspace = metered(&app, 100, "hard").await;
    workspace.key().post(INGEST, json!({ "metric": "calls", "value": 7 })).await.expect(201);
    app.advance(DAY * 31).await;
    assert_eq!(used(&workspace).await, 0);
    let earlier = app.now().minus(DAY * 20);
    let late = json!({ "metric": "calls", "value": 2, "timestamp": earlier });
    workspace.key().post(INGEST, late).await.expect(201);
    workspace.key().post(INGEST, json!({ "metric": "calls" })).await.expect(201);
    assert_eq!(used(&workspace).await, 1);
}

async fn the_answer_tells_what_the_event_decided(app: TestApp) {
    let workspace = metered(&app, 2, "hard").await;
    let key = workspace.key().header("prefer", "return=representation");
    let first = key.post(INGEST, json!({ "metric": "calls" })).await.expect(201);
    assert_eq!((first.at("/quota/used"), first.at("/entitlements/api")), (json!(1), json!(true)));
    let second = key.post(INGEST, json!({ "metric": "calls" })).await.expect(201);
    let quota = json!({
        "metric": "calls", "used": 2, "limit": 2, "remaining": 0, "warningLevel": "critical", "policy": "hard",
    });
    assert_eq!((second.at("/quota"), second.at("/entitlements")), (quota, json!({ "api": false })));
    let other = key.post(INGEST, json!({ "metric": "other" })).await.expect(201).json();
    assert_eq!(other.get("quota"), Some(&Value::Null));
}

async fn a_metered_quota_is_told_once_a_period(app: TestApp) {
    let workspace = metered(&app, 10, "metered").await;
    for value in [9, 1, 5] {
        workspace.key().post(INGEST, json!({ "metric": "calls", "value": value })).await.expect(201);
    }
    let facts = told(&app, "quota.exhausted").await;
    let snapshot = workspace.owner().get(&format!("/usage/{}", workspace.id)).await.expect(200);
    let expected = json!({
        "workspaceId": workspace.id, "metric": "calls", "used": 10, "limit": 10,
        "periodStart": snapshot.at("/periodStart"), "periodEnd": snapshot.at("/periodEnd"),
    });
    assert_eq!(facts, [("quota.exhausted".to_owned(), expected)]);
    let quota = workspace.owner().get("/usage/quota/calls").await.expect(200);
    assert_eq!((quota.at("/remaining"), quota.text("/policy")), (json!(-5), "metered".to_owned()));
    assert_eq!(workspace.owner().get("/entitlements").await.expect(200).at("/entitlements/api"), true);
    app.advance(DAY * 31).await;
    workspace.key().post(INGEST, json!({ "metric": "calls", "value": 11 })).await.expect(201);
    assert_eq!(told(&app, "quota.exhausted").await.len(), 2);
}

async fn of_many_at_once_all_count_and_one_uses_the_quota_up(app: TestApp) {
    let workspace = metered(&app, 30, "hard").await;
    let other = app.another_node().await;
    let nodes = [app.key().in_workspace(workspace.id), other.key().in_workspace(workspace.id)];
    let send = |number: usize| {
        // Every third is a repeat of the one before.
        let body =
            json!({ "metric": "calls", "idempotencyKey": format!("k{}", number - usize::from(number % 3 == 2)) });
        let key = nodes[number % 2].clone();
        async move { key.post(INGEST, body).await.expect(201) }
    };
    let answers = join_all((0..60).map(send)).await;
    let counted = answers.iter().filter(|answer| answer.at("/deduped") == false).count();
    assert_eq!((counted, used(&workspace).await), (40, json!(40)));
    let changes = told(&app, "entitlements.changed").await;
    assert_eq!(changes.iter().map(|(_, data)| data["entitlements"]["api"].clone()).collect::<Vec<_>>(), [true, false]);
    if app.site().engine() == testkit::EngineName::Postgres {
        other.service().close().await;
    }
}

async fn a_counter_stops_where_numbers_stop_being_exact(app: TestApp) {
    let workspace = metered(&app, 10, "metered").await;
    let most = 9_007_199_254_740_991i64;
    for value in [most, most] {
        workspace.key().post(INGEST, json!({ "metric": "calls", "value": value })).await.expect(201);
    }
    assert_eq!(used(&workspace).await, most);
}

async fn a_mistaken_event_is_taken_back_once(app: TestApp) {
    let workspace = metered(&app, 10, "hard").await;
    let body = json!({ "metric": "calls", "value": 10, "idempotencyKey": "k" });
    let event = workspace.key().post(INGEST, body.clone()).await.expect(201);
    let path = format!("/usage/events/{}", event.text("/eventId"));
    app.workspace("other").await.key().delete(&path).await.error(404, "NOT_FOUND");
    workspace.token(&["TENANT_WRITE"]).await.delete(&path).await.error(403, "FORBIDDEN");
    assert_eq!(workspace.owner().get("/entitlements").await.expect(200).at("/entitlements/api"), false);
    workspace.key().delete(&path).await.expect(200);
    workspace.key().delete(&path).await.error(404, "NOT_FOUND");
    assert_eq!(used(&workspace).await, 0);
    assert_eq!(workspace.owner().get("/entitlements").await.expect(200).at("/entitlements/api"), true);
    assert_eq!(workspace.key().post(INGEST, body).await.expect(201).at("/deduped"), true);
    assert_eq!(used(&workspace).await, 0);
}

async fn an_app_may_take_usage_from_keys_alone(app: TestApp) {
    let workspace = app.workspace("acme").await;
    app.key().put("/account/app", json!({ "usageFromUsers": false })).await.expect(200);
    let user = workspace.owner();
    user.post(INGEST, json!({ "metric": "m" })).await.error(403, "FORBIDDEN");
    user.post("/usage/ingest/batch", json!([{ "metric": "m" }])).await.error(403, "FORBIDDEN");
    user.put("/usage/gauge/m", json!({ "value": 1 })).await.error(403, "FORBIDDEN");
    workspace.key().post(INGEST, json!({ "metric": "m" })).await.expect(201);
    workspace.token(&["TENANT_WRITE"]).await.post(INGEST, json!({ "metric": "m" })).await.expect(201);
}
