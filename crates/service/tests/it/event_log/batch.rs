//! `POST /event-log/batch`.

use serde_json::{Value, json};
use testkit::{TestApp, on_both_engines};

use super::{ask, event};

on_both_engines!(entries_are_answered_in_their_places, a_batch_is_a_list_of_one_to_a_thousand);

const BATCH: &str = "/event-log/batch";
const AT: &str = "2026-03-01T10:30:00Z";

async fn entries_are_answered_in_their_places(app: TestApp) {
    let events = json!([
        event(&app, "e", AT, json!({})), { "eventName": "" }, 7, event(&app, "tenantry.x", AT, json!({})),
        event(&app, "e", "9999-01-01T00:00:00Z", json!({})), event(&app, "e", AT, json!({ "a": { "b": [1] } })),
    ]);
    for body in [events.clone(), json!({ "events": events })] {
        let results = app.key().post(BATCH, body).await.expect(201).at("/results");
        assert_eq!((&results[0], &results[5]), (&json!({ "queued": true }), &json!({ "queued": true })));
        let field = |place: usize| results[place]["error"]["details"][0]["field"].clone();
        assert_eq!((field(1), field(3), field(4)), (json!("appId"), json!("eventName"), json!("timestamp")));
        assert_eq!(results[2]["error"]["error"], "VALIDATION_FAILED");
        assert!(results[2]["error"]["message"].is_string());
    }
    app.drain().await;
    let query = json!({ "eventName": "e", "from": AT, "to": AT });
    assert_eq!(ask(&app, query).await.expect(200).at("/totalCount"), 4);
}

async fn a_batch_is_a_list_of_one_to_a_thousand(app: TestApp) {
    for body in [json!([]), json!({}), json!({ "events": [] }), json!({ "events": 7 })] {
        app.key().post(BATCH, body).await.refuses(&["events"]);
    }
    app.key().post(BATCH, json!(vec![json!({}); 1_001])).await.refuses(&["events"]);
    let many: Vec<Value> = (0..1_000).map(|number| event(&app, "many", AT, json!({ "n": number }))).collect();
    let answer = app.key().post(BATCH, json!(many)).await.expect(201);
    assert_eq!(answer.at("/results").as_array().expect("a list").len(), 1_000);
    app.drain().await;
    let query = json!({ "eventName": "many", "from": AT, "to": AT, "sumField": "n" });
    assert_eq!(ask(&app, query).await.expect(200).json(), json!({ "totalCount": 1_000, "totalSum": 499_500 }));
}
