//! `GET /event-log/charts`.

use serde_json::{Value, json};
use testkit::{TestApp, on_both_engines};

use super::{event, get, record};

on_both_engines!(
    values_are_counted_and_numbers_summed,
    sums_do_not_overflow,
    the_ends_are_cut,
    the_newest_buckets_are_kept,
    a_parameter_has_a_thousand_counters,
    wrong_questions_are_refused,
);

async fn chart(app: &TestApp, query: &str) -> Value {
    get(app, "/charts", query).await.expect(200).json()
}

async fn values_are_counted_and_numbers_summed(app: TestApp) {
    record(
        &app,
        &[
            ("e", "2026-03-01T10:00:00Z", json!({ "plan": "pro", "ok": true, "n": 1.5, "userId": "u1", "x": null })),
            ("e", "2026-03-01T10:59:00Z", json!({ "plan": "pro", "ok": false, "n": 2, "userId": 7, "x": { "y": 1 } })),
            ("e", "2026-03-02T10:00:00Z", json!({ "plan": "x".repeat(257) })),
        ],
    )
    .await;
    let query = "&eventName=e&interval=day&from=2026-03-01T00:00:00Z&to=2026-03-31T00:00:00Z";
    let first = json!({
        "bucketStart": "2026-03-01T00:00:00.000Z",
        "count": 2,
        "parameterCounts": { "ok": { "false": 1, "true": 1 }, "plan": { "pro": 2 }, "userId": { "u1": 1 } },
        "parameterSums": { "n": 3.5, "userId": 7 },
    });
    let second = json!({
        "bucketStart": "2026-03-02T00:00:00.000Z",
        "count": 1,
        "parameterCounts": { "plan": { "__other__": 1 } },
        "parameterSums": {},
    });
    assert_eq!(chart(&app, query).await, json!([first, second]));
    let never = "&eventName=never&interval=day&from=2026-03-01T00:00:00Z&to=2026-03-31T00:00:00Z";
    assert_eq!(chart(&app, never).await, json!([]));
}

/// One app's numbers must not stop the fold, which is everybody's.
async fn sums_do_not_overflow(app: TestApp) {
    let query = "&eventName=e&interval=day&from=2026-03-01T00:00:00Z&to=2026-03-31T00:00:00Z";
    for amount in [1.7e308, 1.7e308, -1.7e308, -1.7e308, 2.0] {
        record(&app, &[("e", "2026-03-01T10:00:00Z", json!({ "n": amount }))]).await;
    }
    let buckets = chart(&app, query).await;
    assert_eq!((&buckets[0]["count"], buckets[0]["parameterSums"]["n"].is_number()), (&json!(5), true));
    record(
        &app,
        &[
            ("other", "2026-03-01T10:00:00Z", json!({ "n": 1.7e308 })),
            ("other", "2026-03-01T10:00:00Z", json!({ "n": 1.7e308 })),
        ],
    )
    .await;
    let other = "&eventName=other&interval=day&from=2026-03-01T00:00:00Z&to=2026-03-31T00:00:00Z";
    assert_eq!(chart(&app, other).await[0]["count"], 2);
}

async fn the_ends_are_cut(app: TestApp) {
    let at = [
        "2026-03-01T10:00:00Z",
        "2026-03-01T10:30:00Z",
        "2026-03-15T00:00:00Z",
        "2026-03-31T23:30:00Z",
        "2026-03-31T23:45:00Z",
    ];
    let events: Vec<_> = at.iter().map(|at| ("e", *at, json!({ "plan": "pro", "n": 1 }))).collect();
    record(&app, &events).await;
    for interval in ["month", "week", "day", "hour"] {
        let query = format!("&eventName=e&interval={interval}&from=2026-03-01T10:15:00Z&to=2026-03-31T23:44:59.999Z");
        let buckets = chart(&app, &query).await;
        let buckets = buckets.as_array().expect("a list");
        let count: i64 = buckets.iter().map(|bucket| bucket["count"].as_i64().expect("a count")).sum();
        assert_eq!(count, 3, "{interval}");
        let first = &buckets[0];
        let expected = if interval == "month" { 3 } else { 1 };
        assert_eq!(
            (&first["parameterCounts"]["plan"]["pro"], &first["parameterSums"]["n"]),
            (&json!(expected), &json!(expected))
        );
    }
}

async fn the_newest_buckets_are_kept(app: TestApp) {
    let at: Vec<String> = (1..=9).map(|day| format!("2026-03-0{day}T10:00:00Z")).collect();
    let events: Vec<_> = at.iter().map(|at| ("e", at.as_str(), json!({ "v": "a", "n": 1 }))).collect();
    record(&app, &events).await;
    for (from, to, starts) in [
        ("2026-03-01T00:00:00Z", "2026-03-31T00:00:00Z", ["2026-03-08T00:00:00.000Z", "2026-03-09T00:00:00.000Z"]),
        ("2026-03-01T10:00:00Z", "2026-03-08T10:00:00Z", ["2026-03-07T00:00:00.000Z", "2026-03-08T00:00:00.000Z"]),
    ] {
        let buckets = chart(&app, &format!("&eventName=e&interval=day&limit=2&from={from}&to={to}")).await;
        let found: Vec<_> = buckets.as_array().expect("a list").iter().map(|one| one["bucketStart"].clone()).collect();
        assert_eq!(found, starts);
        assert_eq!(
            (&buckets[0]["parameterCounts"]["v"]["a"], &buckets[0]["parameterSums"]["n"]),
            (&json!(1), &json!(1))
        );
    }
}

async fn a_parameter_has_a_thousand_counters(app: TestApp) {
    let day = |number: usize| if number.is_multiple_of(2) { "2026-03-02" } else { "2026-03-03" };
    let at = |number: usize| format!("{}T10:00:00Z", day(number));
    let send = |from: usize, to: usize| {
        Value::from_iter((from..to).map(|number| event(&app, "e", &at(number), json!({ "v": format!("v{number}") }))))
    };
    for start in [0, 700, 1_400] {
        app.key().post("/event-log/batch", send(start, start + 700)).await.expect(201);
        app.drain().await;
    }
    // A node that has forgotten everything goes on counting the same values by name.
    app.restart().await;
    app.key().post("/event-log/batch", send(0, 10)).await.expect(201);
    app.key().post("/event-log/batch", send(2_000, 2_010)).await.expect(201);
    app.drain().await;
    let counts = |bucket: &Value| bucket["parameterCounts"]["v"].as_object().expect("counts").clone();
    let query =
        |interval: &str| format!("&eventName=e&interval={interval}&from=2026-03-01T00:00:00Z&to=2026-03-31T00:00:00Z");
    let week = counts(&chart(&app, &query("week")).await[0]);
    assert_eq!((week.len(), &week["__other__"]), (1_001, &json!(2_100 - 1_000 + 10)));
    assert_eq!((&week["v0"], &week["v999"], week.get("v1000")), (&json!(2), &json!(1), None));
    let days = chart(&app, &query("day")).await;
    let (first, second) = (counts(&days[0]), counts(&days[1]));
    assert_eq!((first.len(), second.len()), (1_001, 1_001));
    assert_eq!((&first["__other__"], &first["v1998"]), (&json!(50 + 5), &json!(1)));
    let total: i64 = first.values().chain(second.values()).filter_map(Value::as_i64).sum();
    assert_eq!(total, 2_120);
}

async fn wrong_questions_are_refused(app: TestApp) {
    app.key().get("/event-log/charts").await.refuses(&["appId", "eventName", "interval", "from", "to"]);
    let base = "&eventName=e&from=2026-03-01T00:00:00Z";
    for (query, field) in [
        ("&interval=year&to=2026-03-02T00:00:00Z", "interval"),
        ("&interval=day&to=2026-02-28T00:00:00Z", "from"),
        ("&interval=day&to=2026-03-02T00:00:00Z&limit=0", "limit"),
        ("&interval=day&to=2026-03-02T00:00:00Z&limit=1001", "limit"),
        ("&interval=day&to=today", "to"),
    ] {
        get(&app, "/charts", &format!("{base}{query}")).await.refuses(&[field]);
    }
}
