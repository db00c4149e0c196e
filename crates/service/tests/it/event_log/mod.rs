//! `/event-log/…`.

mod audit;
mod batch;
mod blocks;
mod chain;
mod charts;
mod cloud_events;
mod export;
mod fold;
mod ingest;
mod journeys;
mod keeping;
mod listing;
mod model;
mod query;
mod sink;
mod tail;

use serde_json::{Value, json};
use testkit::{Answer, TestApp};

/// Has a table disappear for a while: whatever needs it fails.
async fn without(app: &TestApp, table: &str, doing: impl Future<Output = ()>) {
    let rename = async |from: &str, to: &str| {
        let renamed = store::testing::statement(format!("ALTER TABLE {from} RENAME TO {to}"));
        app.service().core().db.write(move |tx| tx.run(renamed, &[])).await.expect("renamed");
    };
    let away = format!("{table}_away");
    rename(table, &away).await;
    doing.await;
    rename(&away, table).await;
}

/// An event of the first app.
fn event(app: &TestApp, name: &str, at: &str, parameters: Value) -> Value {
    let mut event = json!({ "appId": app.app_id(), "eventName": name, "timestamp": at });
    event["parameters"] = parameters;
    event
}

/// Events of the first app, stored and folded.
async fn record(app: &TestApp, events: &[(&str, &str, Value)]) {
    let events: Vec<Value> =
        events.iter().map(|(name, at, parameters)| event(app, name, at, parameters.clone())).collect();
    let answer = app.key().post("/event-log/batch", json!(events)).await.expect(201);
    for result in answer.at("/results").as_array().expect("a list") {
        assert_eq!(*result, json!({ "queued": true }));
    }
    app.drain().await;
}

/// A question of `POST /event-log/query`, with these members beside the app.
async fn ask(app: &TestApp, mut query: Value) -> Answer {
    query["appId"] = json!(app.app_id());
    app.key().post("/event-log/query", query).await
}

/// A `GET` below `/event-log` with the app and this query.
async fn get(app: &TestApp, path: &str, query: &str) -> Answer {
    app.key().get(&format!("/event-log{path}?appId={}{query}", app.app_id())).await
}
