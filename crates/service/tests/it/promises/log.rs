//! What is logged of requests, and what never is.

use testkit::{EngineName, Log, OPERATOR_KEY, TestApp, on_both_engines};

on_both_engines!(no_secret_is_ever_logged);

async fn no_secret_is_ever_logged(engine: EngineName) {
    let log = Log::of_this_process();
    let app = TestApp::start(engine).await;
    let other = app.other_app().await;
    let secret = other.header_sent("x-api-key");
    let id = format!("on-{engine}");
    other.header("x-request-id", &id).get("/account/app?code=s3cret-code").await.expect(200);
    other.get("/nowhere?token=s3cret-token").await.error(404, "ROUTE_NOT_FOUND");
    other.header("x-api-key", "tnt_s3cret-and-wrong").get("/account/app").await.error(401, "INVALID_CREDENTIAL");
    app.operator().get("/admin/apps?limit=s3cret-limit").await.refuses(&["limit"]);
    app.anon().with_operator_key("s3cret-operator").get("/metrics").await.error(401, "INVALID_CREDENTIAL");
    testkit::queued::queue(&app, "ada@customer.example").await;
    app.drain().await;

    let text = log.text();
    let line = text.lines().find(|line| line.contains(&id)).expect("a line per request");
    for part in ["\"method\":\"GET\"", "\"/account/app\"", "\"status\":200", &other.app_id().to_string()] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    for hidden in [secret.as_str(), OPERATOR_KEY, "s3cret", testkit::MASTER_KEY] {
        let told = text.lines().find(|line| line.contains(hidden));
        assert_eq!(told, None, "{hidden} was logged");
    }
}
