//! `POST /auth/revoke` as RFC 7009 has it.

use std::time::Duration;

use http::Method;
use kernel::AppId;
use serde_json::json;
use testkit::{
    Answer, TestApp, on_both_engines,
    tokens::{is_signed_in, refresh},
};

on_both_engines!(
    either_token_ends_its_login,
    what_is_worth_nothing_is_revoked_already,
    the_client_must_be_the_tokens_own
);

async fn revoke(app: &TestApp, client: AppId, token: &str, more: &str) -> Answer {
    let form = app.anon().header("content-type", "application/x-www-form-urlencoded");
    form.send(Method::POST, "/auth/revoke", format!("token={token}&client_id={client}{more}")).await
}

async fn either_token_ends_its_login(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let elsewhere = ada.sign_in().await;
    for (of_access, hint) in
        [(false, ""), (true, ""), (false, "&token_type_hint=access_token"), (true, "&token_type_hint=nonsense")]
    {
        let tokens = ada.sign_in().await;
        let shown = if of_access { &tokens.access } else { &tokens.refresh };
        let answer = revoke(&app, app.app_id(), shown, hint).await.expect(200);
        assert!(answer.bytes().is_empty());
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert!(!is_signed_in(&app, &tokens.access).await);
        assert_eq!(refresh(&app, &tokens.refresh).await.expect(400).at("/error"), "invalid_grant");
    }
    assert!(is_signed_in(&app, &elsewhere.access).await);
    let body = json!({ "token": elsewhere.refresh, "client_id": app.app_id() });
    app.anon().post("/auth/revoke", body).await.expect(200);
    assert!(!is_signed_in(&app, &elsewhere.access).await);
}

async fn what_is_worth_nothing_is_revoked_already(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let (tokens, session) = (ada.sign_in().await, ada.log_in().await.expect(200).text("/session"));
    for junk in ["junk", &tokens.id, &session, &format!("{}x", tokens.access)] {
        revoke(&app, app.app_id(), junk, "").await.expect(200);
    }
    app.advance(Duration::from_secs(3600)).await;
    revoke(&app, app.app_id(), &tokens.access, "").await.expect(200);
    refresh(&app, &tokens.refresh).await.expect(200);
    revoke(&app, app.app_id(), &tokens.refresh, "").await.expect(200);
    revoke(&app, app.app_id(), &tokens.refresh, "").await.expect(200);
}

async fn the_client_must_be_the_tokens_own(app: TestApp) {
    let tokens = app.owner("ada@example.com").await.sign_in().await;
    let other = app.other_app().await.app_id();
    for token in [&tokens.access, &tokens.refresh] {
        assert_eq!(revoke(&app, other, token, "").await.expect(400).at("/error"), "invalid_grant");
        let unknown = revoke(&app, AppId::from_u128(7), token, "").await.expect(401);
        assert_eq!(unknown.at("/error"), "invalid_client");
    }
    let form = app.anon().header("content-type", "application/x-www-form-urlencoded");
    for body in [format!("token={}", tokens.refresh), format!("client_id={}", app.app_id())] {
        let refused = form.send(Method::POST, "/auth/revoke", body).await.expect(400);
        assert_eq!(refused.at("/error"), "invalid_request");
    }
    assert!(is_signed_in(&app, &tokens.access).await);
}
