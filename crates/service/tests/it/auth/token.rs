//! `/auth/token…`, `/auth/refresh-token`, `/auth/auth/revoke`, `/auth/userinfo`.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{
    Answer, TestApp, Tokens, on_both_engines,
    tokens::{CHALLENGE, REDIRECT, VERIFIER, claims, code, exchange, is_signed_in, part, refresh},
};

on_both_engines!(
    a_login_has_a_few_refresh_tokens_at_a_time,
    used_refresh_tokens_are_not_kept_without_end,
    tabs_that_refresh_at_once_stay_signed_in,
    a_login_that_is_refreshed_goes_on_switching,
    a_session_is_exchanged_a_few_times,
    the_tokens_say_who_where_and_what,
    scopes_select_claims_and_cut_privileges,
    an_unknown_scope_is_refused,
    a_code_works_once_for_its_client_redirect_and_verifier,
    an_app_can_insist_on_pkce,
    a_replayed_code_revokes_what_it_issued,
    a_code_expires_after_a_minute,
    the_token_endpoint_speaks_forms_and_the_rfc,
    the_other_grant_route_adds_the_profile,
    a_refresh_token_rotates_and_its_reuse_ends_the_login,
    refreshing_reads_the_current_state,
    refreshing_stops_with_the_membership,
    an_access_token_refreshes_until_five_minutes_after_its_end,
    refreshing_by_access_token_ends_with_the_login,
    switching_goes_to_workspaces_of_the_same_person_only,
    revoking_ends_the_login_at_once,
    signing_out_everywhere_ends_all_logins,
    userinfo_tells_what_the_scopes_allow,
);

async fn refresh_by_access_token(app: &TestApp, token: &str, body: Value) -> Answer {
    app.anon().header("authorization", &format!("Bearer {token}")).post("/auth/refresh-token", body).await
}

async fn the_tokens_say_who_where_and_what(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let session = ada.log_in().await.expect(200);
    assert_eq!(session.at("/mfaState"), "DISABLED");
    assert_eq!(session.at("/tenantUsers/0/id"), json!(ada.member));
    let answer = ada.exchange(&session.text("/session")).await.expect(200);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!((answer.at("/token_type"), answer.at("/expires_in")), (json!("Bearer"), json!(3600)));
    let tokens = Tokens::of(&answer);

    assert_eq!((&part(&tokens.access, 0)["alg"], &part(&tokens.access, 0)["typ"]), (&json!("PS256"), &json!("at+jwt")));
    assert_eq!(part(&tokens.refresh, 0)["typ"], "refresh+jwt");
    let access = claims(&tokens.access);
    let iat = access["iat"].as_i64().expect("iat");
    let expected = json!({
        "iss": "http://tenantry.test/auth", "aud": app.app_id(), "aid": app.app_id(), "tid": ada.tenant,
        "sub": ada.user, "role": "OWNER", "plan": null, "trial": false, "shouldSelectPlan": true,
        "shouldSetupPayments": false, "email": "ada@example.com", "iat": iat, "exp": iat + 3600,
        "auth_time": access["auth_time"], "jti": access["jti"], "sid": access["sid"],
        "oidc_scope": "openid profile email onboarding tenant",
        "scope": "APP_READ APP_WRITE AUTHENTICATED TENANT_DELETE TENANT_READ TENANT_WRITE USER_READ USER_WRITE",
    });
    assert_eq!(access, expected);
    let profile = json!({
        "sub": ada.user, "name": "Ada Lovelace", "family_name": "Lovelace", "given_name": "Ada",
        "preferred_username": "ada@example.com", "locale": "en", "email": "ada@example.com", "email_verified": true,
        "onboarded": false, "tenant_id": ada.tenant, "tenant_name": "Workspace of ada@example.com",
        "tenant_locale": "en", "tenant_onboarded": false, "multi_tenant": false, "iss": access["iss"],
        "aud": app.app_id(), "iat": iat, "exp": iat + 3600, "auth_time": access["auth_time"], "sid": access["sid"],
    });
    assert_eq!(claims(&tokens.id), profile);
    assert_eq!(answer.at("/user_profile"), profile);
    let refresh = claims(&tokens.refresh);
    assert_eq!((&refresh["sid"], refresh["exp"].as_i64()), (&access["sid"], Some(iat + 604_800)));
}

async fn scopes_select_claims_and_cut_privileges(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let session = ada.log_in().await.expect(200).text("/session");
    let body =
        json!({ "session": session, "appId": app.app_id(), "mode": "sdk", "scope": "openid email TENANT_READ FLY" });
    app.page().post("/auth/token/direct", body.clone()).await.error(400, "INVALID_SCOPE");
    let mut body = body;
    body["scope"] = "openid email TENANT_READ APP_DELETE".into();
    let tokens = Tokens::of(&app.page().post("/auth/token/direct", body).await.expect(200));
    let access = claims(&tokens.access);
    assert_eq!((&access["scope"], &access["oidc_scope"]), (&json!("TENANT_READ"), &json!("openid email")));
    let id = claims(&tokens.id);
    assert_eq!((&id["email"], id.get("name"), id.get("tenant_id")), (&json!("ada@example.com"), None, None));
    // Whatever refreshes it stays narrow, and cannot be widened again.
    let again = Tokens::of(&refresh(&app, &tokens.refresh).await.expect(200));
    assert_eq!(claims(&again.access)["scope"], "TENANT_READ");
    let wider = json!({ "scope": "openid profile email TENANT_READ USER_READ" });
    let by_access = Tokens::of(&refresh_by_access_token(&app, &again.access, wider).await.expect(200));
    let access = claims(&by_access.access);
    assert_eq!((&access["scope"], &access["oidc_scope"]), (&json!("TENANT_READ"), &json!("openid email")));
}

async fn an_unknown_scope_is_refused(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let tokens = ada.sign_in().await;
    refresh_by_access_token(&app, &tokens.access, json!({ "scope": "offline_access" }))
        .await
        .error(400, "INVALID_SCOPE");
    let body = json!({
        "client_id": app.app_id(), "grant_type": "refresh_token", "refresh_token": tokens.refresh, "scope": "fly",
    });
    let refused = app.anon().post("/auth/token", body).await.expect(400);
    assert_eq!(refused.at("/error"), "invalid_scope");
    refresh(&app, &tokens.refresh).await.expect(200);
}

async fn a_code_works_once_for_its_client_redirect_and_verifier(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let other = app.other_app().await;
    let made = code(&app, &ada, Some(CHALLENGE)).await;
    let base = json!({
        "client_id": app.app_id(), "grant_type": "authorization_code", "code": made, "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
    });
    for (member, value) in [
        ("client_id", json!(other.app_id())),
        ("redirect_uri", json!("http://localhost:3000/callback/")),
        ("redirect_uri", json!("http://localhost:3000")),
        ("code_verifier", json!("wrong")),
        ("code_verifier", json!(CHALLENGE)),
        ("code_verifier", Value::Null),
        ("code", json!("nonsense")),
    ] {
        let mut body = base.clone();
        body[member] = value;
        let refused = app.anon().post("/auth/token", body).await.expect(400);
        assert_eq!(refused.at("/error"), "invalid_grant", "{member}");
    }
    let answer = app.anon().post("/auth/token", base).await.expect(200);
    assert_eq!(answer.json().get("user_profile"), None);
    assert_eq!(claims(&answer.text("/id_token"))["nonce"], "n-0S6");
    // A verifier for a code without a challenge: somebody took the challenge away.
    let plain = code(&app, &ada, None).await;
    assert_eq!(exchange(&app, &plain, Some(VERIFIER)).await.expect(400).at("/error"), "invalid_grant");
    exchange(&app, &plain, None).await.expect(200);
}

async fn an_app_can_insist_on_pkce(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let bare = code(&app, &ada, None).await;
    app.key().put("/account/app", json!({ "requirePkce": true })).await.expect(200);
    // A code from before it was asked for, with and without a verifier made up afterwards.
    for verifier in [None, Some(VERIFIER), Some("")] {
        assert_eq!(exchange(&app, &bare, verifier).await.expect(400).at("/error"), "invalid_grant");
    }
    let body = json!({ "code": bare, "redirectUri": REDIRECT });
    let other_route = format!("/auth/token/code/{}", app.app_id());
    app.anon().post(&other_route, body).await.error(401, "INVALID_CREDENTIAL");

    let made = code(&app, &ada, Some(CHALLENGE)).await;
    // Missing, wrong, and as the `plain` method would have it.
    for verifier in [None, Some(""), Some("wrong"), Some(CHALLENGE)] {
        assert_eq!(exchange(&app, &made, verifier).await.expect(400).at("/error"), "invalid_grant");
    }
    let mut body = json!({ "code": made, "redirectUri": REDIRECT, "codeVerifier": CHALLENGE });
    app.anon().post(&other_route, body.clone()).await.error(401, "INVALID_CREDENTIAL");
    body["codeVerifier"] = VERIFIER.into();
    app.anon().post(&other_route, body).await.expect(200);
}

async fn a_replayed_code_revokes_what_it_issued(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let made = code(&app, &ada, None).await;
    let tokens = Tokens::of(&exchange(&app, &made, None).await.expect(200));
    let elsewhere = ada.sign_in().await;
    assert_eq!(exchange(&app, &made, None).await.expect(400).at("/error"), "invalid_grant");
    refresh(&app, &tokens.refresh).await.expect(400);
    assert!(!is_signed_in(&app, &tokens.access).await);
    assert!(is_signed_in(&app, &elsewhere.access).await);
}

async fn a_code_expires_after_a_minute(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let (early, late) = (code(&app, &ada, None).await, code(&app, &ada, None).await);
    app.advance(Duration::from_secs(55)).await;
    exchange(&app, &early, None).await.expect(200);
    app.advance(Duration::from_secs(6)).await;
    exchange(&app, &late, None).await.expect(400);
}

async fn the_token_endpoint_speaks_forms_and_the_rfc(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let tokens = ada.sign_in().await;
    let form = app.anon().header("content-type", "application/x-www-form-urlencoded; charset=UTF-8");
    let id = app.app_id();
    let body = format!("grant_type=refresh_token&client_id={id}&refresh_token={}&client_secret=", tokens.refresh);
    let answer = form.send(Method::POST, "/auth/token", body).await.expect(200);
    assert_eq!((answer.header("cache-control"), answer.header("pragma")), (Some("no-store"), Some("no-cache")));
    for (body, status, error) in [
        (format!("client_id={id}&grant_type=password"), 400, "unsupported_grant_type"),
        (format!("client_id={id}&grant_type=refresh_token"), 400, "invalid_request"),
        (format!("client_id={id}&client_id={id}&grant_type=refresh_token&refresh_token=x"), 400, "invalid_request"),
        (format!("client_id={id}&grant_type=refresh_token&refresh_token=x"), 400, "invalid_grant"),
        ("client_id=shop&grant_type=refresh_token&refresh_token=x".to_owned(), 401, "invalid_client"),
        (String::new(), 400, "invalid_request"),
    ] {
        let answer = form.send(Method::POST, "/auth/token", body.clone()).await.expect(status);
        assert_eq!(answer.at("/error"), error, "{body}");
        assert_eq!(answer.at("/statusCode"), status);
        assert_eq!(answer.at("/error_description"), answer.at("/message"));
        assert_eq!(answer.at("/requestId").as_str(), answer.header("x-request-id"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    let xml = app.anon().header("content-type", "text/xml").send(Method::POST, "/auth/token", "<x/>").await;
    assert_eq!(xml.expect(415).at("/error"), "invalid_request");
}

async fn the_other_grant_route_adds_the_profile(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let made = code(&app, &ada, None).await;
    let route = |kind: &str| format!("/auth/token/{kind}/{}", app.app_id());
    let body = json!({ "code": made, "redirectUri": REDIRECT });
    let answer = app.anon().post(&route("code"), body.clone()).await.expect(200);
    assert_eq!(answer.at("/user_profile/email"), "ada@example.com");
    app.anon().post(&route("code"), body).await.error(401, "INVALID_CREDENTIAL");
    let body = json!({ "refreshToken": ada.sign_in().await.refresh });
    app.anon().post(&route("refresh"), body.clone()).await.expect(200);
    app.anon().post(&route("refresh"), json!({})).await.refuses(&["refreshToken"]);
    app.anon().post(&route("password"), body.clone()).await.error(404, "NOT_FOUND");
    let other = app.other_app().await;
    app.anon().post(&format!("/auth/token/refresh/{}", other.app_id()), body).await.error(401, "INVALID_CREDENTIAL");
}

async fn a_refresh_token_rotates_and_its_reuse_ends_the_login(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let first = ada.sign_in().await;
    let second = Tokens::of(&refresh(&app, &first.refresh).await.expect(200));
    assert_ne!(first.refresh, second.refresh);
    assert_eq!(claims(&first.access)["sid"], claims(&second.access)["sid"]);
    // A parallel tab, a moment later.
    app.advance(Duration::from_secs(25)).await;
    let third = Tokens::of(&refresh(&app, &first.refresh).await.expect(200));
    app.advance(Duration::from_secs(10)).await;
    assert_eq!(refresh(&app, &first.refresh).await.expect(400).at("/error"), "invalid_grant");
    for tokens in [&second, &third] {
        refresh(&app, &tokens.refresh).await.expect(400);
        assert!(!is_signed_in(&app, &tokens.access).await);
    }
}

async fn refreshing_reads_the_current_state(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let bob = app.member("bob@example.com", ada.tenant, "MEMBER").await;
    let tokens = bob.sign_in().await;
    assert_eq!(claims(&tokens.access)["scope"], "AUTHENTICATED TENANT_READ USER_READ");
    let caller = app.key().header("x-tenant-id", &ada.tenant.to_string());
    caller.put(&format!("/account/tenant/user/{}", bob.member), json!({ "role": "ADMIN" })).await.expect(200);
    let by_refresh = Tokens::of(&refresh(&app, &tokens.refresh).await.expect(200));
    let by_access = Tokens::of(&refresh_by_access_token(&app, &tokens.access, json!({})).await.expect(200));
    for tokens in [by_refresh, by_access] {
        let access = claims(&tokens.access);
        assert_eq!(access["role"], "ADMIN");
        assert!(access["scope"].as_str().expect("a scope").contains("USER_WRITE"));
    }
}

async fn refreshing_stops_with_the_membership(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let caller = app.key().header("x-tenant-id", &ada.tenant.to_string());
    let bob = app.member("bob@example.com", ada.tenant, "MEMBER").await;
    let tokens = bob.sign_in().await;
    let path = format!("/account/tenant/user/{}", bob.member);
    caller.put(&path, json!({ "enabled": false })).await.expect(200);
    refresh(&app, &tokens.refresh).await.expect(400);
    assert!(!is_signed_in(&app, &tokens.access).await);
    refresh_by_access_token(&app, &tokens.access, json!({})).await.error(401, "INVALID_CREDENTIAL");
    bob.log_in().await.error(401, "INVALID_CREDENTIAL");
    caller.put(&path, json!({ "enabled": true })).await.expect(200);
    let tokens = Tokens::of(&refresh(&app, &tokens.refresh).await.expect(200));
    caller.delete(&path).await.expect(200);
    refresh(&app, &tokens.refresh).await.expect(400);
    assert!(!is_signed_in(&app, &tokens.access).await);
}

async fn an_access_token_refreshes_until_five_minutes_after_its_end(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let tokens = ada.sign_in().await;
    app.advance(Duration::from_secs(3600 + 290)).await;
    assert!(!is_signed_in(&app, &tokens.access).await);
    let answer = refresh_by_access_token(&app, &tokens.access, json!({})).await.expect(200);
    assert_eq!(answer.at("/user_profile/email"), "ada@example.com");
    app.advance(Duration::from_secs(15)).await;
    refresh_by_access_token(&app, &tokens.access, json!({})).await.error(401, "INVALID_CREDENTIAL");
    app.anon().post("/auth/refresh-token", json!({})).await.error(401, "UNAUTHENTICATED");
}

async fn refreshing_by_access_token_ends_with_the_login(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut tokens = ada.sign_in().await;
    for _ in 0..7 {
        app.advance(Duration::from_secs(3600)).await;
        tokens = Tokens::of(&refresh_by_access_token(&app, &tokens.access, json!({})).await.expect(200));
    }
    let body = json!({ "refreshTokenTTL": 300 });
    app.key().put("/account/app", body).await.expect(200);
    refresh_by_access_token(&app, &tokens.access, json!({})).await.error(401, "INVALID_CREDENTIAL");
}

async fn switching_goes_to_workspaces_of_the_same_person_only(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let bob = app.owner("bob@example.com").await;
    let second = app.member("ada@example.com", bob.tenant, "MEMBER").await;
    let tokens = ada.sign_in().await;
    let list = app.anon().post("/auth/token/workspace-list", json!({ "accessToken": tokens.access })).await.expect(200);
    let ids: Vec<Value> = list.json().as_array().expect("a list").iter().map(|entry| entry["id"].clone()).collect();
    assert_eq!(ids, [json!(second.member), json!(ada.member)]);
    assert_eq!(list.at("/1/tenant/name"), "Workspace of ada@example.com");
    assert_eq!((list.at("/1/username"), list.at("/1/fullName")), (json!("ada@example.com"), json!("Ada Lovelace")));

    let switch = |target: Value| {
        let body = json!({ "accessToken": tokens.access, "targetTenantUserId": target });
        let anon = app.anon();
        async move { anon.post("/auth/token/workspace-switch", body).await }
    };
    let switched = Tokens::of(&switch(json!(second.member)).await.expect(200));
    let access = claims(&switched.access);
    assert_eq!((&access["tid"], &access["role"]), (&json!(bob.tenant), &json!("MEMBER")));
    assert_eq!(access["sid"], claims(&tokens.access)["sid"]);
    assert_eq!(claims(&switched.id)["multi_tenant"], true);
    switch(json!(bob.member)).await.error(401, "INVALID_CREDENTIAL");
    switch(json!("member_nobody")).await.error(401, "INVALID_CREDENTIAL");
    // A workspace that asks for a second factor is not entered with one.
    let path = format!("/account/tenant/{}", bob.tenant);
    app.key().put(&path, json!({ "mfa": true })).await.expect(200);
    switch(json!(second.member)).await.error(401, "MFA_REQUIRED");
}

async fn a_login_that_is_refreshed_goes_on_switching(app: TestApp) {
    let (ada, bob) = (app.owner("ada@example.com").await, app.owner("bob@example.com").await);
    let second = app.member("ada@example.com", bob.tenant, "MEMBER").await;
    let first = ada.sign_in().await;
    let switch = |token: &str| {
        let body = json!({ "accessToken": token, "targetTenantUserId": second.member });
        let anon = app.anon();
        async move { anon.post("/auth/token/workspace-switch", body).await }
    };
    app.advance(Duration::from_hours(24 * 5)).await;
    let newer = Tokens::of(&refresh(&app, &first.refresh).await.expect(200));
    app.advance(Duration::from_hours(24 * 3)).await;
    let newest = Tokens::of(&refresh(&app, &newer.refresh).await.expect(200));
    switch(&newest.access).await.expect(200);
    let body = json!({ "accessToken": newest.access, "targetTenantUserId": ada.member });
    app.anon().post("/auth/token/workspace-switch", body).await.error(401, "INVALID_CREDENTIAL");
    // An access token alone prolongs nothing.
    refresh_by_access_token(&app, &newest.access, json!({})).await.error(401, "INVALID_CREDENTIAL");
    app.key().put("/account/app", json!({ "accessTokenTTL": 2_592_000 })).await.expect(200);
    let last = ada.sign_in().await;
    app.advance(Duration::from_hours(24 * 8)).await;
    switch(&last.access).await.error(401, "INVALID_CREDENTIAL");
}

async fn revoking_ends_the_login_at_once(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let (here, elsewhere) = (ada.sign_in().await, ada.sign_in().await);
    let body = json!({ "refreshToken": here.refresh });
    assert_eq!(app.anon().post("/auth/auth/revoke", body.clone()).await.expect(200).json(), json!({ "success": true }));
    refresh(&app, &here.refresh).await.expect(400);
    refresh_by_access_token(&app, &here.access, json!({})).await.error(401, "INVALID_CREDENTIAL");
    let switch = json!({ "accessToken": here.access, "targetTenantUserId": ada.member });
    app.anon().post("/auth/token/workspace-switch", switch).await.error(401, "INVALID_CREDENTIAL");
    assert!(!is_signed_in(&app, &here.access).await);
    assert!(is_signed_in(&app, &elsewhere.access).await);
    app.anon().post("/auth/auth/revoke", body).await.expect(200);
    for junk in ["junk", elsewhere.access.as_str()] {
        app.anon().post("/auth/auth/revoke", json!({ "refreshToken": junk, "all": true })).await.expect(200);
    }
    assert!(is_signed_in(&app, &elsewhere.access).await);
}

async fn signing_out_everywhere_ends_all_logins(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let (here, elsewhere) = (ada.sign_in().await, ada.sign_in().await);
    let session = ada.log_in().await.expect(200).text("/session");
    app.anon().post("/auth/auth/revoke", json!({ "refreshToken": here.refresh, "all": true })).await.expect(200);
    for tokens in [&here, &elsewhere] {
        refresh(&app, &tokens.refresh).await.expect(400);
        assert!(!is_signed_in(&app, &tokens.access).await);
    }
    ada.exchange(&session).await.error(401, "INVALID_CREDENTIAL");
    assert!(is_signed_in(&app, &ada.sign_in().await.access).await);
    // The administrator's way.
    let tokens = ada.sign_in().await;
    let caller = app.key().header("x-tenant-id", &ada.tenant.to_string());
    caller.delete(&format!("/account/tenant/user/{}/sessions", ada.member)).await.expect(200);
    assert!(!is_signed_in(&app, &tokens.access).await);
    refresh(&app, &tokens.refresh).await.expect(400);
}

async fn userinfo_tells_what_the_scopes_allow(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let caller = ada.signed_in().await;
    let told = caller.get("/auth/userinfo").await.expect(200);
    assert_eq!((told.at("/sub"), told.at("/name")), (json!(ada.user), json!("Ada Lovelace")));
    assert_eq!(told.at("/tenant_id"), json!(ada.tenant));
    assert_eq!(caller.call(Method::POST, "/auth/userinfo", None).await.expect(200).json(), told.json());
    app.anon().get("/auth/userinfo").await.error(401, "UNAUTHENTICATED");
}

async fn rows(app: &TestApp, query: &'static str) -> i64 {
    app.service().core().db.read(move |tx| tx.one::<(i64,)>(query, &[])).await.expect("a count").0
}

const REFRESH_ROWS: &str = "SELECT count(*) FROM refresh_tokens";

async fn a_login_has_a_few_refresh_tokens_at_a_time(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let first = ada.sign_in().await;
    let caller = app.anon().with_access_token(app.app_id(), &first.access);
    let mut last = first.refresh.clone();
    for _ in 0..60 {
        last = caller.post("/auth/refresh-token", json!({})).await.expect(200).text("/refresh_token");
    }
    let working =
        "SELECT count(*) FROM refresh_tokens WHERE rotated_at IS NULL AND expires_at > created_at + 1000000000";
    assert_eq!(rows(&app, working).await, 20);
    // The login goes on: an ended one is refused and tells of no theft, unless nothing is known of it any more.
    refresh(&app, &first.refresh).await.error(400, "invalid_grant");
    refresh(&app, &last).await.expect(200);
    for _ in 0..180 {
        caller.post("/auth/refresh-token", json!({})).await.expect(200);
    }
    assert!(rows(&app, REFRESH_ROWS).await <= 240, "they are not kept without end");
    refresh(&app, &first.refresh).await.error(400, "invalid_grant");
    caller.post("/auth/refresh-token", json!({})).await.error(401, "INVALID_CREDENTIAL");
}

async fn tabs_that_refresh_at_once_stay_signed_in(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let first = ada.sign_in().await.refresh;
    let mut newest = first.clone();
    for _ in 0..60 {
        newest = refresh(&app, &first).await.expect(200).text("/refresh_token");
    }
    // As is a tab that was slow, while another one went far ahead.
    for _ in 0..45 {
        newest = refresh(&app, &newest).await.expect(200).text("/refresh_token");
    }
    refresh(&app, &first).await.expect(200);
    refresh(&app, &newest).await.expect(200);
}

async fn used_refresh_tokens_are_not_kept_without_end(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let first = ada.sign_in().await.refresh;
    let mut newest = first.clone();
    for step in 0..80 {
        newest = refresh(&app, &newest).await.expect(200).text("/refresh_token");
        if step == 30 {
            app.advance(Duration::from_hours(25)).await;
        }
    }
    let kept = rows(&app, REFRESH_ROWS).await;
    assert!((50..70).contains(&kept), "{kept}: those of the last day, and a few");
    // A token whose record is gone still tells of a theft.
    refresh(&app, &first).await.error(400, "invalid_grant");
    refresh(&app, &newest).await.error(400, "invalid_grant");
}

async fn a_session_is_exchanged_a_few_times(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let session = ada.log_in().await.expect(200).text("/session");
    for _ in 0..20 {
        ada.exchange(&session).await.expect(200);
    }
    ada.exchange(&session).await.error(401, "INVALID_CREDENTIAL");
    assert_eq!(rows(&app, "SELECT count(*) FROM refresh_families").await, 20);
    ada.sign_in().await;
}
