//! `GET /event-log/entities/{entity_type}/{entity_value}` and `GET /event-log/journeys/stats`.

use serde_json::json;
use testkit::{TestApp, on_both_engines};

use super::{get, record};

on_both_engines!(
    first_occurrences_and_all_durations,
    a_stem_finds_its_parameters,
    who_had_no_events_is_not_found,
    statistics_are_of_entities_with_both_events,
    a_journey_of_too_many_events_is_too_wide,
    wrong_questions_are_refused,
);

async fn first_occurrences_and_all_durations(app: TestApp) {
    record(
        &app,
        &[
            ("paid", "2026-03-01T12:00:00Z", json!({ "userId": "u1" })),
            ("signup", "2026-03-01T10:00:00Z", json!({ "userId": "u1", "orderId": 7 })),
            ("signup", "2026-03-01T11:00:00Z", json!({ "userId": "u1" })),
            ("seen", "2026-03-01T12:00:00Z", json!({ "userId": "u1" })),
        ],
    )
    .await;
    // A late one moves the first time back.
    record(&app, &[("signup", "2026-03-01T09:59:59.500Z", json!({ "userId": "u1" }))]).await;
    let journey = get(&app, "/entities/userId/u1", "").await.expect(200).json();
    assert_eq!(
        journey,
        json!({
            "events": {
                "signup": "2026-03-01T09:59:59.500Z", "paid": "2026-03-01T12:00:00.000Z", "seen": "2026-03-01T12:00:00.000Z",
            },
            "durations": { "signup_to_paid": 7_200_500, "signup_to_seen": 7_200_500, "paid_to_seen": 0 },
        })
    );
    let order = get(&app, "/entities/orderId/7", "").await.expect(200).json();
    assert_eq!(order, json!({ "events": { "signup": "2026-03-01T10:00:00.000Z" }, "durations": {} }));
}

async fn a_stem_finds_its_parameters(app: TestApp) {
    record(
        &app,
        &[
            ("a", "2026-03-01T10:00:00Z", json!({ "userId": "u/1" })),
            ("b", "2026-03-01T10:00:01Z", json!({ "user_id": "u/1" })),
            ("a", "2026-03-01T10:00:02Z", json!({ "userid": "u/1" })),
        ],
    )
    .await;
    let journey = get(&app, "/entities/user/u%2F1", "").await.expect(200);
    assert_eq!(journey.at("/durations"), json!({ "a_to_b": 1_000 }));
    let exact = get(&app, "/entities/user_id/u%2F1", "").await.expect(200);
    assert_eq!(exact.at("/events"), json!({ "b": "2026-03-01T10:00:01.000Z" }));
    // Once a parameter is called like the stem, that one is meant.
    record(&app, &[("c", "2026-03-01T10:00:00Z", json!({ "user": "u/1" }))]).await;
    get(&app, "/entities/user/u%2F1", "").await.error(404, "NOT_FOUND");
}

async fn who_had_no_events_is_not_found(app: TestApp) {
    record(&app, &[("a", "2026-03-01T10:00:00Z", json!({ "userId": "u1", "email": "a@b.example", "okId": true }))])
        .await;
    for path in [
        "/entities/userId/u2",
        "/entities/nothing/u1",
        "/entities/email/a@b.example",
        "/entities/okId/true",
        "/entities/userId/%00",
    ] {
        get(&app, path, "").await.error(404, "NOT_FOUND");
    }
    app.key().get("/event-log/entities/userId/u1").await.refuses(&["appId"]);
}

async fn statistics_are_of_entities_with_both_events(app: TestApp) {
    let stats = async |query: &str| get(&app, "/journeys/stats", query).await.expect(200).json();
    let none = json!({ "count": 0, "average_ms": 0, "median_ms": 0, "min_ms": 0, "max_ms": 0 });
    assert_eq!(stats("&startEvent=start&endEvent=end").await, none);
    record(
        &app,
        &[
            ("start", "2026-03-01T10:00:00Z", json!({ "userId": "u1", "orgId": "o1" })),
            ("start", "2026-03-01T10:00:00Z", json!({ "userId": "u2" })),
            ("start", "2026-03-01T10:00:00Z", json!({ "userId": "u3" })),
            ("end", "2026-03-01T10:00:01Z", json!({ "userId": "u1" })),
            ("end", "2026-03-01T10:00:02.001Z", json!({ "userId": "u2" })),
            ("end", "2026-03-01T09:00:00Z", json!({ "userId": "u3" })),
            ("end", "2026-03-02T10:00:00Z", json!({ "orgId": "o1" })),
        ],
    )
    .await;
    let users = json!({ "count": 2, "average_ms": 1_501, "median_ms": 1_501, "min_ms": 1_000, "max_ms": 2_001 });
    assert_eq!(stats("&startEvent=start&endEvent=end&entityType=user").await, users);
    assert_eq!(stats("&startEvent=start&endEvent=end&to=2026-03-01T23:00:00Z").await, users);
    let all = stats("&startEvent=start&endEvent=end").await;
    assert_eq!((&all["count"], &all["median_ms"], &all["max_ms"]), (&json!(3), &json!(2_001), &json!(86_400_000)));
    let one = json!({ "count": 1, "average_ms": 2_001, "median_ms": 2_001, "min_ms": 2_001, "max_ms": 2_001 });
    let query = "&startEvent=start&endEvent=end&entityType=userId&from=2026-03-01T10:00:02.001Z";
    assert_eq!(stats(query).await, one);
    assert_eq!(stats("&startEvent=end&endEvent=never").await, none);
}

async fn a_journey_of_too_many_events_is_too_wide(app: TestApp) {
    let named = |number: usize| format!("e{number}");
    let names: Vec<String> = (0..1_001).map(named).collect();
    let events: Vec<_> =
        names.iter().map(|name| (name.as_str(), "2026-03-01T10:00:00Z", json!({ "userId": "u1" }))).collect();
    record(&app, &events[..1_000]).await;
    get(&app, "/entities/userId/u1", "").await.expect(200);
    record(&app, &events[1_000..]).await;
    let refused = get(&app, "/entities/userId/u1", "").await.error(503, "QUERY_TOO_WIDE");
    assert_eq!(refused.header("retry-after"), Some("10"));
}

async fn wrong_questions_are_refused(app: TestApp) {
    app.key().get("/event-log/journeys/stats").await.refuses(&["appId", "startEvent", "endEvent"]);
    let late = "&startEvent=a&endEvent=b&from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z";
    get(&app, "/journeys/stats", late).await.refuses(&["from"]);
}
