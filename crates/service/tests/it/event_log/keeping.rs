//! `/admin/apps/{app_id}/events/…`: how long events are kept, and how an entity leaves the log.

use std::time::Duration;

use kernel::Timestamp;
use serde_json::{Value, json};
use testkit::{TestApp, on_both_engines};

use super::{ask, event, get, record};

on_both_engines!(
    what_is_older_than_the_retention_goes_and_buckets_stay,
    who_is_still_active_is_found_after_the_retention,
    events_older_than_the_retention_are_refused,
    an_ingest_id_is_free_again_when_its_event_is_gone,
    settings_are_changed_in_part_and_checked,
    an_erased_entity_is_found_nowhere,
    numbers_are_erased_from_sums,
    erasing_takes_rows_step_by_step,
    what_was_worked_out_before_an_erasure_is_not_packed,
    counters_of_events_that_are_gone_are_erased,
    the_services_own_entries_lose_only_the_value,
    an_erasure_that_fails_at_any_step_is_done_later,
    nodes_erase_and_fold_at_once,
    an_unknown_erasure_is_not_found,
);

fn settings(app: &TestApp) -> String {
    format!("/admin/apps/{}/events/settings", app.app_id())
}

async fn keep(app: &TestApp, days: u32) {
    app.operator().put(&settings(app), json!({ "retentionDays": days })).await.expect(200);
    app.advance(Duration::from_secs(3_700)).await;
}

fn days_ago(app: &TestApp, days: u64) -> String {
    let now = app.now();
    now.minus(Duration::from_hours(24 * days)).to_string()
}

async fn total(app: &TestApp, name: &str, filters: Value) -> Value {
    let (from, to) = ("2000-01-01T00:00:00Z", "9999-01-01T00:00:00Z");
    ask(app, json!({ "eventName": name, "from": from, "to": to, "filters": filters }))
        .await
        .expect(200)
        .at("/totalCount")
}

/// What the chart of the month counts.
async fn march(app: &TestApp, name: &str) -> Value {
    let query = format!("&eventName={name}&interval=month&from=2026-03-01T00:00:00Z&to=2026-03-31T23:59:59Z");
    get(app, "/charts", &query).await.expect(200).at("/0")
}

async fn what_is_older_than_the_retention_goes_and_buckets_stay(app: TestApp) {
    let (old, new) = (days_ago(&app, 40), days_ago(&app, 1));
    let mut events: Vec<Value> =
        (0..450).map(|number| event(&app, "e", &old, json!({ "rowId": number, "v": "x" }))).collect();
    events.push(event(&app, "e", &new, json!({ "rowId": "new", "v": "x" })));
    app.key().post("/event-log/batch", json!(events)).await.expect(201);
    app.drain().await;
    let other = app.other_app().await;
    let kept = json!({ "appId": other.app_id(), "eventName": "e", "timestamp": old, "parameters": { "rowId": 7 } });
    other.post("/event-log", kept).await.expect(201);
    keep(&app, 30).await;
    assert_eq!(total(&app, "e", json!({})).await, 451);
    assert_eq!(total(&app, "e", json!({ "v": "x" })).await, 1);
    get(&app, "/entities/rowId/7", "").await.error(404, "NOT_FOUND");
    get(&app, "/entities/rowId/new", "").await.expect(200);
    assert_eq!(get(&app, "/audit", "&action=e").await.expect(200).json().as_array().map(Vec::len), Some(1));
    let journey = format!("/event-log/entities/rowId/7?appId={}", other.app_id());
    other.get(&journey).await.expect(200);
}

async fn who_is_still_active_is_found_after_the_retention(app: TestApp) {
    let (old, new) = (days_ago(&app, 40), days_ago(&app, 1));
    record(&app, &[("e", &old, json!({ "userId": "u1" }))]).await;
    record(&app, &[("e", &new, json!({ "userId": "u1" }))]).await;
    keep(&app, 30).await;
    assert_eq!(get(&app, "/audit", "&actor=u1").await.expect(200).json().as_array().map(Vec::len), Some(1));
    erased(&app, "userId/u1").await;
    assert_eq!(get(&app, "/audit", "&actor=u1").await.expect(200).json(), json!([]));
    assert_eq!(total(&app, "e", json!({ "userId": "__erased__" })).await, 1);
}

async fn an_ingest_id_is_free_again_when_its_event_is_gone(app: TestApp) {
    let send = async |id: &str, days: u64| {
        let mut event = event(&app, "e", &days_ago(&app, days), json!({}));
        event["ingestId"] = json!(id);
        app.key().post("/event-log", event).await.expect(201);
        app.drain().await;
    };
    send("old", 40).await;
    send("young", 20).await;
    keep(&app, 30).await;
    for (id, count) in [("young", 1), ("old", 2), ("old", 2)] {
        send(id, 1).await;
        let listed = get(&app, "/events", "&eventName=e").await.expect(200).json();
        assert_eq!(listed.as_array().map(Vec::len), Some(count), "{id}");
    }
}

async fn events_older_than_the_retention_are_refused(app: TestApp) {
    let mut once = event(&app, "once", &days_ago(&app, 40), json!({}));
    once["ingestId"] = json!("once");
    let cloud = json!({ "specversion": "1.0", "id": "1", "source": "/s", "type": "e", "time": days_ago(&app, 40) });
    app.key().post("/event-log", once.clone()).await.expect(201);
    keep(&app, 30).await;
    // A repeat would not be recognised any more.
    app.key().post("/event-log", once.clone()).await.refuses(&["timestamp"]);
    app.key().post("/event-log", cloud.clone()).await.refuses(&["time"]);
    let fine = event(&app, "once", &days_ago(&app, 29), json!({}));
    let answer = app.key().post("/event-log/batch", json!([once, cloud, fine])).await.expect(201);
    assert_eq!(answer.at("/results/0/error/details/0/field"), "timestamp");
    assert_eq!(answer.at("/results/1/error/details/0/field"), "time");
    assert_eq!(answer.at("/results/2"), json!({ "queued": true }));
    app.operator().put(&settings(&app), json!({ "retentionDays": null })).await.expect(200);
    app.key().post("/event-log", once).await.expect(201);
    app.drain().await;
    assert_eq!(total(&app, "once", json!({})).await, 3, "its id went with it");
}

async fn settings_are_changed_in_part_and_checked(app: TestApp) {
    let operator = app.operator();
    assert_eq!(operator.get(&settings(&app)).await.expect(200).json(), json!({ "retentionDays": null }));
    operator.put(&settings(&app), json!({ "retentionDays": 7 })).await.expect(200);
    assert_eq!(operator.put(&settings(&app), json!({})).await.expect(200).json(), json!({ "retentionDays": 7 }));
    for wrong in [json!(0), json!(-1), json!(1.5), json!("7"), json!(36_501)] {
        operator.put(&settings(&app), json!({ "retentionDays": wrong })).await.refuses(&["retentionDays"]);
    }
    let unknown = "/admin/apps/app_00000000000000000000000007/events/settings";
    operator.get(unknown).await.error(404, "NOT_FOUND");
    operator.put(unknown, json!({})).await.error(404, "NOT_FOUND");
}

async fn erased(app: &TestApp, entity: &str) {
    let base = format!("/admin/apps/{}/events", app.app_id());
    let job = app.operator().delete(&format!("{base}/entities/{entity}")).await.expect(202).text("/jobId");
    app.drain().await;
    let done = app.operator().get(&format!("{base}/erasures/{job}")).await.expect(200).json();
    assert_eq!(done, json!({ "status": "COMPLETED", "progress": 1.0 }));
}

async fn an_erased_entity_is_found_nowhere(app: TestApp) {
    let at = "2026-03-01T10:00:00Z";
    record(
        &app,
        &[
            ("a", at, json!({ "userId": "u1", "note": "u1", "n": 2 })),
            ("a", "2026-03-02T10:00:00Z", json!({ "userId": "u1" })),
            ("a", at, json!({ "userId": "u2" })),
            ("b", at, json!({ "user_id": "u1", "orderId": "u1", "email": "u1@example.com" })),
        ],
    )
    .await;
    // One that waits for the fold is erased too.
    app.key().post("/event-log", event(&app, "a", at, json!({ "userId": "u1" }))).await.expect(201);
    erased(&app, "user/u1").await;
    get(&app, "/entities/user/u1", "").await.error(404, "NOT_FOUND");
    assert_eq!(get(&app, "/audit", "&actor=u1").await.expect(200).json(), json!([]));
    assert_eq!(total(&app, "a", json!({ "userId": "u1" })).await, 0);
    assert_eq!(total(&app, "a", json!({ "userId": "__erased__" })).await, 3);
    assert_eq!(total(&app, "a", json!({})).await, 4);
    let counts = json!({ "note": { "u1": 1 }, "userId": { "__erased__": 3, "u2": 1 } });
    assert_eq!(march(&app, "a").await["parameterCounts"], counts);
    // Another kind of entity that has the same value is left alone.
    get(&app, "/entities/orderId/u1", "").await.expect(200);
    assert_eq!(total(&app, "b", json!({ "orderId": "u1" })).await, 1);
    // An address is not an identifier, but the trail is searched by it.
    erased(&app, "email/u1@example.com").await;
    assert_eq!(get(&app, "/audit", "&actor=u1%40example.com").await.expect(200).json(), json!([]));
    // Whoever comes again is counted again.
    record(&app, &[("a", at, json!({ "userId": "u1" }))]).await;
    assert_eq!(march(&app, "a").await["parameterCounts"]["userId"], json!({ "__erased__": 3, "u1": 1, "u2": 1 }));
    let orders = "SELECT count(*) FROM event_erasures WHERE entity_value <> ''";
    let naming = app.service().core().db.read(move |tx| tx.one::<(i64,)>(orders, &[])).await;
    assert_eq!(naming.expect("a count"), (0,), "not even what asked for it names it");
}

async fn numbers_are_erased_from_sums(app: TestApp) {
    let at = "2026-03-01T10:00:00Z";
    record(&app, &[("e", at, json!({ "orderId": 7 })), ("e", at, json!({ "orderId": 7.0 }))]).await;
    record(&app, &[("e", at, json!({ "orderId": 5 })), ("e", at, json!({ "orderId": "7" }))]).await;
    erased(&app, "order/7").await;
    let chart = march(&app, "e").await;
    assert_eq!(chart["parameterSums"], json!({ "orderId": 5 }));
    assert_eq!(chart["parameterCounts"], json!({ "orderId": { "__erased__": 3 } }));
    // The same from the events themselves.
    let query = "&eventName=e&interval=month&from=2026-03-01T10:00:00Z&to=2026-03-01T10:00:00Z";
    assert_eq!(get(&app, "/charts", query).await.expect(200).at("/0"), chart);
}

async fn erasing_takes_rows_step_by_step(app: TestApp) {
    let at = |number: i64| Timestamp::from_seconds(1_771_545_600 + number * 60).to_string();
    let events: Vec<Value> =
        (0..900).map(|number| event(&app, "e", &at(number), json!({ "rowId": number % 2 }))).collect();
    app.key().post("/event-log/batch", json!(events)).await.expect(201);
    app.drain().await;
    erased(&app, "rowId/1").await;
    assert_eq!(total(&app, "e", json!({ "rowId": "__erased__" })).await, 450);
    assert_eq!(total(&app, "e", json!({ "rowId": 0 })).await, 450);
    erased(&app, "rowId/nothing").await;
    erased(&app, "nothing/1").await;
}

/// The packer writes a block only while the version is the one that it read the rows at.
async fn what_was_worked_out_before_an_erasure_is_not_packed(app: TestApp) {
    let at = "2026-03-01T10:00:00Z";
    record(&app, &[("e", at, json!({ "userId": "u1" })), ("f", at, json!({ "userId": "u2" }))]).await;
    let versions = async || {
        let sql = "SELECT event_names.name, event_series.version FROM event_series JOIN event_names \
                   ON event_names.app_id = event_series.app_id AND event_names.id = event_series.name_id \
                   ORDER BY event_names.name";
        let all = store::testing::statement(sql.to_owned());
        app.service().core().db.read(move |tx| tx.all::<(String, i64)>(all, &[])).await.expect("versions")
    };
    let before = versions().await;
    assert_eq!(before.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["e", "f"]);
    erased(&app, "userId/u1").await;
    let after = versions().await;
    assert!(after[0].1 > before[0].1, "{before:?} {after:?}");
    assert_eq!(after[1], before[1], "nothing of it was erased");
}

async fn counters_of_events_that_are_gone_are_erased(app: TestApp) {
    let old = days_ago(&app, 40);
    record(&app, &[("e", &old, json!({ "userId": "u1" }))]).await;
    keep(&app, 30).await;
    erased(&app, "userId/u1").await;
    let (from, to) = ("2000-01-01T00:00:00Z", "9999-01-01T00:00:00Z");
    for interval in ["hour", "day", "week", "month"] {
        let query = format!("&eventName=e&interval={interval}&from={from}&to={to}");
        let counts = get(&app, "/charts", &query).await.expect(200).at("/0/parameterCounts");
        assert_eq!(counts, json!({ "userId": { "__erased__": 1 } }), "{interval}");
    }
}

async fn the_services_own_entries_lose_only_the_value(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let bob = bob["userId"].as_str().expect("a person");
    acme.add("eve@example.com", "MEMBER").await;
    app.drain().await;
    let query = format!("&action=tenantry.tenant_user.created&target={bob}");
    let before = get(&app, "/audit", &query).await.expect(200);
    assert_eq!(before.at("/0/extracted/targetUserId"), bob);
    // It is called otherwise there.
    erased(&app, &format!("userId/{bob}")).await;
    assert_eq!(get(&app, "/audit", &format!("&target={bob}")).await.expect(200).json(), json!([]));
    let id = before.text("/0/rawEventId");
    let after = get(&app, &format!("/events/{id}"), "").await.expect(200);
    assert_eq!(after.at("/parameters/targetUserId"), "__erased__");
    assert_eq!(after.at("/parameters/workspaceId"), json!(acme.id));
    assert_eq!(after.at("/parameters/targetEmail"), "bob@example.com");
    // The address has another name there too, and is erased separately.
    erased(&app, "email/bob@example.com").await;
    let after = get(&app, &format!("/events/{id}"), "").await.expect(200);
    assert_eq!(after.at("/parameters/targetEmail"), "__erased__");
    let all = get(&app, "/audit", "&limit=100").await.expect(200).json().to_string();
    assert!(!all.contains("bob@example.com") && all.contains("eve@example.com"), "{all}");
}

async fn an_erasure_that_fails_at_any_step_is_done_later(app: TestApp) {
    app.expect_failures();
    let at = "2026-03-01T10:00:00Z";
    for (number, table) in ["event_rows", "event_sums", "event_counts", "event_firsts"].iter().enumerate() {
        record(&app, &[("e", at, json!({ "rowId": "r", "v": 1 })), ("e", at, json!({ "rowId": 7 }))]).await;
        let path = |value: &str| format!("/admin/apps/{}/events/entities/rowId/{value}", app.app_id());
        super::without(&app, table, async {
            app.operator().delete(&path("r")).await.expect(202);
            app.operator().delete(&path("7")).await.expect(202);
            assert!(app.service().drain().await.is_err(), "{table}");
        })
        .await;
        app.restart().await;
        app.drain().await;
        let (chart, rounds) = (march(&app, "e").await, number + 1);
        assert_eq!(chart["parameterCounts"]["rowId"], json!({ "__erased__": 2 * rounds }), "{table}");
        assert_eq!(chart["parameterSums"], json!({ "rowId": 0, "v": rounds }), "{table}");
        assert_eq!(total(&app, "e", json!({ "rowId": "__erased__" })).await, json!(2 * rounds), "{table}");
    }
}

async fn nodes_erase_and_fold_at_once(app: TestApp) {
    if app.service().core().db.is_single_node() {
        return;
    }
    let other = app.another_node().await;
    let at = "2026-03-01T10:00:00Z";
    let sent =
        |user: &str| Value::from_iter((0..60).map(|_| event(&app, "e", at, json!({ "userId": user, "n_id": 2 }))));
    let path = format!("/admin/apps/{}/events/entities/userId/u1", app.app_id());
    for _ in 0..4 {
        let (one, two) = (app.key().header("prefer", "wait"), other.key().header("prefer", "wait"));
        let (operator, begin) = (app.operator(), other.operator());
        let (first, second, erasure, again) = tokio::join!(
            one.post("/event-log/batch", sent("u1")),
            two.post("/event-log/batch", sent("u2")),
            operator.delete(&path),
            begin.delete(&path),
        );
        first.expect(201);
        second.expect(201);
        erasure.expect(202);
        again.expect(202);
    }
    app.drain().await;
    erased(&app, "userId/u1").await;
    let chart = march(&app, "e").await;
    assert_eq!(chart["count"], 480);
    assert_eq!(chart["parameterCounts"]["userId"], json!({ "__erased__": 240, "u2": 240 }));
    assert_eq!(chart["parameterSums"]["n_id"], 960);
    assert_eq!(total(&app, "e", json!({ "userId": "__erased__" })).await, 240);
    other.end().await;
}

async fn an_unknown_erasure_is_not_found(app: TestApp) {
    let other = app.other_app().await.app_id();
    let base = format!("/admin/apps/{}/events", app.app_id());
    let job = app.operator().delete(&format!("{base}/entities/userId/u1")).await.expect(202).text("/jobId");
    app.operator().get(&format!("/admin/apps/{other}/events/erasures/{job}")).await.error(404, "NOT_FOUND");
    let unknown = "/admin/apps/app_00000000000000000000000007/events/entities/userId/u1";
    app.operator().delete(unknown).await.error(404, "NOT_FOUND");
    app.operator().delete(&format!("{base}/entities/%09/u1")).await.error(404, "NOT_FOUND");
    app.operator().delete(&format!("{base}/entities/userId/%00")).await.error(404, "NOT_FOUND");
}
