//! `POST /account/payprovider/webhook/{app_id}`.

use http::Method;
use serde_json::json;
use testkit::{Answer, TestApp, on_both_engines};
use vault::hmac_sha256_hex;

on_both_engines!(only_signed_events_are_taken_in, an_app_without_a_secret_takes_nothing);

async fn send(app: &TestApp, to: &str, secret: &str, body: &str) -> Answer {
    let at = app.now().as_seconds();
    let signature = hmac_sha256_hex(secret.as_bytes(), format!("{at}.{body}").as_bytes());
    let caller = app.anon().header("provider-signature", &format!("t={at},v1={signature}"));
    caller.header("content-type", "application/json").send(Method::POST, to, body.to_owned()).await
}

async fn only_signed_events_are_taken_in(app: TestApp) {
    app.key().put("/account/app/credentials", json!({ "payproviderWebhookSecret": "whsec_1" })).await.expect(200);
    let path = format!("/account/payprovider/webhook/{}", app.app_id());
    let event = r#"{ "id": "evt_1", "type": "some.thing" }"#;
    for _ in 0..2 {
        assert_eq!(send(&app, &path, "whsec_1", event).await.expect(200).body(), "");
    }
    send(&app, &path, "whsec_2", event).await.error(400, "INVALID_SIGNATURE");
    send(&app, &path, "whsec_1", "no event").await.error(400, "MALFORMED_JSON");
    send(&app, &path, "whsec_1", r#"{ "id": "" }"#).await.refuses(&["id"]);
    app.anon().send(Method::POST, &path, event).await.error(400, "MISSING_HEADER");
    let unknown = "/account/payprovider/webhook/app_00000000000000000000000001";
    send(&app, unknown, "whsec_1", event).await.error(404, "NOT_FOUND");
}

async fn an_app_without_a_secret_takes_nothing(app: TestApp) {
    let path = format!("/account/payprovider/webhook/{}", app.app_id());
    send(&app, &path, "", r#"{ "id": "evt_1" }"#).await.error(400, "INVALID_SIGNATURE");
}
