//! `GET /admin/apps/{app_id}/events/tail`.

use serde_json::json;
use testkit::{TestApp, on_both_engines, streams::OpenStream};

use super::record;

on_both_engines!(events_are_on_the_screen_as_they_arrive);

async fn open(app: &TestApp, query: &str) -> OpenStream {
    let path = format!("/admin/apps/{}/events/tail{query}", app.app_id());
    OpenStream::at(app, &path, None, Some(&format!("Bearer {}", testkit::OPERATOR_KEY))).await
}

async fn events_are_on_the_screen_as_they_arrive(app: TestApp) {
    record(&app, &[("order.old", "2026-03-01T10:00:00Z", json!({}))]).await;
    let (mut orders, mut paid) = (open(&app, "?event=order.*").await, open(&app, "?event=paid").await);
    let other = app.other_app().await;
    let foreign = json!({ "appId": other.app_id(), "eventName": "order.x", "timestamp": "2026-03-01T10:00:00Z", "parameters": {} });
    other.post("/event-log", foreign).await.expect(201);
    record(
        &app,
        &[("paid", "2026-03-01T10:00:00Z", json!({})), ("order.a", "2020-01-01T00:00:00Z", json!({ "n": 1 }))],
    )
    .await;
    record(&app, &[("order.b", "2026-03-01T10:00:00Z", json!({})), ("paid2", "2026-03-01T10:00:00Z", json!({}))]).await;
    let first = orders.next().await.expect("an event").data;
    assert_eq!((&first["eventName"], &first["parameters"]), (&json!("order.a"), &json!({ "n": 1 })));
    assert_eq!(orders.next().await.expect("an event").data["eventName"], "order.b");
    assert_eq!(paid.next().await.expect("an event").data["eventName"], "paid");
    app.service().end_streams();
    assert!(orders.next().await.is_none() && paid.next().await.is_none());
    let unknown = "/admin/apps/app_00000000000000000000000007/events/tail";
    app.operator().get(unknown).await.error(404, "NOT_FOUND");
}
