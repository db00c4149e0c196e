//! What holds in the very instant at which something ends, on a clock that stands still.

use std::time::Duration;

use kernel::{Clock, TenantId, Timestamp};
use serde_json::json;
use testkit::{
    EngineName, TestApp, api_tokens, files, on_both_engines, passkeys,
    tokens::{code, exchange, is_signed_in, refresh},
};

on_both_engines!(nothing_outlives_its_last_instant, what_began_in_the_instant_of_the_end_is_over);

async fn standing_still(engine: EngineName) -> TestApp {
    TestApp::start_with(engine, |options| {
        options.clock = Clock::frozen(Timestamp::from_seconds(options.clock.now().as_seconds() + 1));
        options.rate_limits = web::RateLimits::new(options.clock.clone());
    })
    .await
}

async fn seconds(app: &TestApp, seconds: u64) {
    app.advance(Duration::from_secs(seconds)).await;
}

async fn magic_link(app: &TestApp, email: &str) -> String {
    let body = json!({ "username": email, "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/magic-link", body).await.expect(200);
    app.drain().await;
    app.mailed_token(email)
}

/// The address of a file.
async fn kept_file(app: &TestApp, tenant: TenantId) -> String {
    let caller = app.key().in_workspace(tenant);
    let form = files::prepare(&caller, "a.txt", "text/plain").await;
    files::post(app, &form, b"bytes").await.expect(204);
    let finish = json!({ "key": form["key"], "persist": true });
    let address = caller.post("/account/tenant/upload/finish", finish).await.expect(200).json();
    let address = address.as_str().and_then(|address| address.strip_prefix("http://tenantry.test"));
    address.expect("an address of this service").to_owned()
}

async fn nothing_outlives_its_last_instant(engine: EngineName) {
    let app = standing_still(engine).await;
    let ada = app.owner("ada@customer.example").await;
    let now = app.now();

    let expires = json!({ "name": "CI", "privileges": ["APP_READ"], "expireAt": now.plus(Duration::from_secs(60)) });
    let made = app.key().post("/account/api-token/app", expires).await.expect(201);
    let (bearer, token) = (api_tokens::bearer_of(&app, &made), made.text("/token"));
    let code_of_a_minute = code(&app, &ada, None).await;
    seconds(&app, 59).await;
    bearer.get("/account/app").await.expect(200);
    exchange(&app, &code(&app, &ada, None).await, None).await.expect(200);
    seconds(&app, 1).await;
    bearer.get("/account/app").await.error(401, "INVALID_CREDENTIAL");
    assert_eq!(api_tokens::introspect(&app, &token).await, json!({ "active": false }));
    exchange(&app, &code_of_a_minute, None).await.expect(400);

    let mut device = passkeys::with_passkey(&app, &ada).await;
    let challenge = passkeys::authentication_options(&app).await.expect(200);
    let assertion = passkeys::asserted(&app, &mut device, &challenge).await;
    seconds(&app, 300).await;
    passkeys::verify_authentication(&app, assertion).await.error(401, "INVALID_CREDENTIAL");

    let session = ada.log_in().await.expect(200).text("/session");
    seconds(&app, 600).await;
    ada.exchange(&session).await.error(401, "INVALID_CREDENTIAL");

    let link = magic_link(&app, &ada.email).await;
    seconds(&app, 900).await;
    let body = json!({ "token": link });
    app.anon().post("/auth/auth/magic-link/authenticate", body).await.error(401, "INVALID_CREDENTIAL");

    let tokens = ada.sign_in().await;
    seconds(&app, 3599).await;
    assert!(is_signed_in(&app, &tokens.access).await);
    seconds(&app, 1).await;
    assert!(!is_signed_in(&app, &tokens.access).await);

    let address = kept_file(&app, ada.tenant).await;
    seconds(&app, 3599).await;
    app.anon().get(&address).await.expect(200);
    seconds(&app, 1).await;
    app.anon().get(&address).await.error(403, "FORBIDDEN");
    app.end().await;
}

async fn what_began_in_the_instant_of_the_end_is_over(engine: EngineName) {
    let app = standing_still(engine).await;
    let ada = app.owner("ada@customer.example").await;
    seconds(&app, 1).await;
    let (session, tokens) = (ada.log_in().await.expect(200).text("/session"), ada.sign_in().await);
    let code = code(&app, &ada, None).await;
    let path = format!("/account/tenant/user/{}/sessions", ada.member);
    app.key().in_workspace(ada.tenant).delete(&path).await.expect(200);
    ada.exchange(&session).await.error(401, "INVALID_CREDENTIAL");
    exchange(&app, &code, None).await.expect(400);
    refresh(&app, &tokens.refresh).await.expect(400);
    assert!(!is_signed_in(&app, &tokens.access).await);
    seconds(&app, 1).await;
    assert!(is_signed_in(&app, &ada.sign_in().await.access).await);
    app.end().await;
}
