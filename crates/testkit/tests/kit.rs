//! The kit's own promises.

use serde_json::json;
use testkit::{EngineName, Receiver, TestApp, on_both_engines};

on_both_engines!(
    every_test_has_a_database_of_its_own,
    what_is_due_is_done_at_the_end,
    a_failed_job_fails_its_test,
    a_fact_that_is_not_handled_fails_its_test
);

async fn every_test_has_a_database_of_its_own(engine: EngineName) {
    let (one, other) = (TestApp::start(engine).await, TestApp::start(engine).await);
    let caller = one.other_app().await;
    caller.get("/account/app").await.expect(200);
    let there = other.anon().with_api_key(caller.app_id(), &caller.header_sent("x-api-key"));
    there.get("/account/app").await.error(401, "INVALID_CREDENTIAL");
    assert_ne!(one.app_id(), other.app_id());
}

async fn what_is_due_is_done_at_the_end(engine: EngineName) {
    let app = TestApp::start(engine).await;
    let (keyring, id) = (app.service().core().keyring.clone(), app.app_id());
    let sms = spine::NewSms { app: Some(id), to: "+491701234567".into(), text: "Hello".into() };
    app.service().core().db.write(move |tx| spine::queue_sms(tx, &keyring, &sms)).await.expect("queued");
    assert!(fails(&app, |app| async move { app.assert_nothing_due().await }).await);
    app.end().await;
    assert_eq!(app.sms().len(), 1);
}

async fn a_failed_job_fails_its_test(app: TestApp) {
    app.service().core().db.exec_one("DROP TABLE sms_outbox", &[]).await.expect("dropped");
    assert!(fails(&app, |app| async move { app.end().await }).await);
    app.expect_failures();
}

async fn a_fact_that_is_not_handled_fails_its_test(app: TestApp) {
    let db = app.service().core().db.clone();
    let failing = "INSERT INTO outbox_cursors (name, position, attempts, last_error) VALUES ('failing', 0, 1, 'No.')";
    db.exec_one(failing, &[]).await.expect("stored");
    assert!(fails(&app, |app| async move { app.end().await }).await);
    db.exec_one("DELETE FROM outbox_cursors", &[]).await.expect("deleted");
}

async fn fails<F: Future<Output = ()> + Send + 'static>(app: &TestApp, end: fn(TestApp) -> F) -> bool {
    tokio::spawn(end(app.clone())).await.is_err_and(|error| error.is_panic())
}

#[tokio::test]
async fn a_receiver_keeps_what_comes_and_answers_as_told() {
    let receiver = Receiver::start().await;
    receiver.answer_next(&[503, 201]);
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let mut statuses = Vec::new();
    for number in 0..3 {
        let request = client.post(receiver.url("/hook?x=1")).header("x-number", number).json(&json!({ "n": number }));
        statuses.push(request.send().await.expect("answered").status().as_u16());
    }
    assert_eq!(statuses, [503, 201, 200]);
    let received = receiver.wait_for(3).await;
    assert_eq!((received[2].path.as_str(), received[2].header("x-number")), ("/hook?x=1", Some("2")));
    assert_eq!(received[2].json(), json!({ "n": 2 }));
}
