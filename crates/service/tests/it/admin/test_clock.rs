//! `/admin/test-clock`.

use std::time::Duration;

use kernel::{Secret, Timestamp};
use serde_json::json;
use testkit::{EngineName, TestApp, on_both_engines, queued};

on_both_engines!(
    the_clock_moves_forward_only,
    moves_at_once_follow_each_other,
    exactly_one_way_to_move_must_be_given,
    a_restart_keeps_the_time,
    every_node_follows,
    each_due_instant_gets_its_own_moment,
    without_the_setting_there_is_no_such_route,
);

const HOUR: Duration = Duration::from_secs(3600);

async fn now(app: &TestApp) -> Timestamp {
    app.operator().get("/admin/test-clock").await.expect(200).text("/now").parse().expect("a time")
}

async fn the_clock_moves_forward_only(app: TestApp) {
    let start = now(&app).await;
    app.operator().post("/admin/test-clock", json!({ "advanceSeconds": 0 })).await.expect(200);
    let moved = app.operator().post("/admin/test-clock", json!({ "advanceSeconds": 3600 })).await.expect(200);
    let moved: Timestamp = moved.text("/now").parse().expect("a time");
    assert!(moved.since(start) >= HOUR && moved.since(start) < 2 * HOUR, "{start} to {moved}");
    let back = start.plus(HOUR / 2).to_string();
    app.operator().post("/admin/test-clock", json!({ "now": back })).await.refuses(&["now"]);
    let target = start.plus(30 * HOUR);
    let moved = app.operator().post("/admin/test-clock", json!({ "now": target.to_string() })).await.expect(200);
    let moved: Timestamp = moved.text("/now").parse().expect("a time");
    assert!(moved.since(target) < HOUR && now(&app).await >= moved);
    let told: Timestamp = app.anon().get("/tick").await.expect(200).text("/time").parse().expect("a time");
    assert!(told >= moved, "the whole service runs on it");
}

async fn moves_at_once_follow_each_other(app: TestApp) {
    let start = now(&app).await;
    let operator = app.operator();
    let advance = || operator.post("/admin/test-clock", json!({ "advanceSeconds": 3600 }));
    let (one, other) = tokio::join!(advance(), advance());
    one.expect(200);
    other.expect(200);
    assert!(now(&app).await.since(start) >= 2 * HOUR);
}

async fn exactly_one_way_to_move_must_be_given(app: TestApp) {
    let start = now(&app).await;
    for (body, field) in [
        (json!({}), "advanceSeconds"),
        (json!({ "advanceSeconds": 1, "now": "2099-01-01T00:00:00Z" }), "advanceSeconds"),
        (json!({ "advanceSeconds": -1 }), "advanceSeconds"),
        (json!({ "advanceSeconds": "1" }), "advanceSeconds"),
        (json!({ "advanceSeconds": u64::MAX }), "advanceSeconds"),
        (json!({ "now": "tomorrow" }), "now"),
    ] {
        app.operator().post("/admin/test-clock", body).await.refuses(&[field]);
    }
    assert!(now(&app).await.since(start) < HOUR);
}

async fn a_restart_keeps_the_time(app: TestApp) {
    app.advance(5 * HOUR).await;
    let before = now(&app).await;
    app.restart().await;
    let after = now(&app).await;
    assert!(after >= before && after.since(before) < HOUR, "{before} to {after}");
}

async fn every_node_follows(app: TestApp) {
    let node = app.another_node().await;
    app.advance(5 * HOUR).await;
    node.drain().await;
    assert!(now(&node).await.plus(HOUR) > now(&app).await);
}

async fn each_due_instant_gets_its_own_moment(engine: EngineName) {
    let app = TestApp::start_with(engine, |options| options.mail_url = Secret::new("file:/dev/null/mail".into())).await;
    let queued_at = now(&app).await;
    queued::queue(&app, "ada@customer.example").await;
    app.advance(40 * HOUR).await;
    // At once, then after 1 minute, 5, 30 minutes, 2 and 12 hours.
    let given_up: Option<(i64, Timestamp)> = app
        .service()
        .core()
        .db
        .get_one("SELECT attempts, finished_at FROM mail_outbox WHERE state = 'failed'", &[])
        .await
        .expect("read");
    let (attempts, finished_at) = given_up.expect("the mail was given up");
    assert_eq!(attempts, 6);
    let took = finished_at.since(queued_at).as_secs() / 60;
    assert_eq!(took, 1 + 5 + 30 + 120 + 720);
}

async fn without_the_setting_there_is_no_such_route(engine: EngineName) {
    let app = TestApp::start_with(engine, |options| options.test_clock = false).await;
    app.operator().get("/admin/test-clock").await.error(404, "ROUTE_NOT_FOUND");
    app.operator().post("/admin/test-clock", json!({ "advanceSeconds": 1 })).await.error(404, "ROUTE_NOT_FOUND");
    assert!(!app.anon().get("/openapi.json").await.expect(200).body().contains("test-clock"));
}
