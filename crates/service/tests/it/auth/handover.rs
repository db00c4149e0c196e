//! `POST /auth/handover/code/{app_id}`, and what the hosted portals do with its codes.

use std::time::Duration;

use http::Method;
use identity::handover::{self, Handover};
use kernel::{AppId, Code, Result};
use serde_json::json;
use store::args;
use testkit::{Answer, Caller, TestApp, Tokens, on_both_engines, tokens::claims};

on_both_engines!(
    a_code_hands_over_who_is_signed_in,
    a_code_works_once_for_its_app_and_a_minute,
    one_of_sixteen_redeems_the_code,
    a_code_ends_with_its_login_and_its_membership,
    only_a_live_access_token_of_the_app_makes_a_code,
    codes_are_swept_up,
);

async fn ask(app: &TestApp, token: &str) -> Answer {
    let path = format!("/auth/handover/code/{}", app.app_id());
    app.page().post(&path, json!({ "accessToken": token })).await
}

async fn code(app: &TestApp, tokens: &Tokens) -> String {
    ask(app, &tokens.access).await.expect(200).text("/code")
}

/// As a hosted portal does.
async fn redeem(app: &TestApp, of: AppId, code: &str) -> Result<Handover> {
    let (service, code) = (app.service(), code.to_owned());
    service.core().db.write(move |tx| handover::redeem(tx, of, &code)).await
}

#[track_caller]
fn refused(redeemed: Result<Handover>) {
    assert_eq!(redeemed.expect_err("refused").code(), Code::InvalidCredential);
}

async fn count(app: &TestApp) -> i64 {
    let counted = app.service().core().db.read(|tx| tx.one("SELECT count(*) FROM handover_codes", &[])).await;
    let (count,): (i64,) = counted.expect("a count");
    count
}

async fn a_code_hands_over_who_is_signed_in(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let tokens = ada.sign_in().await;
    let answer = ask(&app, &tokens.access).await.expect(200);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.json().as_object().map(serde_json::Map::len), Some(1));
    let handed = redeem(&app, app.app_id(), &answer.text("/code")).await.expect("redeemed");
    assert_eq!((handed.user, handed.member), (ada.user, ada.member));
    assert_eq!(handed.family.to_string(), claims(&tokens.access)["sid"]);
    assert_eq!(handed.granted.oidc_text(), "openid profile email onboarding tenant");
    assert_eq!(handed.granted.privileges, None);

    let session = ada.log_in().await.expect(200).text("/session");
    let body = json!({ "session": session, "appId": app.app_id(), "mode": "sdk", "scope": "openid TENANT_READ" });
    let narrow = Tokens::of(&app.page().post("/auth/token/direct", body).await.expect(200));
    let handed = redeem(&app, app.app_id(), &code(&app, &narrow).await).await.expect("redeemed");
    assert_eq!(handed.granted.oidc_text(), "openid");
    assert_eq!(handed.granted.privileges_text().as_deref(), Some("TENANT_READ"));
}

async fn a_code_works_once_for_its_app_and_a_minute(app: TestApp) {
    let tokens = app.owner("ada@example.com").await.sign_in().await;
    let (made, late) = (code(&app, &tokens).await, code(&app, &tokens).await);
    assert_ne!(made, late);
    refused(redeem(&app, app.other_app().await.app_id(), &made).await);
    refused(redeem(&app, app.app_id(), "nonsense").await);
    app.advance(Duration::from_secs(59)).await;
    redeem(&app, app.app_id(), &made).await.expect("redeemed");
    refused(redeem(&app, app.app_id(), &made).await);
    app.advance(Duration::from_secs(1)).await;
    refused(redeem(&app, app.app_id(), &late).await);
}

async fn one_of_sixteen_redeems_the_code(app: TestApp) {
    let tokens = app.owner("ada@example.com").await.sign_in().await;
    let made = code(&app, &tokens).await;
    let redeemed = futures_util::future::join_all((0..16).map(|_| {
        let (app, made) = (app.clone(), made.clone());
        tokio::spawn(async move { redeem(&app, app.app_id(), &made).await })
    }));
    let won = redeemed.await.into_iter().filter(|result| matches!(result, Ok(Ok(_)))).count();
    assert_eq!(won, 1);
}

async fn a_code_ends_with_its_login_and_its_membership(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let bob = app.member("bob@example.com", ada.tenant, "MEMBER").await;
    let tokens = ada.sign_in().await;
    let made = code(&app, &tokens).await;
    app.anon().post("/auth/auth/revoke", json!({ "refreshToken": tokens.refresh })).await.expect(200);
    refused(redeem(&app, app.app_id(), &made).await);

    let made = code(&app, &bob.sign_in().await).await;
    let caller = app.key().in_workspace(ada.tenant);
    caller.put(&format!("/account/tenant/user/{}", bob.member), json!({ "enabled": false })).await.expect(200);
    refused(redeem(&app, app.app_id(), &made).await);
}

async fn only_a_live_access_token_of_the_app_makes_a_code(app: TestApp) {
    let tokens = app.owner("ada@example.com").await.sign_in().await;
    for wrong in [&tokens.refresh, &tokens.id, "junk"] {
        ask(&app, wrong).await.error(401, "INVALID_CREDENTIAL");
    }
    app.anon().post(&format!("/auth/handover/code/{}", app.app_id()), json!({})).await.refuses(&["accessToken"]);
    let at = |app_id: String| {
        let (anon, body): (Caller, _) = (app.anon(), json!({ "accessToken": tokens.access }));
        async move { anon.post(&format!("/auth/handover/code/{app_id}"), body).await }
    };
    at(app.other_app().await.app_id().to_string()).await.error(401, "INVALID_CREDENTIAL");
    at(AppId::from_u128(7).to_string()).await.error(404, "NOT_FOUND");
    app.advance(Duration::from_secs(3600)).await;
    ask(&app, &tokens.access).await.error(401, "INVALID_CREDENTIAL");
    assert_eq!(count(&app).await, 0);
}

async fn codes_are_swept_up(app: TestApp) {
    let tokens = app.owner("ada@example.com").await.sign_in().await;
    code(&app, &tokens).await;
    app.advance(Duration::from_secs(3601)).await;
    app.drain().await;
    assert_eq!(count(&app).await, 0, "the expired one");
    let tokens = app.owner("bob@example.com").await.sign_in().await;
    code(&app, &tokens).await;
    // More than one step of the purge deletes.
    let many = app.service().core().db.write(|tx| {
        (0..600).try_for_each(|number| {
            let digest = number.to_string();
            tx.exec(
                "INSERT INTO handover_codes (digest, app_id, user_id, member_id, family_id, oidc_scope, expires_at, \
                 created_at) SELECT $1, app_id, user_id, member_id, family_id, oidc_scope, expires_at, created_at \
                 FROM handover_codes LIMIT 1",
                &args![digest],
            )
            .map(|_| ())
        })
    });
    many.await.expect("written");
    assert_eq!(count(&app).await, 601);
    app.operator().call(Method::DELETE, &format!("/admin/apps/{}", app.app_id()), None).await.expect(200);
    app.drain().await;
    assert_eq!(count(&app).await, 0, "the deleted app's");
}
