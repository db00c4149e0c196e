//! `POST /event-log/funnel`, `GET /event-log/names` and `GET /event-log/events…`.

use serde_json::{Value, json};
use testkit::{TestApp, on_both_engines};

use super::{event, get, record};

on_both_engines!(
    a_funnel_counts_who_got_how_far,
    a_funnel_of_many_entities_counts_all,
    names_tell_what_is_sent,
    events_are_listed_as_they_were_sent,
);

/// The counts of a funnel of users, with these members beside the app.
async fn funnel(app: &TestApp, steps: &[&str], more: Value) -> Vec<i64> {
    let mut body = json!({ "appId": app.app_id(), "steps": steps, "entityType": "user" });
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let answer = app.key().post("/event-log/funnel", body).await.expect(200).json();
    let found = answer["steps"].as_array().expect("steps");
    assert!(found.iter().map(|step| &step["eventName"]).eq(steps), "{answer}");
    found.iter().map(|step| step["count"].as_i64().expect("a count")).collect()
}

async fn a_funnel_counts_who_got_how_far(app: TestApp) {
    record(
        &app,
        &[
            ("visit", "2026-03-01T10:00:00Z", json!({ "userId": "u1" })),
            ("visit", "2026-03-01T10:00:00Z", json!({ "userId": "u2" })),
            ("visit", "2026-03-05T10:00:00Z", json!({ "userId": "u3" })),
            ("visit", "2026-03-09T10:00:00Z", json!({ "userId": "u1" })),
            ("signup", "2026-03-02T10:00:00Z", json!({ "userId": "u1" })),
            ("signup", "2026-03-01T09:00:00Z", json!({ "userId": "u2" })),
            ("signup", "2026-03-05T10:00:00Z", json!({ "userId": "u3" })),
            ("paid", "2026-03-06T10:00:00Z", json!({ "userId": "u3", "orderId": "u1" })),
        ],
    )
    .await;
    let steps = ["visit", "signup", "paid", "never"];
    assert_eq!(funnel(&app, &steps, json!({})).await, [3, 2, 1, 0]);
    assert_eq!(funnel(&app, &steps, json!({ "to": "2026-03-04T00:00:00Z" })).await, [2, 1, 0, 0]);
    assert_eq!(funnel(&app, &steps, json!({ "from": "2026-03-04T00:00:00Z" })).await, [1, 1, 1, 0]);
    assert_eq!(funnel(&app, &steps, json!({ "entityType": "order" })).await, [0, 0, 0, 0]);
    assert_eq!(funnel(&app, &["paid"], json!({ "entityType": "orderId" })).await, [1]);
    assert_eq!(funnel(&app, &["never", "visit"], json!({})).await, [0, 0]);
    let wrong = json!({ "appId": app.app_id(), "steps": [], "entityType": "" });
    app.key().post("/event-log/funnel", wrong).await.refuses(&["steps", "entityType"]);
    let (from, to) = ("2026-03-02T00:00:00Z", "2026-03-01T00:00:00Z");
    let wrong = json!({ "appId": app.app_id(), "steps": ["a"], "entityType": "user", "from": from, "to": to });
    app.key().post("/event-log/funnel", wrong).await.refuses(&["from"]);
    let other = json!({ "appId": "x", "steps": ["a"], "entityType": "user" });
    app.key().post("/event-log/funnel", other).await.error(403, "FORBIDDEN");
}

async fn a_funnel_of_many_entities_counts_all(app: TestApp) {
    // More than are read at once, many at the same instant.
    for (name, minute, share) in [("visit", 0, 1), ("signup", 1, 2), ("paid", 1, 3)] {
        let at = |number: i64| format!("2026-03-01T10:{:02}:00Z", minute + number % 7);
        let all = (0..2_100).filter(|number| number % share == 0);
        let events: Vec<Value> =
            all.map(|number| event(&app, name, &at(number), json!({ "userId": number }))).collect();
        for batch in events.chunks(1_000) {
            app.key().post("/event-log/batch", json!(batch)).await.expect(201);
        }
    }
    app.drain().await;
    assert_eq!(funnel(&app, &["visit", "signup", "paid"], json!({})).await, [2_100, 1_050, 350]);
}

async fn names_tell_what_is_sent(app: TestApp) {
    record(
        &app,
        &[
            ("b", "2026-03-01T10:00:00Z", json!({ "plan": "pro", "n": 1 })),
            ("b", "2026-01-01T10:00:00Z", json!({ "ok": true, "nothing": null })),
            ("a", "2026-03-01T10:00:00Z", json!({})),
        ],
    )
    .await;
    let (a, b) = (
        json!({ "eventName": "a", "count": 1, "parameters": [] }),
        json!({ "eventName": "b", "count": 2, "parameters": ["n", "ok", "plan"] }),
    );
    let all = get(&app, "/names", "").await.expect(200).json();
    let all = all.as_array().expect("a list");
    assert_eq!((&all[0], &all[1]), (&a, &b));
    assert!(all[2..].iter().all(|own| own["eventName"].as_str().is_some_and(|name| name.starts_with("tenantry."))));
    assert_eq!(get(&app, "/names", "&limit=1&offset=1").await.expect(200).json(), json!([b]));
    app.key().get("/event-log/names?appId=x").await.error(403, "FORBIDDEN");
    app.key().get("/event-log/names").await.refuses(&["appId"]);
}

async fn events_are_listed_as_they_were_sent(app: TestApp) {
    let parameters = json!({ "userId": "u1", "deep": { "a": [1, null] } });
    record(&app, &[("e", "2026-03-01T10:00:00Z", parameters.clone()), ("e", "2026-03-02T10:00:00Z", json!({}))]).await;
    let list = get(&app, "/events", "&eventName=e").await.expect(200).json();
    assert_eq!((list.as_array().map(Vec::len), &list[0]["timestamp"]), (Some(2), &json!("2026-03-02T10:00:00.000Z")));
    assert_eq!((&list[1]["parameters"], list[1].get("ingestId")), (&parameters, None));
    let id = list[1]["id"].as_str().expect("an id");
    assert_eq!(get(&app, &format!("/events/{id}"), "").await.expect(200).json(), list[1]);
    assert_eq!(get(&app, "/audit", "&actor=u1").await.expect(200).at("/0/rawEventId"), id);
    assert_eq!(get(&app, "/events", "&eventName=e&limit=1&offset=1").await.expect(200).json(), json!([list[1]]));
    let day = "&eventName=e&from=2026-03-02T00:00:00Z&to=2026-03-02T10:00:00Z";
    assert_eq!(get(&app, "/events", day).await.expect(200).json(), json!([list[0]]));
    assert_eq!(get(&app, "/events", "&eventName=never").await.expect(200).json(), json!([]));
    // Beyond what is read among the quick questions.
    assert_eq!(get(&app, "/events", "&eventName=e&offset=5000").await.expect(200).json(), json!([]));
    get(&app, "/events", "&eventName=e&from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z").await.refuses(&["from"]);
    get(&app, "/events", "&limit=1001").await.refuses(&["eventName", "limit"]);
    let other = app.other_app().await;
    let path = format!("/event-log/events/{id}?appId={}", other.app_id());
    other.get(&path).await.error(404, "NOT_FOUND");
    other.get(&format!("/event-log/events?eventName=e&appId={}", app.app_id())).await.error(403, "FORBIDDEN");
    get(&app, "/events/nonsense", "").await.error(404, "NOT_FOUND");
}
