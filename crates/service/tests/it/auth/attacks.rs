//! Tokens that somebody made up, took from elsewhere, or uses for what they are not.

use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use testkit::{
    TestApp, on_both_engines,
    tokens::{claims, part, refresh},
};

on_both_engines!(
    a_forged_token_is_refused,
    a_token_of_one_type_is_nothing_to_another,
    a_token_of_another_app_opens_nothing,
    a_token_of_another_installation_is_refused,
);

fn encoded(value: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(value.to_string())
}

async fn refused_everywhere(app: &TestApp, token: &str, what: &str) {
    let bearer = app.anon().with_access_token(app.app_id(), token);
    for answer in [
        bearer.get("/auth/userinfo").await,
        bearer.get("/account/api-token/me/app").await,
        bearer.post("/auth/refresh-token", json!({})).await,
        app.anon().post("/auth/token/workspace-list", json!({ "accessToken": token })).await,
    ] {
        assert_eq!(answer.status(), 401, "{what}: {answer:?}");
    }
}

async fn a_forged_token_is_refused(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let token = ada.sign_in().await.access;
    let parts: Vec<&str> = token.split('.').collect();
    let (header, payload) = (part(&token, 0), parts[1]);
    let with_header = |member: &str, value: Value| {
        let mut header = header.clone();
        header[member] = value;
        header
    };
    let mut owner = claims(&token);
    owner["sub"] = "user_01h455vb4pex5vsknk084sn02q".into();

    for (what, forged) in [
        ("no algorithm", format!("{}.{payload}.", encoded(&with_header("alg", json!("none"))))),
        ("no algorithm, signed", format!("{}.{payload}.{}", encoded(&with_header("alg", json!("None"))), parts[2])),
        ("no signature", format!("{}.{payload}.", parts[0])),
        ("RS256", format!("{}.{payload}.{}", encoded(&with_header("alg", json!("RS256"))), parts[2])),
        ("an unknown key", format!("{}.{payload}.{}", encoded(&with_header("kid", json!("sigkey_x"))), parts[2])),
        ("no key", format!("{}.{payload}.{}", encoded(&json!({ "alg": "PS256", "typ": "at+jwt" })), parts[2])),
        ("a changed claim", format!("{}.{}.{}", parts[0], encoded(&owner), parts[2])),
        ("a fourth part", format!("{token}.x")),
        ("padding", format!("{token}=")),
        ("nothing", String::from("..")),
    ] {
        refused_everywhere(&app, &forged, what).await;
    }
    // The classic: the public key as the secret of an HMAC.
    let keys = app.anon().get("/auth/.well-known/jwks.json").await.expect(200);
    let modulus = BASE64_URL_SAFE_NO_PAD.decode(keys.text("/keys/0/n")).expect("base64url");
    for secret in [modulus.as_slice(), keys.bytes(), keys.text("/keys/0/n").as_bytes()] {
        let input = format!("{}.{payload}", encoded(&with_header("alg", json!("HS256"))));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), input.as_bytes());
        refused_everywhere(&app, &format!("{input}.{}", BASE64_URL_SAFE_NO_PAD.encode(tag)), "HS256").await;
    }
}

async fn a_token_of_one_type_is_nothing_to_another(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let session = ada.log_in().await.expect(200).text("/session");
    let tokens = ada.sign_in().await;
    for other in [&tokens.refresh, &tokens.id, &session] {
        refused_everywhere(&app, other, "not an access token").await;
    }
    for other in [&tokens.access, &tokens.id, &session] {
        assert_eq!(refresh(&app, other).await.expect(400).at("/error"), "invalid_grant");
    }
    for other in [&tokens.access, &tokens.id, &tokens.refresh] {
        ada.exchange(other).await.error(401, "INVALID_CREDENTIAL");
        let body = json!({ "session": other, "mfaCode": "123456", "mode": "sdk" });
        app.page().post("/auth/auth/commitMfaCode", body).await.error(401, "INVALID_CREDENTIAL");
    }
    for other in [&tokens.access, &tokens.id, &tokens.refresh, &session] {
        app.anon().header("x-api-key", other).get("/account/app").await.error(401, "INVALID_CREDENTIAL");
    }
}

async fn a_token_of_another_app_opens_nothing(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let other = app.other_app().await;
    let tokens = ada.sign_in().await;
    let body = json!({ "client_id": other.app_id(), "grant_type": "refresh_token", "refresh_token": tokens.refresh });
    assert_eq!(app.anon().post("/auth/token", body).await.expect(400).at("/error"), "invalid_grant");
    refresh(&app, &tokens.refresh).await.expect(200);
}

async fn a_token_of_another_installation_is_refused(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut foreign = claims(&ada.sign_in().await.access);
    foreign["iss"] = "https://elsewhere.example/auth".into();
    let keys = app.service().core().signing_keys.clone();
    refused_everywhere(&app, &keys.sign("at+jwt", &foreign).expect("signs"), "another issuer").await;
    foreign["iss"] = "http://tenantry.test/auth".into();
    foreign["sid"] = "sid_01h455vb4pex5vsknk084sn02q".into();
    refused_everywhere(&app, &keys.sign("at+jwt", &foreign).expect("signs"), "an unknown login").await;
    foreign.as_object_mut().expect("claims").remove("sid");
    refused_everywhere(&app, &keys.sign("at+jwt", &foreign).expect("signs"), "no login").await;
}
