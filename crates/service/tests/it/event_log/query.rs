//! `POST /event-log/query`.

use serde_json::json;
use testkit::{TestApp, on_both_engines};

use super::{ask, record};

on_both_engines!(
    counts_and_sums_are_of_the_time_asked_for,
    buckets_come_oldest_first_and_in_utc,
    filters_compare_type_and_value,
    wrong_questions_are_refused,
    an_unknown_event_never_happened,
);

async fn counts_and_sums_are_of_the_time_asked_for(app: TestApp) {
    record(
        &app,
        &[
            ("sale", "2026-03-01T10:00:00Z", json!({ "total": 10 })),
            ("sale", "2026-03-01T10:00:00.001Z", json!({ "total": 2.5 })),
            ("sale", "2026-03-01T11:59:59.999Z", json!({ "total": "much" })),
            ("sale", "2026-03-03T00:00:00Z", json!({ "total": -1 })),
            ("other", "2026-03-01T10:00:00Z", json!({ "total": 100 })),
        ],
    )
    .await;
    for (from, to, count, sum) in [
        ("2026-03-01T10:00:00Z", "2026-03-01T10:00:00Z", 1, json!(10)),
        ("2026-03-01T10:00:00.001Z", "2026-03-03T00:00:00Z", 3, json!(1.5)),
        ("2026-03-01T10:00:00Z", "2026-03-02T23:59:59.999Z", 3, json!(12.5)),
        ("2026-03-01T10:00:00.0005Z", "2026-03-01T11:59:59.998Z", 1, json!(2.5)),
        ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", 4, json!(11.5)),
        ("2026-03-04T00:00:00Z", "2026-03-05T00:00:00Z", 0, json!(0)),
    ] {
        let query = json!({ "eventName": "sale", "from": from, "to": to, "sumField": "total" });
        let answer = ask(&app, query).await.expect(200).json();
        assert_eq!(answer, json!({ "totalCount": count, "totalSum": sum }), "{from} {to}");
    }
    let plain = json!({ "eventName": "sale", "from": "2026-03-01T10:00:00Z", "to": "2026-03-01T10:00:00Z",
        "groupBy": "none", "currency": "EUR", "limit": "ignored" });
    assert_eq!(ask(&app, plain).await.expect(200).json(), json!({ "totalCount": 1 }));
}

async fn buckets_come_oldest_first_and_in_utc(app: TestApp) {
    record(
        &app,
        &[
            ("sale", "2026-03-02T00:30:00+02:00", json!({ "total": 1 })),
            ("sale", "2026-02-28T23:00:00Z", json!({ "total": 2 })),
            ("sale", "2026-03-01T22:59:00Z", json!({ "total": 4 })),
        ],
    )
    .await;
    for (group, starts, counts, totals) in [
        ("hour", vec!["2026-02-28T23:00:00.000Z", "2026-03-01T22:00:00.000Z"], vec![1, 2], vec![2, 5]),
        ("day", vec!["2026-02-28T00:00:00.000Z", "2026-03-01T00:00:00.000Z"], vec![1, 2], vec![2, 5]),
        ("week", vec!["2026-02-23T00:00:00.000Z"], vec![3], vec![7]),
        ("month", vec!["2026-02-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z"], vec![1, 2], vec![2, 5]),
    ] {
        let query = json!({ "eventName": "sale", "from": "2026-01-15T10:20:30Z", "to": "2026-03-01T22:59:59Z",
            "groupBy": group, "sumField": "total" });
        let answer = ask(&app, query).await.expect(200).json();
        let buckets: Vec<_> = starts
            .iter()
            .zip(counts.iter().zip(&totals))
            .map(|(start, (count, total))| json!({ "bucketStart": start, "count": count, "total": total }))
            .collect();
        assert_eq!(answer, json!({ "totalCount": 3, "totalSum": 7, "buckets": buckets }), "{group}");
    }
    let query =
        json!({ "eventName": "sale", "from": "2026-02-28T00:00:00Z", "to": "2026-02-28T23:59:59Z", "groupBy": "day" });
    let buckets = json!([{ "bucketStart": "2026-02-28T00:00:00.000Z", "count": 1 }]);
    assert_eq!(ask(&app, query).await.expect(200).json(), json!({ "totalCount": 1, "buckets": buckets }));
}

async fn filters_compare_type_and_value(app: TestApp) {
    let at = "2026-03-01T10:00:00Z";
    record(
        &app,
        &[
            ("e", at, json!({ "plan": "pro", "seats": 20, "paid": true, "note": null, "n": 1 })),
            ("e", at, json!({ "plan": "pro", "seats": 20.0, "paid": "true", "n": 2 })),
            ("e", at, json!({ "plan": "free", "seats": "20", "paid": false, "note": "x", "n": 4 })),
        ],
    )
    .await;
    for (filters, sum) in [
        (json!({}), 7),
        (json!({ "plan": "pro" }), 3),
        (json!({ "seats": 20 }), 3),
        (json!({ "seats": "20" }), 4),
        (json!({ "paid": true }), 1),
        (json!({ "paid": "true" }), 2),
        (json!({ "note": null }), 1),
        (json!({ "plan": "pro", "paid": true }), 1),
        (json!({ "plan": "pro", "paid": false }), 0),
        (json!({ "missing": "x" }), 0),
    ] {
        let query = json!({ "eventName": "e", "from": at, "to": at, "filters": filters, "sumField": "n" });
        assert_eq!(ask(&app, query).await.expect(200).at("/totalSum"), sum, "{filters}");
    }
}

async fn wrong_questions_are_refused(app: TestApp) {
    ask(&app, json!({})).await.refuses(&["eventName", "from", "to"]);
    let base = json!({ "eventName": "e", "from": "2026-03-01T10:00:00Z", "to": "2026-03-01T10:00:00Z" });
    for (member, value, field) in [
        ("from", json!("2026-03-01T10:00:01Z"), "from"),
        ("groupBy", json!("year"), "groupBy"),
        ("filters", json!({ "a": {} }), "filters.a"),
        ("filters", json!({ "a": [1] }), "filters.a"),
        ("filters", json!([]), "filters"),
        ("sumField", json!(""), "sumField"),
    ] {
        let mut query = base.clone();
        query[member] = value;
        ask(&app, query).await.refuses(&[field]);
    }
}

async fn an_unknown_event_never_happened(app: TestApp) {
    let query = json!({ "eventName": "e", "from": "2026-03-01T10:00:00Z", "to": "2026-03-01T10:00:00Z",
        "groupBy": "day", "sumField": "n" });
    assert_eq!(ask(&app, query).await.expect(200).json(), json!({ "totalCount": 0, "totalSum": 0, "buckets": [] }));
}
