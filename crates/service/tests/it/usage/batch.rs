//! `POST /usage/ingest/batch`.

use serde_json::{Value, json};
use testkit::{TestApp, on_both_engines};

on_both_engines!(
    entries_are_answered_in_their_places,
    a_key_of_the_app_may_span_workspaces,
    what_acts_in_one_workspace_records_there_alone,
    a_batch_is_a_list_of_one_to_a_thousand,
);

const BATCH: &str = "/usage/ingest/batch";

async fn used(caller: &testkit::Caller, id: impl std::fmt::Display) -> Value {
    caller.get(&format!("/usage/{id}")).await.expect(200).at("/metrics/0/used")
}

async fn entries_are_answered_in_their_places(app: TestApp) {
    let workspace = app.workspace("acme").await;
    let user = workspace.owner();
    let events = json!([
        { "metric": "m", "idempotencyKey": "k" }, { "metric": "" }, { "metric": "m", "value": 2 }, 7,
        { "metric": "m", "idempotencyKey": "k" }, { "metric": "m", "timestamp": "2020-01-01T00:00:00Z" },
    ]);
    let answer = user.post(BATCH, events.clone()).await.expect(201);
    let results = answer.at("/results");
    assert_eq!(results.as_array().expect("a list").len(), 6);
    assert_eq!(
        (&results[0]["deduped"], &results[2]["deduped"], &results[4]["deduped"]),
        (&json!(false), &json!(false), &json!(true))
    );
    assert_eq!(results[4]["eventId"], results[0]["eventId"]);
    assert_eq!(results[1]["error"]["error"], "VALIDATION_FAILED");
    assert_eq!(results[1]["error"]["details"][0]["field"], "metric");
    assert_eq!(results[3]["error"]["error"], "VALIDATION_FAILED");
    assert_eq!(results[5]["error"]["details"][0]["field"], "timestamp");
    assert_eq!(used(&user, workspace.id).await, 3);
    let wrapped = user.post(BATCH, json!({ "events": events })).await.expect(201);
    assert_eq!(wrapped.at("/results/0/deduped"), true);
    assert_eq!(used(&user, workspace.id).await, 5);
}

async fn a_key_of_the_app_may_span_workspaces(app: TestApp) {
    let (one, two) = (app.workspace("one").await, app.workspace("two").await);
    let unknown = "tenant_00000000000000000000000001";
    let events = json!([
        { "metric": "m", "workspaceId": one.id }, { "metric": "m", "workspaceId": two.id, "value": 4 },
        { "metric": "m", "workspaceId": unknown }, { "metric": "m" },
    ]);
    let results = app.key().post(BATCH, events.clone()).await.expect(201).at("/results");
    assert_eq!(results[2]["error"]["error"], "NOT_FOUND");
    assert_eq!(results[3]["error"]["details"][0]["field"], "workspaceId");
    assert_eq!((used(&one.key(), one.id).await, used(&two.key(), two.id).await), (json!(1), json!(4)));
    let others = app.other_app().await.post(BATCH, events.clone()).await.expect(201).at("/results");
    assert_eq!(others[0]["error"]["error"], "NOT_FOUND");
}

async fn what_acts_in_one_workspace_records_there_alone(app: TestApp) {
    let (one, two) = (app.workspace("one").await, app.workspace("two").await);
    let events = json!([{ "metric": "m", "workspaceId": two.id }, { "metric": "m", "workspaceId": one.id }]);
    for caller in [one.key(), one.token(&["TENANT_WRITE"]).await] {
        let results = caller.post(BATCH, events.clone()).await.expect(201).at("/results");
        assert_eq!((&results[0]["error"]["error"], &results[1]["deduped"]), (&json!("FORBIDDEN"), &json!(false)));
    }
    assert_eq!(used(&one.key(), one.id).await, json!(2));
    // A person's entries are their workspace's, whatever they say.
    one.owner().post(BATCH, events).await.expect(201);
    assert_eq!(used(&one.key(), one.id).await, json!(4));
    assert_eq!(two.key().get(&format!("/usage/{}", two.id)).await.expect(200).at("/metrics"), json!([]));
}

async fn a_batch_is_a_list_of_one_to_a_thousand(app: TestApp) {
    let user = app.workspace("acme").await.owner();
    for body in [json!([]), json!({}), json!({ "events": [] }), json!({ "events": 7 })] {
        user.post(BATCH, body).await.refuses(&["events"]);
    }
    user.post(BATCH, json!(vec![json!({}); 1_001])).await.error(400, "VALIDATION_FAILED");
    user.post(BATCH, json!("x")).await.refuses(&["body"]);
    let many = user.post(BATCH, json!(vec![json!({ "metric": "m" }); 1_000])).await.expect(201);
    assert_eq!(many.at("/results").as_array().expect("a list").len(), 1_000);
}
