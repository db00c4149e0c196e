//! `/admin/doctor`.

use kernel::Secret;
use serde_json::{Value, json};
use testkit::{EngineName, TestApp, on_both_engines, on_one_engine, queued};

on_both_engines!(a_sound_installation, a_message_that_does_not_leave_is_reported, a_missing_signing_key_is_a_problem);
on_one_engine!(what_is_only_for_development_is_warned_of);

/// The finding of one check.
async fn finding(app: &TestApp, check: &str) -> Value {
    let report = app.operator().get("/admin/doctor").await.expect(200).json();
    let findings = report["findings"].as_array().expect("findings").clone();
    for finding in &findings {
        assert_eq!(finding["remedy"].is_null(), finding["level"] == "ok", "advice where it is needed: {finding}");
    }
    findings.into_iter().find(|finding| finding["check"] == check).expect("such a check")
}

async fn a_sound_installation(engine: EngineName) {
    let app = TestApp::start_with(engine, |options| options.test_clock = false).await;
    for check in ["storage", "address", "clock", "mail", "master key", "signing keys", "outbox", "messages"] {
        let finding = finding(&app, check).await;
        let local = check != "address";
        assert_eq!(finding["level"], if local { "ok" } else { "warning" }, "{finding}");
    }
}

async fn what_is_only_for_development_is_warned_of(engine: EngineName) {
    let app = TestApp::start_with(engine, |options| options.mail_url = Secret::new("log:".into())).await;
    for check in ["clock", "mail"] {
        assert_eq!(finding(&app, check).await["level"], "warning");
    }
}

async fn a_message_that_does_not_leave_is_reported(engine: EngineName) {
    let app = TestApp::start_with(engine, |options| options.mail_url = Secret::new("file:/dev/null/mail".into())).await;
    queued::queue(&app, "ada@customer.example").await;
    app.drain().await;
    let finding = finding(&app, "messages").await;
    assert_eq!(finding["level"], "warning");
    assert_eq!(finding["message"], json!("0 messages could not be delivered, 1 are being retried"));
}

async fn a_missing_signing_key_is_a_problem(app: TestApp) {
    app.service().core().db.exec_one("DELETE FROM signing_keys", &[]).await.expect("deleted");
    assert_eq!(finding(&app, "signing keys").await["level"], "problem");
}
