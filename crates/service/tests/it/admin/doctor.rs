//! `/admin/doctor`.

use kernel::Secret;
use serde_json::{Value, json};
use testkit::{EngineName, TestApp, on_both_engines, on_one_engine, queued};

on_both_engines!(
    a_sound_installation,
    a_message_that_does_not_leave_is_reported,
    a_missing_signing_key_is_a_problem,
    a_certificate_that_ends_soon_is_warned_of,
    files_without_bytes_and_bytes_without_files_are_reported,
);
on_one_engine!(what_is_only_for_development_is_warned_of, a_proxy_that_is_not_trusted_is_warned_of);

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
    for check in [
        "storage",
        "address",
        "clock",
        "mail",
        "SMS",
        "files",
        "proxies",
        "master key",
        "signing keys",
        "outbox",
        "messages",
        "stored files",
    ] {
        let finding = finding(&app, check).await;
        let local = check != "address";
        assert_eq!(finding["level"], if local { "ok" } else { "warning" }, "{finding}");
    }
}

async fn what_is_only_for_development_is_warned_of(engine: EngineName) {
    let logged = |options: &mut service::Options| {
        options.mail_url = Secret::new("log:".into());
        options.sms_url = Secret::new("log:".into());
    };
    let app = TestApp::start_with(engine, logged).await;
    for check in ["clock", "mail", "SMS"] {
        assert_eq!(finding(&app, check).await["level"], "warning");
    }
}

async fn a_proxy_that_is_not_trusted_is_warned_of(engine: EngineName) {
    let forwarded = async |app: &TestApp| {
        app.anon().header("x-forwarded-for", "192.0.2.1").get("/healthz").await.expect(200);
        finding(app, "proxies").await["level"].clone()
    };
    let app = TestApp::start(engine).await;
    assert_eq!(finding(&app, "proxies").await["level"], "ok");
    assert_eq!(forwarded(&app).await, "warning");
    let trusting = web::TrustedProxies::new(vec!["127.0.0.0/8".parse().expect("a range")]);
    app.restart_with(|options| options.web.trusted_proxies = trusting).await;
    assert_eq!(forwarded(&app).await, "ok");
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

async fn a_certificate_that_ends_soon_is_warned_of(app: TestApp) {
    let connect = async |days: u32| {
        let certificate = testkit::IdentityProvider::valid_for("https://idp.example/", days).certificate;
        let body =
            json!({ "name": format!("Acme {days}"), "loginUrl": "https://idp.example", "certificate": certificate });
        app.key().post("/account/federation/connection", body).await.expect(201);
    };
    connect(40).await;
    assert_eq!(finding(&app, "certificates").await["level"], "ok");
    connect(20).await;
    let warned = finding(&app, "certificates").await;
    assert_eq!(warned["level"], "warning");
    let message = warned["message"].as_str().expect("a text");
    assert!(message.contains("Acme 20") && !message.contains("Acme 40"), "{message}");
}

async fn files_without_bytes_and_bytes_without_files_are_reported(app: TestApp) {
    let caller = app.workspace("acme").await.key();
    let form = testkit::files::prepare(&caller, "a.txt", "text/plain").await;
    testkit::files::post(&app, &form, b"bytes").await.expect(204);
    let whole = finding(&app, "stored files").await;
    assert!(whole["message"].as_str().is_some_and(|text| text.starts_with("the bytes of all 1 files are there")));
    let folder = app.site().folder().join("files");
    let inside =
        |folder: &std::path::Path| std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let object = inside(&folder).filter(|path| !path.ends_with("tmp")).flat_map(|path| inside(&path)).next();
    let object = object.expect("the bytes");
    std::fs::rename(&object, folder.join("tmp").join("left-behind")).expect("moved");
    let missing = finding(&app, "stored files").await;
    assert_eq!(
        (&missing["level"], missing["message"].as_str().map(str::to_owned)),
        (
            &json!("problem"),
            Some(format!("the bytes of 1 files are missing: {}", form["key"].as_str().expect("a key"))),
        )
    );
    caller.post("/account/tenant/file/delete", json!({ "key": form["key"] })).await.expect(200);
    assert_eq!(finding(&app, "stored files").await["level"], "warning");
    for _ in 0..2 {
        app.advance(std::time::Duration::from_secs(3_600)).await;
    }
    assert_eq!(finding(&app, "stored files").await["level"], "ok", "it was swept");
}
