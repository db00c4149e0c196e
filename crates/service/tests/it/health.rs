//! `/healthz`, `/readyz` and `/metrics`.

use serde_json::json;
use testkit::{EngineName, TestApp, on_both_engines, on_one_engine};
use web::{LimitClass, Quota, RateLimits};

on_both_engines!(
    a_healthy_service_says_so,
    without_its_storage_a_service_is_up_but_not_ready,
    a_storage_that_does_not_answer_is_not_waited_for,
    what_operators_alert_on_is_measured,
    logins_failures_lockouts_and_limits_are_counted,
);
on_one_engine!(metrics_are_for_the_operator, metrics_can_be_made_public);

async fn a_healthy_service_says_so(app: TestApp) {
    assert_eq!(app.anon().get("/healthz").await.expect(200).json(), json!({ "status": "up" }));
    let engine = app.service().core().db.engine().to_string();
    assert_eq!(app.anon().get("/readyz").await.expect(200).json(), json!({ "status": "ready", "storage": engine }));
}

async fn without_its_storage_a_service_is_up_but_not_ready(engine: EngineName) {
    let app = TestApp::start(engine).await;
    app.service().core().db.close().await;
    app.anon().get("/healthz").await.expect(200);
    let answer = app.anon().get("/readyz").await;
    assert_eq!(answer.status(), 503, "{answer:?}");
    assert!(answer.header("retry-after").is_some());
}

async fn a_storage_that_does_not_answer_is_not_waited_for(app: TestApp) {
    let db = app.service().core().db.clone();
    let (gate, closed) = std::sync::mpsc::channel::<()>();
    let closed = std::sync::Arc::new(std::sync::Mutex::new(closed));
    // More than there are threads that read.
    let readers: Vec<_> = (0..16)
        .map(|_| {
            let closed = closed.clone();
            // Until the gate is dropped.
            tokio::spawn(db.read(move |_| {
                drop(closed.lock().map(|closed| closed.recv()));
                Ok(())
            }))
        })
        .collect();
    let answer = app.anon().get("/readyz").await;
    assert_eq!(answer.status(), 503, "{answer:?}");
    assert!(answer.header("retry-after").is_some());
    assert!(readers.iter().all(|reader| !reader.is_finished()), "it waited for the storage");
    drop(gate);
    for reader in readers {
        reader.await.expect("no panic").expect("read");
    }
    app.anon().get("/readyz").await.expect(200);
}

async fn metrics_are_for_the_operator(app: TestApp) {
    app.key().get("/account/app").await.expect(200);
    app.anon().get("/metrics").await.error(401, "UNAUTHENTICATED");
    app.key().get("/metrics").await.error(401, "UNAUTHENTICATED");
    let metrics = app.operator().get("/metrics").await.expect(200);
    assert!(metrics.header("content-type").is_some_and(|kind| kind.starts_with("text/plain")));
    for line in [
        r#"http_requests_total{method="GET",route="/account/app",status="200"} "#,
        r#"http_request_duration_seconds_bucket{method="GET",route="/account/app",le="#,
        "# TYPE http_requests_total counter",
    ] {
        assert!(metrics.body().contains(line), "{line}");
    }
    assert!(!metrics.body().contains("tnt_"));
}

async fn what_operators_alert_on_is_measured(app: TestApp) {
    let wrong =
        json!({ "username": "ada@customer.example", "appId": app.app_id(), "mode": "sdk", "password": "wrong" });
    app.page().post("/auth/auth/authenticate", wrong).await.expect(401);
    testkit::queued::queue(&app, "ada@customer.example").await;
    let metrics = app.operator().get("/metrics").await.expect(200);
    let text = metrics.body();
    for name in [
        "process_open_fds ",
        "process_resident_memory_bytes ",
        "process_start_time_seconds ",
        "tenantry_build_info{",
        "tenantry_database_bytes ",
        "tenantry_disk_free_bytes ",
        r#"tenantry_messages_waiting{channel="mail"} 1"#,
        r#"tenantry_messages_oldest_seconds{channel="mail"} "#,
        r#"tenantry_login_failures_total{kind="password"} "#,
        "tenantry_outbox_waiting ",
        "tenantry_requests_in_flight ",
        "tenantry_store_pool_in_use ",
        "tenantry_storage_writable 1",
        "tenantry_store_pool_size ",
        "tenantry_store_queue{",
    ] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name} is not in {text}");
    }
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = line.split(' ').next().expect("a name");
        assert!(text.contains(&format!("# HELP {name} ")), "{name} is not explained");
    }
    app.drain().await;
}

/// A process of its own runs each test, so that the counts are this test's alone.
async fn logins_failures_lockouts_and_limits_are_counted(engine: EngineName) {
    let app = TestApp::start_with(engine, |options| {
        let limits = RateLimits::new(options.clock.clone());
        options.rate_limits = limits.with(LimitClass::Message, Quota { per_minute: 1, burst: 1 });
    })
    .await;
    let counted = async |name: &str| {
        let metrics = app.operator().get("/metrics").await.expect(200);
        let line = metrics.body().lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
        line.map_or(0, |value| value.trim().parse::<u64>().expect("a count"))
    };
    let ada = app.owner("ada@customer.example").await;
    let before = counted("tenantry_logins_total").await;
    ada.sign_in().await;
    assert_eq!(counted("tenantry_logins_total").await, before + 1);
    let (failures, lockouts) =
        (r#"tenantry_login_failures_total{kind="password"}"#, r#"tenantry_lockouts_total{kind="password"}"#);
    let mut wrong = ada.credentials();
    wrong["password"] = "wrong".into();
    for _ in 0..9 {
        app.page().post("/auth/auth/authenticate", wrong.clone()).await.expect(401);
    }
    assert_eq!((counted(failures).await, counted(lockouts).await), (9, 0));
    app.page().post("/auth/auth/authenticate", wrong.clone()).await.expect(401);
    app.page().post("/auth/auth/authenticate", wrong).await.expect(429);
    assert_eq!((counted(failures).await, counted(lockouts).await), (10, 1));
    assert_eq!(counted(r#"tenantry_rate_limited_total{class="account"}"#).await, 1);
    let limited = r#"tenantry_rate_limited_total{class="message"}"#;
    let forgotten = json!({ "username": "bob@customer.example", "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/password", forgotten.clone()).await.expect(200);
    assert_eq!(counted(limited).await, 0);
    app.page().post("/auth/auth/password", forgotten).await.error(429, "RATE_LIMITED");
    assert_eq!(counted(limited).await, 1);
}

async fn metrics_can_be_made_public(engine: EngineName) {
    let app = TestApp::start_with(engine, |options| options.metrics_public = true).await;
    app.anon().get("/metrics").await.expect(200);
}
