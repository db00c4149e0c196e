//! `/admin/apps/{app_id}/events/sink`.

use std::time::Duration;

use serde_json::{Value, json};

use super::event;
use testkit::{Answer, Receiver, Reply, TestApp, facts::told_of_app, on_both_engines};

on_both_engines!(
    events_are_sent_on_in_batches,
    a_batch_that_failed_is_sent_again_as_it_was,
    what_was_there_before_is_sent_from_its_time_on,
    a_long_backfill_is_sent_once_however_often_it_fails,
    clickhouse_is_given_a_token_for_each_batch,
    a_sink_never_shows_its_credentials,
    a_sink_that_hangs_keeps_no_other_waiting,
    a_new_address_begins_again_and_new_credentials_do_not,
    wrong_sinks_are_refused,
);

const MINUTE: Duration = Duration::from_secs(60);

fn path(app: &TestApp) -> String {
    format!("/admin/apps/{}/events/sink", app.app_id())
}

async fn set(app: &TestApp, sink: Value) -> Answer {
    app.operator().put(&path(app), sink).await
}

async fn send(app: &TestApp, name: &str, count: usize) {
    for number in 0..count {
        let event = event(app, name, &app.now().to_string(), json!({ "number": number }));
        app.key().header("prefer", "wait").post("/event-log", event).await.expect(201);
    }
}

/// The lines of all batches, each with its batch's id.
fn lines(receiver: &Receiver) -> Vec<(String, Value)> {
    let mut lines = Vec::new();
    for received in receiver.received() {
        let id = received.header("idempotency-key").expect("an id").to_owned();
        let body = String::from_utf8(received.body.clone()).expect("UTF-8");
        lines.extend(body.lines().map(|line| (id.clone(), serde_json::from_str(line).expect("JSON"))));
    }
    lines
}

async fn events_are_sent_on_in_batches(app: TestApp) {
    let receiver = Receiver::start().await;
    let sink = json!({ "kind": "http", "url": receiver.url("/take"), "events": ["order.*"] });
    set(&app, sink).await.expect(200);
    send(&app, "order.paid", 3).await;
    send(&app, "other", 1).await;
    app.advance(MINUTE).await;
    let lines = lines(&receiver);
    let numbers: Vec<String> =
        lines.iter().map(|(_, line)| line["parameters"].as_str().expect("text").to_owned()).collect();
    assert_eq!(numbers, [0, 1, 2].map(|number| format!("{{\"number\":{number}}}")));
    assert_eq!((&lines[0].1["event_name"], &lines[0].1["app_id"]), (&json!("order.paid"), &json!(app.app_id())));
    app.advance(MINUTE).await;
    assert_eq!(receiver.received().len(), 1, "nothing is sent twice");
}

async fn a_batch_that_failed_is_sent_again_as_it_was(app: TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply_next([Reply::Status(503), Reply::Reset]);
    set(&app, json!({ "kind": "http", "url": receiver.url("/"), "events": ["a"] })).await.expect(200);
    send(&app, "a", 2).await;
    app.advance(Duration::from_secs(1)).await;
    send(&app, "a", 1).await;
    app.advance(10 * MINUTE).await;
    let lines = lines(&receiver);
    let first: Vec<&(String, Value)> = lines.iter().filter(|(id, _)| *id == lines[0].0).collect();
    assert_eq!(first.len() % 2, 0, "the same two events each time");
    let shown = app.operator().get(&path(&app)).await.expect(200).json();
    assert_eq!((&shown["failures"], &shown["lastError"]), (&json!(0), &Value::Null));
}

async fn what_was_there_before_is_sent_from_its_time_on(app: TestApp) {
    let receiver = Receiver::start().await;
    send(&app, "old", 1).await;
    app.advance(MINUTE).await;
    let since = app.now().to_string();
    send(&app, "a", 2).await;
    send(&app, "b", 2).await;
    set(&app, json!({ "kind": "http", "url": receiver.url("/"), "since": since, "events": ["old", "a", "b", "c"] }))
        .await
        .expect(200);
    send(&app, "c", 1).await;
    app.advance(MINUTE).await;
    app.advance(MINUTE).await;
    let mut names: Vec<String> =
        lines(&receiver).iter().map(|(_, line)| line["event_name"].as_str().expect("text").to_owned()).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "a", "b", "b", "c"]);
    assert_eq!(app.operator().get(&path(&app)).await.expect(200).at("/backfilling"), json!(false));
}

async fn a_long_backfill_is_sent_once_however_often_it_fails(app: TestApp) {
    let large = json!({ "text": "x".repeat(15_000) });
    for (name, count, parameters) in [("a", 6_100, json!({})), ("b", 300, large), ("c", 10, json!({}))] {
        let at = app.now().to_string();
        let events: Vec<Value> = (0..count).map(|_| event(&app, name, &at, parameters.clone())).collect();
        for some in events.chunks(if name == "b" { 50 } else { 1_000 }) {
            app.key().post("/event-log/batch", json!(some)).await.expect(201);
        }
    }
    app.drain().await;
    let receiver = Receiver::start().await;
    receiver.reply_next([Reply::Status(200), Reply::Status(503), Reply::Status(503)]);
    let wanted = json!(["a", "b", "c"]);
    let sink = json!({ "kind": "http", "url": receiver.url("/"), "since": "2000-01-01T00:00:00Z", "events": wanted });
    set(&app, sink).await.expect(200);
    app.advance(10 * MINUTE).await;
    let lines = lines(&receiver);
    let batches: std::collections::BTreeSet<&String> = lines.iter().map(|(batch, _)| batch).collect();
    assert!((3..5).contains(&batches.len()), "{} batches", batches.len());
    let distinct: std::collections::BTreeSet<(&String, String)> =
        lines.iter().map(|(batch, line)| (batch, line["event_id"].to_string())).collect();
    assert_eq!(distinct.len(), 6_410, "each event is in one batch, and every attempt sends the same");
    assert!(lines.len() > 6_410, "something was tried again");
    assert_eq!(app.operator().get(&path(&app)).await.expect(200).at("/backfilling"), json!(false));
}

async fn clickhouse_is_given_a_token_for_each_batch(app: TestApp) {
    let receiver = Receiver::start().await;
    let sink = json!({ "kind": "clickhouse", "url": receiver.url("/"), "table": "db.log", "events": ["a"] });
    set(&app, sink).await.expect(200);
    send(&app, "a", 1).await;
    app.advance(MINUTE).await;
    let received = receiver.received();
    let asked = &received.first().expect("a batch").path;
    assert!(asked.contains("query=INSERT+INTO+db.log+FORMAT+JSONEachRow"), "{asked}");
    assert!(asked.contains("insert_deduplication_token="), "{asked}");
}

async fn a_sink_never_shows_its_credentials(app: TestApp) {
    let receiver = Receiver::start().await;
    let url = receiver.url("/in?password=hidden1").replace("http://", "http://u:hidden2@");
    let sink = json!({ "kind": "http", "url": url, "headers": { "x-key": "hidden3" }, "events": ["a"] });
    set(&app, sink).await.expect(200);
    send(&app, "a", 1).await;
    app.advance(MINUTE).await;
    let received = receiver.received();
    let sent = received.first().expect("a batch");
    assert_eq!((sent.header("x-key"), sent.path.as_str()), (Some("hidden3"), "/in?password=hidden1"));
    assert!(sent.header("authorization").is_some());
    let shown = app.operator().get(&path(&app)).await.expect(200);
    let told = told_of_app(&app, "event_sink.set").await;
    for text in [shown.body().to_owned(), format!("{told:?}")] {
        assert!(!text.contains("hidden"), "{text}");
    }
}

async fn a_sink_that_hangs_keeps_no_other_waiting(app: TestApp) {
    let (hanging, well) = (Receiver::start().await, Receiver::start().await);
    hanging.reply_always(Reply::Hang);
    set(&app, json!({ "kind": "http", "url": hanging.url("/"), "events": ["a"] })).await.expect(200);
    let other = app.other_app().await;
    let sink = json!({ "kind": "http", "url": well.url("/"), "events": ["a"] });
    app.operator().put(&format!("/admin/apps/{}/events/sink", other.app_id()), sink).await.expect(200);
    send(&app, "a", 1).await;
    let others = async {
        hanging.wait_for(1).await;
        let event =
            json!({ "appId": other.app_id(), "eventName": "a", "timestamp": app.now().to_string(), "parameters": {} });
        other.header("prefer", "wait").post("/event-log", event).await.expect(201);
        well.wait_for(1).await;
    };
    tokio::select! {
        () = app.drain() => panic!("the sink that hangs has answered"),
        () = others => {}
    }
    hanging.reply_always(Reply::Status(200));
}

async fn a_new_address_begins_again_and_new_credentials_do_not(app: TestApp) {
    let (one, two) = (Receiver::start().await, Receiver::start().await);
    let since = app.now().to_string();
    let sink = |receiver: &Receiver, key: &str| json!({ "kind": "http", "url": receiver.url("/"), "headers": { "x-key": key }, "since": since, "events": ["a"] });
    set(&app, sink(&one, "1")).await.expect(200);
    send(&app, "a", 1).await;
    app.advance(MINUTE).await;
    set(&app, sink(&one, "2")).await.expect(200);
    app.advance(MINUTE).await;
    assert_eq!(lines(&one).len(), 1);
    set(&app, sink(&two, "1")).await.expect(200);
    app.advance(MINUTE).await;
    assert_eq!(lines(&two).len(), 1);
    app.operator().delete(&path(&app)).await.expect(200);
    send(&app, "a", 1).await;
    app.advance(MINUTE).await;
    assert_eq!((lines(&one).len(), lines(&two).len()), (1, 1));
    app.operator().get(&path(&app)).await.error(404, "NOT_FOUND");
    app.operator().delete(&path(&app)).await.error(404, "NOT_FOUND");
}

async fn wrong_sinks_are_refused(app: TestApp) {
    let wrong = json!({ "kind": "kafka", "url": "nowhere", "events": "all" });
    set(&app, wrong).await.refuses(&["kind", "url", "events"]);
    let unknown = "/admin/apps/app_01h455vb4pex5vsknk084sn02q/events/sink";
    let sink = json!({ "kind": "http", "url": "https://sink.example" });
    app.operator().put(unknown, sink).await.error(404, "NOT_FOUND");
}
