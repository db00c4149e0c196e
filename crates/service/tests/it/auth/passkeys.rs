//! `/auth/auth/passkeys/…`, with a software authenticator that was not written here.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use testkit::{
    PAGE, TestApp, Tokens, on_both_engines,
    passkeys::{
        Device, asserted, authentication_options, created, registration_options, setup_token, verify_authentication,
        verify_registration, with_passkey,
    },
};

on_both_engines!(
    a_passkey_is_set_up_and_signs_in_with_two_factors,
    a_set_up_link_works_once_and_for_an_hour,
    a_challenge_works_once_and_for_five_minutes,
    another_page_gets_nowhere,
    a_counter_that_steps_back_is_refused,
    a_passkey_belongs_to_its_app_and_host,
    a_challenge_of_another_app_is_refused,
    switched_off_passkeys_are_refused,
    an_id_is_as_long_as_the_standard_allows,
);

async fn a_passkey_is_set_up_and_signs_in_with_two_factors(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let token = setup_token(&app, &ada.email).await;
    let options = registration_options(&app, &token).await.expect(200);
    assert_eq!((options.at("/rp/id"), options.at("/user/name")), (json!("localhost"), json!("ada@example.com")));
    assert_eq!(options.at("/authenticatorSelection/residentKey"), "required");
    assert_eq!(options.at("/authenticatorSelection/requireResidentKey"), true);
    assert_eq!(options.at("/authenticatorSelection/userVerification"), "required");
    let mut device = with_passkey(&app, &ada).await;
    let body = json!({ "username": ada.email, "appId": app.app_id(), "mode": "sdk" });
    let config = app.page().post("/auth/auth/credentialsConfig", body).await.expect(200);
    assert_eq!(config.at("/hasPasskeys"), true);

    app.key().put("/account/app", json!({ "mfaEnabled": true })).await.expect(200);
    let options = authentication_options(&app).await.expect(200);
    assert_eq!((options.at("/rpId"), options.json().get("mediation")), (json!("localhost"), None));
    let session = verify_authentication(&app, asserted(&app, &mut device, &options).await).await.expect(200);
    assert_eq!((session.at("/mfaState"), session.at("/tenantUsers/0/id")), (json!("DISABLED"), json!(ada.member)));
    Tokens::of(&ada.exchange(&session.text("/session")).await.expect(200));
    // And again, with the counter one further.
    let options = authentication_options(&app).await.expect(200);
    verify_authentication(&app, asserted(&app, &mut device, &options).await).await.expect(200);
}

async fn a_set_up_link_works_once_and_for_an_hour(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    registration_options(&app, "nonsense").await.error(401, "INVALID_CREDENTIAL");
    let token = setup_token(&app, &ada.email).await;
    let options = registration_options(&app, &token).await.expect(200);
    let body = created(&app, &mut Device::default(), &options).await;
    verify_registration(&app, &token, body.clone()).await.expect(200);
    verify_registration(&app, &token, body).await.error(401, "INVALID_CREDENTIAL");
    registration_options(&app, &token).await.error(401, "INVALID_CREDENTIAL");
    let token = setup_token(&app, &ada.email).await;
    app.advance(Duration::from_secs(3601)).await;
    registration_options(&app, &token).await.error(401, "INVALID_CREDENTIAL");
    let body = json!({ "username": "nobody@example.com", "appId": app.app_id(), "mode": "sdk" });
    let unknown = app.page().post("/auth/auth/passkeys/request-setup-link", body).await.expect(200);
    assert_eq!(unknown.json(), json!({ "success": true }));
}

async fn a_challenge_works_once_and_for_five_minutes(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut device = with_passkey(&app, &ada).await;
    let options = authentication_options(&app).await.expect(200);
    let body = asserted(&app, &mut device, &options).await;
    verify_authentication(&app, body.clone()).await.expect(200);
    verify_authentication(&app, body).await.error(401, "INVALID_CREDENTIAL");
    // Another answer to the same challenge.
    let again = asserted(&app, &mut device, &options).await;
    verify_authentication(&app, again).await.error(401, "INVALID_CREDENTIAL");
    let options = authentication_options(&app).await.expect(200);
    let late = asserted(&app, &mut device, &options).await;
    app.advance(Duration::from_secs(301)).await;
    verify_authentication(&app, late).await.error(401, "INVALID_CREDENTIAL");
    // The token of one ceremony is nothing to the other, nor to another challenge.
    let (one, other) = (authentication_options(&app).await, authentication_options(&app).await);
    let mut crossed = asserted(&app, &mut device, &one).await;
    crossed["sdkChallengeToken"] = other.at("/sdkChallengeToken");
    verify_authentication(&app, crossed.clone()).await.error(401, "INVALID_CREDENTIAL");
    let token = setup_token(&app, &ada.email).await;
    crossed["sdkChallengeToken"] = registration_options(&app, &token).await.at("/sdkChallengeToken");
    verify_authentication(&app, crossed).await.error(401, "INVALID_CREDENTIAL");
}

async fn another_page_gets_nowhere(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut device = with_passkey(&app, &ada).await;
    let options = authentication_options(&app).await.expect(200);
    let body = asserted(&app, &mut device, &options).await;
    let mut foreign = body.clone();
    foreign["sdkOrigin"] = "https://stranger.example".into();
    verify_authentication(&app, foreign).await.error(403, "ORIGIN_NOT_ALLOWED");
    let path = "/auth/auth/passkeys/verify-authentication";
    app.anon().post(path, body.clone()).await.error(403, "ORIGIN_NOT_ALLOWED");
    let mut other = body.clone();
    other["mode"] = "web".into();
    app.page().post(path, other).await.refuses(&["mode"]);
    let stranger =
        app.anon().header("origin", "https://stranger.example").header("x-app-id", &app.app_id().to_string());
    stranger.get("/auth/auth/passkeys/authentication-options").await.error(403, "ORIGIN_NOT_ALLOWED");
    app.page().get("/auth/auth/passkeys/authentication-options").await.error(400, "MISSING_HEADER");
    // Allowed by the app, but not the page that the passkey answered to.
    app.key().put("/account/app", json!({ "allowedOrigins": ["http://localhost:4000"] })).await.expect(200);
    let mut elsewhere = body;
    elsewhere["sdkOrigin"] = "http://localhost:4000".into();
    verify_authentication(&app, elsewhere).await.error(401, "INVALID_CREDENTIAL");
}

async fn a_counter_that_steps_back_is_refused(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut original = with_passkey(&app, &ada).await;
    let mut copy = original.clone();
    for _ in 0..2 {
        let options = authentication_options(&app).await.expect(200);
        verify_authentication(&app, asserted(&app, &mut original, &options).await).await.expect(200);
    }
    let options = authentication_options(&app).await.expect(200);
    verify_authentication(&app, asserted(&app, &mut copy, &options).await).await.error(401, "INVALID_CREDENTIAL");
}

async fn a_passkey_belongs_to_its_app_and_host(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut device = with_passkey(&app, &ada).await;
    let body = json!({ "name": "Other", "domain": "other.example", "uiUrl": PAGE });
    let other = app.operator().post("/admin/apps", body).await.expect(201).text("/app/id");
    let page = app.page().header("x-app-id", &other);
    let options = page.get("/auth/auth/passkeys/authentication-options").await.expect(200);
    let mut body = asserted(&app, &mut device, &options).await;
    body["appId"] = other.into();
    verify_authentication(&app, body).await.error(401, "INVALID_CREDENTIAL");
    app.key().put("/account/app", json!({ "allowedOrigins": ["https://shop.example"] })).await.expect(200);
    let body = json!({ "username": ada.email, "appId": app.app_id(), "mode": "sdk" });
    let elsewhere = app.anon().header("origin", "https://shop.example");
    let config = elsewhere.post("/auth/auth/credentialsConfig", body).await.expect(200);
    assert_eq!(config.at("/hasPasskeys"), false);
}

async fn a_challenge_of_another_app_is_refused(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut device = with_passkey(&app, &ada).await;
    let body = json!({ "name": "Other", "domain": "other.example", "uiUrl": PAGE });
    let other = app.operator().post("/admin/apps", body).await.expect(201).text("/app/id");
    let page = app.page().header("x-app-id", &other);
    let options = page.get("/auth/auth/passkeys/authentication-options").await.expect(200);
    let body = asserted(&app, &mut device, &options).await;
    assert_eq!(body["appId"], json!(app.app_id()));
    verify_authentication(&app, body).await.error(401, "INVALID_CREDENTIAL");
    let options = authentication_options(&app).await.expect(200);
    let body = asserted(&app, &mut device, &options).await;
    verify_authentication(&app, body).await.expect(200);
}

async fn switched_off_passkeys_are_refused(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut device = with_passkey(&app, &ada).await;
    let options = authentication_options(&app).await.expect(200);
    app.key().put("/account/app", json!({ "passkeysEnabled": false })).await.expect(200);
    verify_authentication(&app, asserted(&app, &mut device, &options).await).await.error(403, "LOGIN_METHOD_OFF");
    authentication_options(&app).await.error(403, "LOGIN_METHOD_OFF");
    let body = json!({ "username": ada.email, "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/passkeys/request-setup-link", body).await.error(403, "LOGIN_METHOD_OFF");
}

/// The credential with an id of this many bytes: nothing is signed at a registration without attestation.
fn with_id_of(length: usize, mut body: Value) -> Value {
    let bytes = |member: &Value| BASE64_URL_SAFE_NO_PAD.decode(member.as_str().expect("a text")).expect("base64");
    let find = |all: &[u8], part: &[u8]| all.windows(part.len()).position(|bytes| bytes == part).expect("in there");
    let (id, object) = (bytes(&body["rawId"]), bytes(&body["response"]["attestationObject"]));
    // CBOR: the name of the member, a byte string's head, and the string.
    let at = find(&object, b"authData") + b"authData".len();
    let (head, size) = match object[at] {
        0x58 => (2, usize::from(object[at + 1])),
        0x59 => (3, usize::from(u16::from_be_bytes([object[at + 1], object[at + 2]]))),
        other => panic!("a byte string begins with {other}"),
    };
    let (data, rest) = object[at + head..].split_at(size);
    let (long, place) = (vec![7; length], find(data, &id));
    let length = u16::try_from(length).expect("short enough").to_be_bytes();
    let data = [&data[..place - 2], &length, &long, &data[place + id.len()..]].concat();
    let size = u16::try_from(data.len()).expect("short enough").to_be_bytes();
    let object = [&object[..at], &[0x59], &size, &data, rest].concat();
    body["response"]["attestationObject"] = BASE64_URL_SAFE_NO_PAD.encode(object).into();
    body["rawId"] = BASE64_URL_SAFE_NO_PAD.encode(&long).into();
    body["id"] = body["rawId"].clone();
    body
}

async fn an_id_is_as_long_as_the_standard_allows(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let token = setup_token(&app, &ada.email).await;
    for (length, status) in [(2_500, 400), (1_024, 400), (1_023, 200)] {
        let options = registration_options(&app, &token).await.expect(200);
        let body = with_id_of(length, created(&app, &mut Device::default(), &options).await);
        assert_eq!(verify_registration(&app, &token, body).await.status(), status, "{length} bytes");
    }
}
