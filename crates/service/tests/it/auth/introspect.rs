//! `POST /auth/introspect` as RFC 7662 has it.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{
    Caller, Person, TestApp, Tokens, on_both_engines,
    tokens::{claims, refresh},
};

on_both_engines!(a_live_token_is_told_in_full, whatever_is_not_live_is_told_alike, only_a_key_of_the_app_may_ask);

async fn introspect(caller: &Caller, token: &str) -> Value {
    let form = caller.header("content-type", "application/x-www-form-urlencoded");
    let body = format!("token={token}&token_type_hint=access_token");
    let answer = form.send(Method::POST, "/auth/introspect", body).await.expect(200);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    answer.json()
}

fn told(app: &TestApp, person: &Person, token: &str) -> Value {
    let said = claims(token);
    json!({
        "active": true, "client_id": app.app_id(), "aud": app.app_id(), "iss": "http://tenantry.test/auth",
        "sub": person.user, "username": person.email, "tid": person.tenant, "role": "MEMBER", "sid": said["sid"],
        "iat": said["iat"], "exp": said["exp"], "oidc_scope": "openid profile email onboarding tenant",
        "scope": "AUTHENTICATED TENANT_READ USER_READ", "token_type": "Bearer",
    })
}

async fn a_live_token_is_told_in_full(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let bob = app.member("bob@example.com", ada.tenant, "MEMBER").await;
    let tokens = bob.sign_in().await;
    let expected = told(&app, &bob, &tokens.access);
    assert_eq!(introspect(&app.key(), &tokens.access).await, expected);
    let mut expected = told(&app, &bob, &tokens.refresh);
    expected["token_type"] = "refresh_token".into();
    assert_eq!(introspect(&app.key(), &tokens.refresh).await, expected);
    let json = app.key().post("/auth/introspect", json!({ "token": tokens.refresh })).await.expect(200);
    assert_eq!(json.json(), expected);
    // Privileges are those that the role grants now.
    let narrow = json!({ "client_id": app.app_id(), "grant_type": "refresh_token", "refresh_token": tokens.refresh,
        "scope": "openid TENANT_READ" });
    let narrow = Tokens::of(&app.anon().post("/auth/token", narrow).await.expect(200));
    for token in [&narrow.access, &narrow.refresh] {
        let answer = introspect(&app.key(), token).await;
        assert_eq!((&answer["scope"], &answer["oidc_scope"]), (&json!("TENANT_READ"), &json!("openid")));
    }
}

async fn whatever_is_not_live_is_told_alike(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let bob = app.member("bob@example.com", ada.tenant, "MEMBER").await;
    let inactive = json!({ "active": false });
    let session = ada.log_in().await.expect(200).text("/session");
    let tokens = ada.sign_in().await;
    for junk in ["junk", "a.b.c", &tokens.id, &session, &app.key().header_sent("x-api-key")] {
        assert_eq!(introspect(&app.key(), junk).await, inactive, "{junk}");
    }
    let rotated = ada.sign_in().await;
    refresh(&app, &rotated.refresh).await.expect(200);
    assert_eq!(introspect(&app.key(), &rotated.refresh).await, inactive, "a used one");
    let revoked = ada.sign_in().await;
    app.anon().post("/auth/auth/revoke", json!({ "refreshToken": revoked.refresh })).await.expect(200);
    let disabled = bob.sign_in().await;
    let path = format!("/account/tenant/user/{}", bob.member);
    app.key().in_workspace(ada.tenant).put(&path, json!({ "enabled": false })).await.expect(200);
    for token in [&revoked.access, &revoked.refresh, &disabled.access, &disabled.refresh] {
        assert_eq!(introspect(&app.key(), token).await, inactive);
    }
    app.advance(Duration::from_secs(3600)).await;
    assert_eq!(introspect(&app.key(), &tokens.access).await, inactive);
    assert_eq!(introspect(&app.key(), &tokens.refresh).await["active"], true);
    app.advance(Duration::from_secs(604_800)).await;
    assert_eq!(introspect(&app.key(), &tokens.refresh).await, inactive);
}

async fn only_a_key_of_the_app_may_ask(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let tokens = ada.sign_in().await;
    let other = app.other_app().await;
    for token in [&tokens.access, &tokens.refresh] {
        assert_eq!(introspect(&other, token).await, json!({ "active": false }));
    }
    app.anon().post("/auth/introspect", json!({ "token": tokens.access })).await.error(401, "UNAUTHENTICATED");
    ada.signed_in()
        .await
        .post("/auth/introspect", json!({ "token": tokens.access }))
        .await
        .error(401, "UNAUTHENTICATED");
    let refused = app.key().post("/auth/introspect", json!({})).await.expect(400);
    assert_eq!(refused.at("/error"), "invalid_request");
}
