//! Many callers on several nodes at once: nothing is lost, counted twice or told twice.

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{
    TestApp, Workspace,
    billing::{change_plan, plan},
    facts::told,
    on_both_engines,
};

on_both_engines!(everything_at_once_adds_up, one_trial_is_started_by_many);

const CALLERS: usize = 16;
const ROUNDS: usize = 6;

/// What one caller counted: the values that were new, without those that were taken back.
async fn work(node: TestApp, acme: Workspace, team: Value, number: usize) -> i64 {
    let (user, key) = (node.user(&acme.owner), node.key().in_workspace(acme.id));
    let mut counted = 0;
    for round in 0..ROUNDS {
        // Two callers share each idempotency key.
        let event = json!({ "metric": "calls", "value": 1, "idempotencyKey": format!("{round}-{}", number / 2) });
        let stored = key.post("/usage/ingest", event).await.expect(201);
        counted += i64::from(stored.at("/deduped") == false);
        match number % 4 {
            0 => drop(user.post("/billing/cancel", json!({})).await.expect(201)),
            1 => drop(user.post("/billing/reactivate", json!({})).await.expect(201)),
            2 => {
                let to = if round % 2 == 0 { "other" } else { "team" };
                user.post("/account/subscription/select", json!({ "planKey": to })).await.expect(201);
            }
            _ => {
                let limit = 10 + i64::try_from(round).expect("a small number");
                let quotas = json!([{ "metric": "calls", "limit": limit, "policy": "metered" }]);
                change_plan(&node, &team, json!({ "quotas": quotas })).await;
                let extra = key.post("/usage/ingest", json!({ "metric": "calls", "value": 5 })).await.expect(201);
                key.delete(&format!("/usage/events/{}", extra.text("/eventId"))).await.expect(200);
            }
        }
    }
    counted
}

async fn everything_at_once_adds_up(app: TestApp) {
    let team = plan(&app, "team", None, None).await;
    plan(&app, "other", None, None).await;
    let quotas = json!([{ "metric": "calls", "limit": 10, "policy": "metered" }]);
    change_plan(&app, &team, json!({ "quotas": quotas, "entitlements": { "api": true } })).await;
    let acme = app.workspace("acme").await;
    acme.owner().post("/account/subscription/select", json!({ "planKey": "team" })).await.expect(201);
    let nodes = [app.clone(), app.another_node().await, app.another_node().await];
    let works = (0..CALLERS).map(|number| work(nodes[number % 3].clone(), acme.clone(), team.clone(), number));
    let counted: i64 = join_all(works).await.into_iter().sum();
    assert_eq!(counted, i64::try_from(CALLERS / 2 * ROUNDS).expect("a small number"), "each key counts once");
    let usage = acme.owner().get(&format!("/usage/{}", acme.id)).await.expect(200).json();
    let calls = usage["metrics"].as_array().and_then(|all| all.iter().find(|one| one["metric"] == "calls"));
    assert_eq!(calls.expect("the metric")["used"], counted);
    app.drain().await;
    assert_eq!(told(&app, "quota.exhausted").await.len(), 1);
    assert_eq!(told(&app, "subscription.created").await.len(), 1);
    let history = format!("/account/tenant/{}/subscription/history", acme.id);
    let history = app.key().get(&history).await.expect(200).json();
    let changes = |cause: &str, to: &str| {
        let all = history.as_array().expect("a list");
        all.iter().filter(|change| change["cause"] == cause && change["to"] == to).count()
    };
    assert_eq!(told(&app, "subscription.canceled").await.len(), changes("cancel_requested", "cancel_at_period_end"));
}

async fn one_trial_is_started_by_many(app: TestApp) {
    let acme = app.workspace("acme").await;
    let nodes = [app.clone(), app.another_node().await];
    let start = |number: usize| {
        let user = nodes[number % 2].user(&acme.owner);
        async move { user.post("/billing/trial/start", json!({})).await.expect(201).text("/id") }
    };
    let mut ids = join_all((0..8).map(start)).await;
    ids.dedup();
    assert_eq!(ids.len(), 1);
    assert_eq!(told(&app, "subscription.trial_started").await.len(), 1);
}
