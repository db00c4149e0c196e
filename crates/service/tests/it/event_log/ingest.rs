//! `POST /event-log`.

use serde_json::{Value, json};
use testkit::{TestApp, api_tokens, on_both_engines};

use super::{ask, event, get};

on_both_engines!(
    an_event_is_stored_and_counted,
    an_ingest_id_makes_a_repeat_a_no_op,
    who_waits_finds_the_event_in_the_aggregates,
    everything_wrong_is_named_and_nothing_stored,
    limits_are_exact,
    another_apps_id_is_forbidden,
    names_of_the_service_are_refused,
    an_app_has_so_many_names,
    privileges_of_either_kind_will_do,
    the_test_clock_answers_after_the_fold,
);

const AT: &str = "2026-03-01T10:30:00Z";

async fn count(app: &TestApp, name: &str) -> Value {
    let query = json!({ "eventName": name, "from": "2000-01-01T00:00:00Z", "to": "2030-01-01T00:00:00Z" });
    ask(app, query).await.expect(200).at("/totalCount")
}

async fn an_event_is_stored_and_counted(app: TestApp) {
    let answer = app.key().post("/event-log", event(&app, "order.placed", AT, json!({}))).await.expect(201);
    assert_eq!(answer.json(), json!({ "queued": true }));
    app.drain().await;
    assert_eq!(count(&app, "order.placed").await, 1);
    // Historical times are taken, and any offset.
    let old = event(&app, "order.placed", "2001-01-01T01:00:00+02:00", json!({}));
    app.key().post("/v1/event-log", old).await.expect(201);
    app.drain().await;
    assert_eq!(count(&app, "order.placed").await, 2);
}

async fn an_ingest_id_makes_a_repeat_a_no_op(app: TestApp) {
    let mut sent = event(&app, "e", AT, json!({ "n": 1 }));
    sent["ingestId"] = json!("once");
    for _ in 0..2 {
        app.key().post("/event-log", sent.clone()).await.expect(201);
        app.drain().await;
    }
    sent["eventName"] = json!("another");
    app.key().post("/event-log/batch", json!([sent, sent])).await.expect(201);
    app.drain().await;
    assert_eq!((count(&app, "e").await, count(&app, "another").await), (json!(1), json!(0)));
    // Another app has ids of its own.
    let other = app.other_app().await;
    let theirs =
        json!({ "appId": other.app_id(), "eventName": "e", "timestamp": AT, "parameters": {}, "ingestId": "once" });
    other.post("/event-log", theirs).await.expect(201);
    app.drain().await;
    let query = json!({ "appId": other.app_id(), "eventName": "e", "from": AT, "to": AT });
    assert_eq!(other.post("/event-log/query", query).await.expect(200).at("/totalCount"), 1);
}

async fn who_waits_finds_the_event_in_the_aggregates(app: TestApp) {
    let patient = app.key().header("prefer", "respond-async, wait=5");
    let answer = patient.post("/event-log", event(&app, "e", AT, json!({}))).await.expect(201);
    assert_eq!(answer.json(), json!({ "queued": false }));
    assert_eq!(count(&app, "e").await, 1);
    let many: Vec<Value> = (0..300).map(|number| event(&app, "e", AT, json!({ "rowId": number }))).collect();
    let answer = patient.post("/event-log/batch", json!(many)).await.expect(201);
    assert_eq!(answer.at("/results/299"), json!({ "queued": false }));
    assert_eq!(count(&app, "e").await, 301);
}

async fn everything_wrong_is_named_and_nothing_stored(app: TestApp) {
    app.key().post("/event-log", json!({})).await.refuses(&["appId", "eventName", "timestamp", "parameters"]);
    let wrong = json!({
        "appId": "", "eventName": "", "timestamp": "yesterday", "parameters": [], "ingestId": "", "ingestSource": "tenantry",
    });
    let fields = ["appId", "eventName", "timestamp", "parameters", "ingestId", "ingestSource"];
    app.key().post("/event-log", wrong).await.refuses(&fields);
    for at in [Value::Null, json!(7), json!("2026-03-01")] {
        let mut sent = event(&app, "e", AT, json!({}));
        sent["timestamp"] = at;
        app.key().post("/event-log", sent).await.refuses(&["timestamp"]);
    }
    let nul = event(&app, "e", AT, json!({ "a": ["\0"] }));
    app.key().post("/event-log", nul).await.error(400, "VALIDATION_FAILED");
    app.key().post("/event-log", event(&app, "a\nb", AT, json!({}))).await.refuses(&["eventName"]);
    app.drain().await;
    assert_eq!(count(&app, "e").await, 0);
}

async fn limits_are_exact(app: TestApp) {
    let many = |count: usize| Value::from_iter((0..count).map(|number| (format!("p{number}"), json!(number))));
    app.key().post("/event-log", event(&app, "e", AT, many(100))).await.expect(201);
    app.key().post("/event-log", event(&app, "e", AT, many(101))).await.refuses(&["parameters"]);
    let long = |bytes: usize| json!({ "k": "a".repeat(bytes - json!({ "k": "" }).to_string().len()) });
    app.key().post("/event-log", event(&app, "e", AT, long(65_536))).await.expect(201);
    app.key().post("/event-log", event(&app, "e", AT, long(65_537))).await.error(400, "VALIDATION_FAILED");
    let named = |length: usize| Value::from_iter([("é".repeat(length), json!("v"))]);
    app.key().post("/event-log", event(&app, &"é".repeat(128), AT, named(128))).await.expect(201);
    app.key().post("/event-log", event(&app, "e", AT, named(129))).await.error(400, "VALIDATION_FAILED");
    app.key().post("/event-log", event(&app, &"é".repeat(129), AT, json!({}))).await.refuses(&["eventName"]);
    let ahead = |seconds: u64| {
        let at = app.now().plus(std::time::Duration::from_secs(seconds));
        event(&app, "ahead", &at.to_string(), json!({}))
    };
    app.key().post("/event-log", ahead(86_390)).await.expect(201);
    app.key().post("/event-log", ahead(86_410)).await.refuses(&["timestamp"]);
    let mut own = ahead(86_410);
    own["eventName"] = "tenantry.own".into();
    app.key().post("/event-log", own).await.refuses(&["eventName", "timestamp"]);
    let mut sent = event(&app, "e", AT, json!({ "orderId": "x".repeat(60_000) }));
    sent["ingestId"] = json!("é".repeat(256));
    app.key().post("/event-log", sent.clone()).await.expect(201);
    sent["ingestId"] = json!("é".repeat(257));
    app.key().post("/event-log", sent).await.refuses(&["ingestId"]);
    app.drain().await;
    assert_eq!(count(&app, "e").await, 3);
}

async fn another_apps_id_is_forbidden(app: TestApp) {
    let other = app.other_app().await;
    other.post("/event-log", event(&app, "e", AT, json!({}))).await.error(403, "FORBIDDEN");
    let query = json!({ "appId": app.app_id(), "eventName": "e", "from": AT, "to": AT });
    other.post("/event-log/query", query).await.error(403, "FORBIDDEN");
    for path in [
        format!("/charts?eventName=e&interval=day&from={AT}&to={AT}&appId={}", app.app_id()),
        format!("/entities/userId/u1?appId={}", app.app_id()),
        format!("/journeys/stats?startEvent=a&endEvent=b&appId={}", app.app_id()),
        format!("/audit?appId={}", app.app_id()),
        "/audit?appId=nonsense".to_owned(),
    ] {
        other.get(&format!("/event-log{path}")).await.error(403, "FORBIDDEN");
    }
    let entries = json!([event(&app, "e", AT, json!({}))]);
    let results = other.post("/event-log/batch", entries).await.expect(201).at("/results");
    assert_eq!(results[0]["error"]["error"], "FORBIDDEN");
}

async fn names_of_the_service_are_refused(app: TestApp) {
    app.key().post("/event-log", event(&app, "tenantry.login", AT, json!({}))).await.refuses(&["eventName"]);
    let mut sent = event(&app, "tenantry", AT, json!({}));
    app.key().post("/event-log", sent.clone()).await.expect(201);
    sent["ingestSource"] = json!("tenantry");
    app.key().post("/event-log", sent).await.refuses(&["ingestSource"]);
}

async fn an_app_has_so_many_names(app: TestApp) {
    let named = |from: usize, to: usize| {
        Value::from_iter((from..to).map(|number| event(&app, &format!("name-{number}"), AT, json!({}))))
    };
    for batch in 0..10 {
        app.key().post("/event-log/batch", named(batch * 1_000, batch * 1_000 + 1_000)).await.expect(201);
    }
    app.key().post("/event-log", event(&app, "one-more", AT, json!({}))).await.refuses(&["eventName"]);
    let results = app.key().post("/event-log/batch", named(9_999, 10_001)).await.expect(201).at("/results");
    assert_eq!((&results[0]["queued"], &results[1]["error"]["error"]), (&json!(true), &json!("VALIDATION_FAILED")));
    app.drain().await;
    assert_eq!((count(&app, "name-9999").await, count(&app, "one-more").await), (json!(2), json!(0)));
    // The service's own are not counted.
    let audit = get(&app, "/audit", "&action=tenantry.app.created").await.expect(200);
    assert!(audit.json().is_array());
}

async fn privileges_of_either_kind_will_do(app: TestApp) {
    let sent = event(&app, "e", AT, json!({}));
    let audit = format!("/event-log/audit?appId={}", app.app_id());
    for (privilege, writes) in
        [("APP_WRITE", true), ("TENANT_WRITE", true), ("APP_READ", false), ("TENANT_READ", false)]
    {
        let key = app.key_with(&[privilege]).await;
        let (write, read) = (key.post("/event-log", sent.clone()).await, key.get(&audit).await);
        let (allowed, refused) = if writes { (write, read) } else { (read, write) };
        assert!(allowed.status() < 300, "{privilege}: {allowed:?}");
        refused.error(403, "MISSING_PRIVILEGE");
    }
    let tenant = app.workspace("acme").await.id;
    let scoped = api_tokens::workspace_token(&app, tenant, &["TENANT_WRITE", "TENANT_READ"]).await;
    let scoped = api_tokens::bearer_of(&app, &scoped);
    scoped.post("/event-log", sent).await.error(403, "FORBIDDEN");
    scoped.get(&audit).await.error(403, "FORBIDDEN");
}

async fn the_test_clock_answers_after_the_fold(app: TestApp) {
    app.key().post("/event-log", event(&app, "e", AT, json!({}))).await.expect(201);
    app.operator().post("/admin/test-clock", json!({ "advanceSeconds": 1 })).await.expect(200);
    assert_eq!(count(&app, "e").await, 1);
}
