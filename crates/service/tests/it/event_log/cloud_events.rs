//! CloudEvents 1.0 on both routes.

use http::Method;
use serde_json::json;
use testkit::{TestApp, on_both_engines};

use super::{ask, get};

on_both_engines!(a_cloud_event_is_an_event, binary_ones_are_read_from_headers, wrong_ones_are_named);

const AT: &str = "2026-03-01T10:30:00Z";

async fn a_cloud_event_is_an_event(app: TestApp) {
    let sent = json!({
        "specversion": "1.0", "id": "1", "source": "https://shop.example", "type": "order.placed", "time": AT,
        "datacontenttype": "application/json", "data": { "orderId": "o1", "total": 20 },
    });
    let caller = app.key().header("content-type", "application/cloudevents+json");
    caller.send(Method::POST, "/event-log", sent.to_string()).await.expect(201);
    let batch = app.key().header("content-type", "application/cloudevents-batch+json");
    let mut second = sent.clone();
    second["id"] = json!("2");
    // The first one was there before.
    let body = json!([sent, second, { "specversion": "1.0", "id": "3", "source": "/a", "type": "other" }]);
    batch.send(Method::POST, "/event-log/batch", body.to_string()).await.expect(201);
    app.drain().await;
    let query = json!({ "eventName": "order.placed", "from": AT, "to": AT, "sumField": "total" });
    assert_eq!(ask(&app, query).await.expect(200).json(), json!({ "totalCount": 2, "totalSum": 40 }));
    let journey = get(&app, "/entities/order/o1", "").await.expect(200);
    assert_eq!(journey.at("/events"), json!({ "order.placed": "2026-03-01T10:30:00.000Z" }));
    let query = json!({ "eventName": "other", "from": AT, "to": "9999-01-01T00:00:00Z" });
    assert_eq!(ask(&app, query).await.expect(200).at("/totalCount"), 1);
}

async fn binary_ones_are_read_from_headers(app: TestApp) {
    let headers = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", "/a"), ("ce-type", "t"), ("ce-time", AT)];
    let caller = headers.iter().fold(app.key(), |caller, (name, value)| caller.header(name, value));
    for _ in 0..2 {
        caller.post("/event-log", json!({ "total": 5 })).await.expect(201);
    }
    app.drain().await;
    let query = json!({ "eventName": "t", "from": AT, "to": AT, "sumField": "total" });
    assert_eq!(ask(&app, query).await.expect(200).json(), json!({ "totalCount": 1, "totalSum": 5 }));
}

async fn wrong_ones_are_named(app: TestApp) {
    let wrong = json!({ "specversion": "0.3", "id": "", "source": "tenantry", "type": "", "time": "x", "data": 7 });
    let fields = ["specversion", "id", "source", "type", "time", "data"];
    app.key().post("/event-log", wrong).await.refuses(&fields);
    let own = json!({ "specversion": "1.0", "id": "1", "source": "/a", "type": "tenantry.x" });
    app.key().post("/event-log", own).await.refuses(&["type"]);
}
