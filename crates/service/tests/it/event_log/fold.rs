//! The fold: whoever does it, and however much there is, every event is counted once.

use serde_json::{Value, json};
use testkit::{TestApp, on_both_engines};

use super::{ask, event};

on_both_engines!(
    two_nodes_fold_and_take_in_together,
    an_event_of_a_hundred_parameters_is_folded,
    a_fold_that_fails_at_any_step_is_done_later,
);

const AT: &str = "2026-03-01T10:30:00Z";

async fn total(app: &TestApp) -> Value {
    let query = json!({ "eventName": "e", "from": AT, "to": AT, "sumField": "n" });
    ask(app, query).await.expect(200).json()
}

async fn two_nodes_fold_and_take_in_together(app: TestApp) {
    if app.service().core().db.is_single_node() {
        return;
    }
    let other = app.another_node().await;
    let sent = |round: usize| {
        Value::from_iter((0..100).map(|number| {
            let mut one = event(&app, "e", AT, json!({ "n": 1, "v": format!("v{}", number % 7), "rowId": number }));
            one["ingestId"] = json!(format!("{round}-{number}"));
            one
        }))
    };
    let patient = |app: &TestApp| app.key().header("prefer", "wait");
    for round in 0..4 {
        let (one, two) = (patient(&app), patient(&other));
        let both = tokio::join!(one.post("/event-log/batch", sent(round)), two.post("/event-log/batch", sent(round)),);
        both.0.expect(201);
        both.1.expect(201);
    }
    app.drain().await;
    assert_eq!(total(&app).await, json!({ "totalCount": 400, "totalSum": 400 }));
    let chart = super::get(&app, "/charts", &format!("&eventName=e&interval=hour&from={AT}&to={AT}")).await.expect(200);
    let values = chart.at("/0/parameterCounts/v").as_object().expect("counts").clone();
    assert_eq!(values.values().filter_map(Value::as_i64).sum::<i64>(), 400);
    other.end().await;
}

async fn a_fold_that_fails_at_any_step_is_done_later(app: TestApp) {
    app.expect_failures();
    app.drain().await;
    let written = [
        "event_folds",
        "event_parameters",
        "event_buckets",
        "event_sums",
        "event_counts",
        "event_firsts",
        "event_rows",
    ];
    for (number, table) in written.iter().enumerate() {
        let mut parameters = json!({ "n": 1, "v": "x", "userId": "u1" });
        parameters[format!("p{number}")] = json!(true);
        super::without(&app, table, async {
            app.key().post("/event-log", event(&app, "e", AT, parameters)).await.expect(201);
            assert!(app.service().drain().await.is_err(), "{table}");
        })
        .await;
        app.drain().await;
        let expected = number + 1;
        assert_eq!(total(&app).await, json!({ "totalCount": expected, "totalSum": expected }), "{table}");
    }
    let chart = super::get(&app, "/charts", &format!("&eventName=e&interval=hour&from={AT}&to={AT}")).await.expect(200);
    assert_eq!(chart.at("/0/parameterCounts/v/x"), written.len());
    assert_eq!(chart.at("/0/parameterCounts/p3/true"), 1);
}

async fn an_event_of_a_hundred_parameters_is_folded(app: TestApp) {
    let wide = |number: usize| Value::from_iter((0..100).map(|p| (format!("p{p}_id"), json!(format!("{number}-{p}")))));
    let events: Vec<Value> = (0..5).map(|number| event(&app, "e", AT, wide(number))).collect();
    app.key().post("/event-log/batch", json!(events)).await.expect(201);
    app.drain().await;
    assert_eq!(total(&app).await["totalCount"], 5);
    let journey = super::get(&app, "/entities/p99/4-99", "").await.expect(200);
    assert_eq!(journey.at("/events/e"), "2026-03-01T10:30:00.000Z");
}
