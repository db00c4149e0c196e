//! Events that are no longer rows: every answer is as before.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{Receiver, TestApp, on_both_engines};

use super::{ask, event, get, without};

on_both_engines!(
    packed_events_answer_as_before,
    few_and_young_events_stay_rows,
    months_are_packed_apart_and_late_events_later,
    a_page_may_end_where_blocks_meet,
    packed_events_go_with_the_retention,
    an_erased_entity_leaves_blocks_and_their_sums,
    sinks_are_sent_packed_events_once_and_unsent_ones_stay_rows,
    a_damaged_block_fails_its_questions_and_shows_in_doctor,
    packing_that_fails_leaves_everything_as_it_was,
    nodes_pack_and_erase_at_once,
    packed_events_move_with_their_app,
);

const DAY: Duration = Duration::from_hours(24);
const START: &str = "2000-01-01T00:00:00Z";
const END: &str = "9999-01-01T00:00:00Z";

/// Lets rows ripen and packs them.
async fn pack(app: &TestApp) {
    app.advance(DAY + Duration::from_hours(1)).await;
}

async fn counted(app: &TestApp, sql: &str) -> i64 {
    let count = store::testing::statement(sql.to_owned());
    app.service().core().db.read(move |tx| tx.one::<(i64,)>(count, &[])).await.expect("a count").0
}

pub async fn blocks(app: &TestApp) -> i64 {
    counted(app, "SELECT count(*) FROM event_blocks").await
}

async fn ingest_ids(app: &TestApp) -> i64 {
    counted(app, "SELECT count(*) FROM event_ingest_ids").await
}

/// Rows that could be in a block.
async fn rows(app: &TestApp) -> i64 {
    let own = counted(app, "SELECT count(*) FROM event_rows WHERE ingest_source = 'tenantry'").await;
    counted(app, "SELECT count(*) FROM event_rows").await - own
}

fn order(app: &TestApp, number: i64, at: &str) -> Value {
    let mixed = match number % 5 {
        0 => json!("1"),
        1 => json!(1),
        2 => json!(1.0),
        3 => json!(null),
        _ => json!([number]),
    };
    let parameters = json!({
        "userId": format!("u{}", number % 9),
        "orderId": number,
        "plan": if number % 3 == 0 { "pro" } else { "free" },
        "amount": number,
        "ok": number % 2 == 0,
        "mixed": mixed,
        "late": "x",
    });
    let mut event = event(app, "order", at, parameters);
    if number % 4 == 0 {
        event["ingestId"] = json!(format!("i{number}"));
        event["parameters"] = json!({ "rare": number, "userId": "u1" });
    }
    event
}

/// One a second, from shortly before an hour is full.
async fn store_orders(app: &TestApp, count: i64) {
    let at = |number: i64| {
        let (minute, second) = (9 * 60 + 55 + number / 60, number % 60);
        format!("2026-03-01T{:02}:{:02}:{second:02}.{:03}Z", minute / 60, minute % 60, number % 7)
    };
    let orders: Vec<Value> = (0..count).map(|number| order(app, number, &at(number * 7 % count))).collect();
    for some in orders.chunks(1_000) {
        app.key().post("/event-log/batch", json!(some)).await.expect(201);
    }
    app.drain().await;
}

/// Whatever can be asked about orders.
async fn answers(app: &TestApp) -> Vec<Value> {
    let mut answers = Vec::new();
    for (from, to) in [(START, END), ("2026-03-01T10:03:20.003Z", "2026-03-01T10:07:11.001Z")] {
        for filters in [
            json!({ "plan": "pro" }),
            json!({ "orderId": 21 }),
            json!({ "ok": true, "mixed": 1 }),
            json!({ "mixed": null }),
            json!({ "mixed": "1", "plan": "free" }),
            json!({ "rare": 8 }),
            json!({}),
        ] {
            let query = json!({ "eventName": "order", "from": from, "to": to, "filters": filters, "sumField": "amount", "groupBy": "hour" });
            answers.push(ask(app, query).await.expect(200).json());
        }
        let query = format!("&eventName=order&interval=hour&from={from}&to={to}");
        answers.push(get(app, "/charts", &query).await.expect(200).json());
        for page in ["", "&limit=7&offset=250", "&limit=1000"] {
            let query = format!("&eventName=order&from={from}&to={to}{page}");
            answers.push(get(app, "/events", &query).await.expect(200).json());
        }
        for query in [
            "&actor=u4",
            "&target=21",
            "&actor=u1&target=8",
            "&action=order&limit=400&offset=3",
            "&actor=nobody",
            "&action=plain",
            "&limit=500",
        ] {
            answers.push(get(app, "/audit", &format!("{query}&from={from}&to={to}")).await.expect(200).json());
        }
    }
    answers.push(get(app, "/entities/user/u4", "").await.expect(200).json());
    let listed = get(app, "/events", "&eventName=order&limit=1&offset=100").await.expect(200);
    let id = listed.text("/0/id");
    let one = get(app, &format!("/events/{id}"), "").await.expect(200).json();
    assert_eq!(one, listed.at("/0"));
    answers.push(one);
    answers.push(json!(exported(app).await));
    answers
}

/// The lines of an export that are about orders.
async fn exported(app: &TestApp) -> Vec<Value> {
    let (mut cursor, mut lines) = (String::new(), Vec::new());
    loop {
        let path = format!("/admin/apps/{}/events/export?format=jsonl{cursor}", app.app_id());
        let part = app.operator().get(&path).await.expect(200);
        lines.extend(part.body().lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")));
        match part.header("x-next-cursor") {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    lines.retain(|line| line["eventName"] == "order");
    lines
}

async fn packed_events_answer_as_before(app: TestApp) {
    store_orders(&app, 600).await;
    // Half of these are in the trail.
    let plain =
        |number: u32| if number.is_multiple_of(2) { json!({ "v": number }) } else { json!({ "itemId": number }) };
    let others: Vec<Value> =
        (0..300).map(|number| event(&app, "plain", "2026-03-01T10:05:00Z", plain(number))).collect();
    app.key().post("/event-log/batch", json!(others)).await.expect(201);
    app.drain().await;
    let before = answers(&app).await;
    pack(&app).await;
    assert_eq!((blocks(&app).await, rows(&app).await), (2, 0));
    for (after, before) in answers(&app).await.into_iter().zip(before) {
        assert_eq!(after, before);
    }
    // Others come between them, and one that is known already does not.
    let more = [order(&app, 4, "2026-03-01T10:03:30Z"), order(&app, 601, "2026-03-01T10:03:30Z")];
    app.key().post("/event-log/batch", json!(more)).await.expect(201);
    app.drain().await;
    let listed = get(&app, "/events", "&eventName=order&limit=1000").await.expect(200).json();
    let times: Vec<&str> =
        listed.as_array().expect("a list").iter().filter_map(|one| one["timestamp"].as_str()).collect();
    assert_eq!(times.len(), 601);
    assert!(times.is_sorted_by(|one, other| one >= other));
    assert_eq!(exported(&app).await.len(), 601);
}

async fn few_and_young_events_stay_rows(app: TestApp) {
    store_orders(&app, 255).await;
    pack(&app).await;
    assert_eq!((blocks(&app).await, rows(&app).await), (0, 255));
    app.key().post("/event-log", order(&app, 1_001, "2026-03-01T11:00:00Z")).await.expect(201);
    app.advance(Duration::from_hours(23)).await;
    assert_eq!(blocks(&app).await, 0, "the last one is young");
    app.advance(Duration::from_hours(2)).await;
    assert_eq!((blocks(&app).await, rows(&app).await), (1, 0));
    // Where there are enough for a whole block, nobody waits for a day.
    let events: Vec<Value> = (0..2_100).map(|_| event(&app, "busy", "2026-03-01T11:00:00Z", json!({}))).collect();
    for some in events.chunks(1_000) {
        app.key().post("/event-log/batch", json!(some)).await.expect(201);
    }
    app.advance(Duration::from_secs(700)).await;
    assert_eq!((blocks(&app).await, rows(&app).await), (2, 52));
}

async fn months_are_packed_apart_and_late_events_later(app: TestApp) {
    let at = ["2026-01-31T23:59:59.999Z", "2026-02-01T00:00:00Z", "2026-03-05T00:00:00Z"];
    let events: Vec<Value> = (0..900).map(|number| event(&app, "e", at[number % 3], json!({ "n": number }))).collect();
    app.key().post("/event-log/batch", json!(events)).await.expect(201);
    pack(&app).await;
    assert_eq!((blocks(&app).await, rows(&app).await), (3, 0));
    let late: Vec<Value> = (0..300).map(|number| event(&app, "e", at[0], json!({ "n": number }))).collect();
    app.key().post("/event-log/batch", json!(late)).await.expect(201);
    pack(&app).await;
    assert_eq!((blocks(&app).await, rows(&app).await), (4, 0));
    let january = json!({ "eventName": "e", "from": at[0], "to": at[0], "filters": { "n": 3 }, "sumField": "n" });
    let answer = ask(&app, january).await.expect(200).json();
    assert_eq!(answer, json!({ "totalCount": 2, "totalSum": 6 }));
    let listed = get(&app, "/events", "&eventName=e&limit=1000&offset=599").await.expect(200).json();
    let listed = listed.as_array().expect("a list");
    assert_eq!((&listed[0]["timestamp"], &listed[1]["timestamp"]), (&json!("2026-02-01T00:00:00.000Z"), &json!(at[0])));
    assert_eq!(listed.len(), 601);
}

/// A block that was packed later has events of the same instant, of which some belong before those of the first.
async fn a_page_may_end_where_blocks_meet(app: TestApp) {
    let meeting = "2026-03-01T10:05:00Z";
    for other in ["2026-03-01T10:10:00Z", "2026-03-01T10:00:00Z"] {
        let at = |number: usize| if number.is_multiple_of(2) { meeting } else { other };
        let events: Vec<Value> = (0..300).map(|number| event(&app, "e", at(number), json!({ "n": number }))).collect();
        app.key().post("/event-log/batch", json!(events)).await.expect(201);
        pack(&app).await;
    }
    assert_eq!((blocks(&app).await, rows(&app).await), (2, 0));
    let listed = async |page: &str| {
        let list = get(&app, "/events", &format!("&eventName=e{page}")).await.expect(200).json();
        list.as_array().expect("a list").clone()
    };
    let all = listed("&limit=1000").await;
    assert_eq!(all.len(), 600);
    assert_eq!(listed("&limit=200").await, all[..200]);
    assert_eq!(listed("&limit=200&offset=200").await, all[200..400]);
}

async fn packed_events_go_with_the_retention(app: TestApp) {
    let ago = |days: u64| app.now().minus(DAY * u32::try_from(days).expect("small")).to_string();
    // In three months or in two, whatever day it is: those that are cut lie within one.
    for (days, count) in [(100, 300), (10, 300), (9, 300)] {
        let made = |number: i32| {
            let mut event = event(&app, "e", &ago(days), json!({ "rowId": number, "v": "x" }));
            event["ingestId"] = json!(format!("{days} {number}"));
            event
        };
        let events: Vec<Value> = (0..count).map(made).collect();
        app.key().post("/event-log/batch", json!(events)).await.expect(201);
    }
    pack(&app).await;
    assert_eq!((rows(&app).await, ingest_ids(&app).await), (0, 900));
    let settings = format!("/admin/apps/{}/events/settings", app.app_id());
    // A day went by while they were packed.
    app.operator().put(&settings, json!({ "retentionDays": 11 })).await.expect(200);
    app.advance(Duration::from_hours(1)).await;
    let all = json!({ "eventName": "e", "from": START, "to": END, "filters": { "v": "x" } });
    assert_eq!(ask(&app, all).await.expect(200).at("/totalCount"), 300);
    let listed = get(&app, "/events", "&eventName=e&limit=1000").await.expect(200).json();
    assert_eq!((listed.as_array().map(Vec::len), ingest_ids(&app).await), (Some(300), 300));
    let whole = json!({ "eventName": "e", "from": START, "to": END });
    assert_eq!(ask(&app, whole).await.expect(200).at("/totalCount"), 900, "buckets stay");
    app.advance(DAY * 3).await;
    assert_eq!((blocks(&app).await, rows(&app).await, ingest_ids(&app).await), (0, 0, 0));
}

async fn erase(app: &TestApp, entity: &str) {
    let path = format!("/admin/apps/{}/events/entities/{entity}", app.app_id());
    app.operator().delete(&path).await.expect(202);
    app.drain().await;
}

async fn an_erased_entity_leaves_blocks_and_their_sums(app: TestApp) {
    store_orders(&app, 600).await;
    pack(&app).await;
    store_orders(&app, 20).await;
    let total = async |filters: Value| {
        let query = json!({ "eventName": "order", "from": START, "to": END, "filters": filters });
        ask(&app, query).await.expect(200).at("/totalCount").as_i64().expect("a count")
    };
    let named = total(json!({ "userId": "u1" })).await;
    assert!(named > 200);
    erase(&app, "user/u1").await;
    assert_eq!(total(json!({ "userId": "u1" })).await, 0);
    assert_eq!(total(json!({ "userId": "__erased__" })).await, named);
    assert_eq!(get(&app, "/audit", "&actor=u1").await.expect(200).json(), json!([]));
    assert!(exported(&app).await.iter().all(|line| line["parameters"]["userId"] != "u1"));
    let chart = format!("&eventName=order&interval=month&from={START}&to={END}");
    let sum = get(&app, "/charts", &chart).await.expect(200).at("/0/parameterSums/orderId").as_i64().expect("a sum");
    erase(&app, "orderId/599").await;
    let less = get(&app, "/charts", &chart).await.expect(200).at("/0/parameterSums/orderId").as_i64().expect("a sum");
    assert_eq!(sum - less, 599);
    assert_eq!(total(json!({ "orderId": "__erased__" })).await, 1);
    assert_eq!(blocks(&app).await, 1);
}

async fn sinks_are_sent_packed_events_once_and_unsent_ones_stay_rows(app: TestApp) {
    let receiver = Receiver::start().await;
    store_orders(&app, 400).await;
    pack(&app).await;
    assert_eq!(rows(&app).await, 0);
    let path = format!("/admin/apps/{}/events/sink", app.app_id());
    let sink = |url: String| json!({ "kind": "http", "url": url, "since": START, "events": ["order"] });
    let closed = "http://127.0.0.1:9/".to_owned();
    app.operator().put(&path, sink(closed)).await.expect(200);
    let late: Vec<Value> = (2_001..2_301).map(|number| order(&app, number, "2026-03-01T10:00:30Z")).collect();
    app.key().post("/event-log/batch", json!(late)).await.expect(201);
    pack(&app).await;
    assert_eq!((blocks(&app).await, rows(&app).await), (1, 300), "what was not sent is not packed");
    // Another address begins again: all of it is from before.
    app.operator().put(&path, sink(receiver.url("/"))).await.expect(200);
    app.advance(Duration::from_secs(600)).await;
    let mut ids = Vec::new();
    for received in receiver.received() {
        let body = String::from_utf8(received.body.clone()).expect("UTF-8");
        ids.extend(body.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["event_id"].to_string()));
    }
    let sent = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((sent, ids.len()), (700, 700));
    pack(&app).await;
    assert_eq!((blocks(&app).await, rows(&app).await), (2, 0));
}

async fn a_damaged_block_fails_its_questions_and_shows_in_doctor(app: TestApp) {
    store_orders(&app, 400).await;
    pack(&app).await;
    let doctor = async || {
        let report = app.operator().get("/admin/doctor").await.expect(200).json();
        let findings = report["findings"].as_array().expect("findings").clone();
        findings.into_iter().find(|finding| finding["check"] == "events").expect("a finding")
    };
    assert_eq!(doctor().await["level"], "ok");
    let (data,) = app
        .service()
        .core()
        .db
        .read(|tx| tx.one::<(Vec<u8>,)>(store::testing::statement("SELECT data FROM event_blocks".to_owned()), &[]))
        .await
        .expect("a block");
    let mut damaged = data;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    let damage = store::testing::statement("UPDATE event_blocks SET data = $1".to_owned());
    app.service().core().db.write(move |tx| tx.run(damage, &store::args![damaged])).await.expect("damaged");
    let query = json!({ "eventName": "order", "from": START, "to": END, "filters": { "plan": "pro" } });
    ask(&app, query).await.error(500, "EVENTS_DAMAGED");
    get(&app, "/events", "&eventName=order").await.error(500, "EVENTS_DAMAGED");
    // Buckets do not need it.
    let whole = json!({ "eventName": "order", "from": START, "to": END });
    assert_eq!(ask(&app, whole).await.expect(200).at("/totalCount"), 400);
    let finding = doctor().await;
    assert_eq!(finding["level"], "problem");
    assert!(finding["message"].as_str().is_some_and(|text| text.contains("1 of 1 blocks")), "{finding}");
}

async fn packing_that_fails_leaves_everything_as_it_was(app: TestApp) {
    app.expect_failures();
    store_orders(&app, 400).await;
    let before = answers(&app).await;
    without(&app, "event_blocks", async {
        let body = json!({ "advanceSeconds": 100_000 });
        app.operator().post("/admin/test-clock", body).await.expect(200);
        let failed = app.service().drain().await;
        assert!(failed.is_err());
    })
    .await;
    assert_eq!((blocks(&app).await, rows(&app).await), (0, 400));
    assert_eq!(answers(&app).await, before);
    pack(&app).await;
    assert_eq!((blocks(&app).await, rows(&app).await), (1, 0));
    assert_eq!(answers(&app).await, before);
}

async fn nodes_pack_and_erase_at_once(app: TestApp) {
    let nodes = [app.clone(), app.another_node().await, app.another_node().await];
    store_orders(&app, 3_000).await;
    for user in [2, 3, 5] {
        let path = format!("/admin/apps/{}/events/entities/user/u{user}", app.app_id());
        app.operator().delete(&path).await.expect(202);
    }
    app.operator().post("/admin/test-clock", json!({ "advanceSeconds": 100_000 })).await.expect(200);
    TestApp::drain_all(&nodes).await;
    pack(&app).await;
    let total = async |filters: Value| {
        let query = json!({ "eventName": "order", "from": START, "to": END, "filters": filters });
        ask(&app, query).await.expect(200).at("/totalCount").as_i64().expect("a count")
    };
    for user in ["u2", "u3", "u5"] {
        assert_eq!(total(json!({ "userId": user })).await, 0, "{user}");
    }
    let erased = (0..3_000).filter(|number| number % 4 != 0 && [2, 3, 5].contains(&(number % 9))).count();
    assert_eq!(total(json!({ "userId": "__erased__" })).await, i64::try_from(erased).expect("small"));
    assert_eq!(exported(&app).await.len(), 3_000);
    assert_eq!((blocks(&app).await, rows(&app).await), (2, 0));
}

async fn packed_events_move_with_their_app(app: TestApp) {
    store_orders(&app, 400).await;
    pack(&app).await;
    let before = exported(&app).await;
    let key = "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f";
    let path = format!("/admin/apps/{}/export", app.app_id());
    let archive = app.operator().post(&path, json!({ "key": key })).await.expect(200).bytes().to_vec();
    app.operator().delete(&format!("/admin/apps/{}", app.app_id())).await.expect(200);
    app.advance(Duration::from_mins(5)).await;
    assert_eq!(blocks(&app).await, 0, "a deleted app takes its blocks along");
    let operator = app.operator().header("x-archive-key", key);
    operator.send(Method::POST, "/admin/apps/import", archive).await.expect(200);
    assert_eq!(exported(&app).await, before);
}
