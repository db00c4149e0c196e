//! `/auth/auth/…Mfa…`: second factors by SMS and by authenticator app, and the way out.

use std::time::Duration;

use serde_json::json;
use testkit::{
    Person, TestApp, Tokens,
    factors::{PHONE, log_in_with, other, post, require, shown, sms, with_authenticator, with_phone},
    on_both_engines,
    tokens::refresh,
};

on_both_engines!(
    a_phone_is_set_up_and_then_asked_for,
    an_authenticator_app_is_set_up_and_then_asked_for,
    a_code_counts_a_step_around_its_time_and_once,
    the_workspace_or_the_app_can_ask_for_a_factor,
    a_code_works_once_and_for_five_minutes,
    five_wrong_codes_end_the_session,
    wrong_codes_count_over_sessions,
    of_wrong_codes_ten_are_judged_in_any_hour,
    the_backup_code_works_after_too_many_wrong_codes,
    wrong_backup_codes_count_over_sessions_apart_from_codes,
    the_backup_code_resets_the_factor_once,
    an_administrator_clears_a_factor,
    a_factor_cannot_be_replaced_without_showing_it,
    only_a_session_and_a_page_of_the_app_get_in,
    sms_to_one_number_are_limited,
    the_right_password_is_no_guess_where_no_code_can_be_sent,
);

async fn a_phone_is_set_up_and_then_asked_for(app: TestApp) {
    require(&app).await;
    let ada = app.owner("ada@example.com").await;
    let answer = ada.log_in().await.expect(200);
    assert_eq!(answer.at("/mfaState"), "SETUP");
    let session = answer.text("/session");
    ada.exchange(&session).await.error(401, "MFA_REQUIRED");
    post(&app, "startMfaUserSetup", json!({ "session": session, "phoneNumber": "0170" }))
        .await
        .refuses(&["phoneNumber"]);
    post(&app, "startMfaUserSetup", json!({ "session": session })).await.refuses(&["phoneNumber"]);
    let started =
        post(&app, "startMfaUserSetup", json!({ "authToken": session, "phoneNumber": PHONE })).await.expect(200);
    assert_eq!(started.json(), json!({ "success": true, "expiresIn": 300_000 }));
    let code = sms(&app).await;
    let done = post(&app, "finishMfaUserSetup", json!({ "session": session, "mfaCode": code })).await.expect(200);
    assert_eq!(done.at("/mfaState"), "COMPLETED");
    assert_eq!(done.at("/tenantUsers/0/id"), json!(ada.member));
    assert!(done.at("/backupCode").is_string() && done.at("/expires").is_number());
    ada.exchange(&done.text("/session")).await.expect(200);
    ada.exchange(&session).await.error(401, "MFA_REQUIRED");

    let answer = ada.log_in().await.expect(200);
    assert_eq!(answer.at("/mfaState"), "REQUIRED");
    let session = answer.text("/session");
    ada.exchange(&session).await.error(401, "MFA_REQUIRED");
    let code = sms(&app).await;
    let done = post(&app, "commitMfaCode", json!({ "session": session, "mfaCode": code })).await.expect(200);
    assert_eq!((done.at("/mfaState"), done.json().get("backupCode")), (json!("COMPLETED"), None));
    ada.exchange(&done.text("/session")).await.expect(200);
}

async fn a_code_counts_a_step_around_its_time_and_once(app: TestApp) {
    let (ada, secret) = with_authenticator(&app, "ada@example.com").await;
    // Time passes meanwhile: a whole step should do.
    let into_step = app.now().as_seconds() % 30;
    app.advance(Duration::from_secs(30 - into_step.unsigned_abs())).await;
    for off in [-3, -2, 2, 3] {
        log_in_with(&app, &ada, &shown(&app, &secret, off)).await.error(401, "WRONG_CODE");
    }
    // A clock that is slow, one that is right, one that is fast; each code once, and none before one that was used.
    let codes: Vec<String> = [-1, 0, 1].map(|off| shown(&app, &secret, off)).into();
    for (place, code) in codes.iter().enumerate() {
        log_in_with(&app, &ada, code).await.expect(200);
        for spent in &codes[..=place] {
            log_in_with(&app, &ada, spent).await.error(401, "WRONG_CODE");
        }
    }
}

async fn an_authenticator_app_is_set_up_and_then_asked_for(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let session = ada.log_in().await.expect(200).text("/session");
    let started = post(&app, "startMfaUserSetup", json!({ "session": session, "method": "totp" })).await.expect(200);
    let (secret, url) = (started.text("/secret"), started.text("/otpauthUrl"));
    assert!(url.starts_with("otpauth://totp/My%20app:ada%40example.com?") && url.contains(&secret), "{url}");
    let body = json!({ "session": session, "mfaCode": shown(&app, &secret, 0) });
    let done = post(&app, "finishMfaUserSetup", body).await.expect(200);
    ada.exchange(&done.text("/session")).await.expect(200);

    // Whoever enrolled is asked, even where nobody has to be.
    app.advance(Duration::from_secs(30)).await;
    let answer = ada.log_in().await.expect(200);
    assert_eq!(answer.at("/mfaState"), "REQUIRED");
    let session = answer.text("/session");
    let challenge = post(&app, "challengeMfa", json!({ "session": session })).await.expect(200);
    assert_eq!(challenge.json(), json!({ "success": true, "method": "totp", "expiresIn": 30_000 }));
    let code = shown(&app, &secret, 0);
    let wrong = json!({ "session": session, "mfaCode": shown(&app, &secret, 5) });
    post(&app, "commitMfaCode", wrong).await.error(401, "WRONG_CODE");
    let done = post(&app, "commitMfaCode", json!({ "session": session, "mfaCode": code })).await.expect(200);
    ada.exchange(&done.text("/session")).await.expect(200);
    // Its code is spent for other logins too, and so are those before it.
    let session = ada.log_in().await.expect(200).text("/session");
    for spent in [code, shown(&app, &secret, -1)] {
        let body = json!({ "session": session, "mfaCode": spent });
        post(&app, "commitMfaCode", body).await.error(401, "WRONG_CODE");
    }
    app.advance(Duration::from_secs(60)).await;
    let body = json!({ "session": session, "mfaCode": shown(&app, &secret, 0) });
    post(&app, "commitMfaCode", body).await.expect(200);
}

async fn the_workspace_or_the_app_can_ask_for_a_factor(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let session = ada.log_in().await.expect(200);
    assert_eq!(session.at("/mfaState"), "DISABLED");
    app.key().put(&format!("/account/tenant/{}", ada.tenant), json!({ "mfa": true })).await.expect(200);
    // Also for a login that began before.
    ada.exchange(&session.text("/session")).await.error(401, "MFA_REQUIRED");
    assert_eq!(ada.log_in().await.expect(200).at("/mfaState"), "SETUP");
}

async fn a_code_works_once_and_for_five_minutes(app: TestApp) {
    let (ada, _) = with_phone(&app, "ada@example.com").await;
    let session = ada.log_in().await.expect(200).text("/session");
    let first = sms(&app).await;
    let again = post(&app, "challengeMfa", json!({ "session": session })).await.expect(200);
    assert_eq!(again.json(), json!({ "success": true, "method": "sms", "expiresIn": 300_000 }));
    let second = sms(&app).await;
    if first != second {
        let body = json!({ "session": session, "mfaCode": first });
        post(&app, "commitMfaCode", body).await.error(401, "WRONG_CODE");
    }
    let body = json!({ "session": session, "mfaCode": second });
    post(&app, "commitMfaCode", body.clone()).await.expect(200);
    post(&app, "commitMfaCode", body).await.error(401, "INVALID_CREDENTIAL");
    let session = ada.log_in().await.expect(200).text("/session");
    let late = sms(&app).await;
    app.advance(Duration::from_secs(301)).await;
    post(&app, "commitMfaCode", json!({ "session": session, "mfaCode": late })).await.error(401, "WRONG_CODE");
}

async fn five_wrong_codes_end_the_session(app: TestApp) {
    let (ada, _) = with_phone(&app, "ada@example.com").await;
    let session = ada.log_in().await.expect(200).text("/session");
    let code = sms(&app).await;
    for _ in 0..5 {
        let body = json!({ "session": session, "mfaCode": other(&code) });
        post(&app, "commitMfaCode", body).await.error(401, "WRONG_CODE");
    }
    let body = json!({ "session": session, "mfaCode": code });
    post(&app, "commitMfaCode", body).await.error(401, "INVALID_CREDENTIAL");
    post(&app, "challengeMfa", json!({ "session": session })).await.error(401, "INVALID_CREDENTIAL");
}

async fn wrong_codes_count_over_sessions(app: TestApp) {
    let (ada, _) = with_phone(&app, "ada@example.com").await;
    for _ in 0..2 {
        let session = ada.log_in().await.expect(200).text("/session");
        let code = sms(&app).await;
        for _ in 0..5 {
            let body = json!({ "session": session, "mfaCode": other(&code) });
            post(&app, "commitMfaCode", body).await.error(401, "WRONG_CODE");
        }
    }
    let session = ada.log_in().await.expect(200).text("/session");
    let body = json!({ "session": session, "mfaCode": sms(&app).await });
    post(&app, "commitMfaCode", body.clone()).await.error(429, "RATE_LIMITED");
    app.advance(Duration::from_secs(60)).await;
    post(&app, "commitMfaCode", body).await.error(429, "RATE_LIMITED");
    app.advance(Duration::from_secs(3_600)).await;
    let session = ada.log_in().await.expect(200).text("/session");
    let body = json!({ "session": session, "mfaCode": sms(&app).await });
    post(&app, "commitMfaCode", body).await.expect(200);
}

/// So many wrong codes of the authenticator app, five in a login.
async fn wrong_codes(app: &TestApp, ada: &Person, secret: &str, count: usize) {
    let mut session = String::new();
    for number in 0..count {
        if number.is_multiple_of(5) {
            session = ada.log_in().await.expect(200).text("/session");
        }
        let body = json!({ "session": session, "mfaCode": shown(app, secret, 9) });
        post(app, "commitMfaCode", body).await.error(401, "WRONG_CODE");
    }
}

async fn of_wrong_codes_ten_are_judged_in_any_hour(app: TestApp) {
    let (ada, secret) = with_authenticator(&app, "ada@example.com").await;
    let minutes = |count: u64| Duration::from_secs(count * 60);
    wrong_codes(&app, &ada, &secret, 4).await;
    app.advance(minutes(40)).await;
    wrong_codes(&app, &ada, &secret, 6).await;
    // The wait is for the first four to be an hour old; each time it is asked, for less.
    for (passed, least, most) in [(1, 1_040, 1_140), (14, 200, 300)] {
        app.advance(minutes(passed)).await;
        let right = shown(&app, &secret, 0);
        let refused = log_in_with(&app, &ada, &right).await.error(429, "RATE_LIMITED");
        let wait: u64 = refused.header("retry-after").and_then(|wait| wait.parse().ok()).expect("seconds");
        assert!((least..=most).contains(&wait), "{wait}");
    }
    app.advance(minutes(6)).await;
    wrong_codes(&app, &ada, &secret, 4).await;
    log_in_with(&app, &ada, &shown(&app, &secret, 0)).await.error(429, "RATE_LIMITED");
    app.advance(minutes(61)).await;
    log_in_with(&app, &ada, &shown(&app, &secret, 0)).await.expect(200);
}

async fn the_backup_code_works_after_too_many_wrong_codes(app: TestApp) {
    let (ada, backup) = with_phone(&app, "ada@example.com").await;
    for _ in 0..2 {
        let session = ada.log_in().await.expect(200).text("/session");
        let wrong = other(&sms(&app).await);
        for _ in 0..5 {
            let body = json!({ "session": session, "mfaCode": wrong });
            post(&app, "commitMfaCode", body).await.error(401, "WRONG_CODE");
        }
    }
    let session = ada.log_in().await.expect(200).text("/session");
    let body = json!({ "session": session, "mfaCode": sms(&app).await });
    post(&app, "commitMfaCode", body).await.error(429, "RATE_LIMITED");
    let body = json!({ "session": session, "backupCode": backup });
    let reset = post(&app, "resetUserMfaSetup", body).await.expect(200);
    assert_eq!(reset.at("/mfaState"), "SETUP");
    // Nor do they keep anybody from the new factor.
    let session = reset.text("/session");
    let started = post(&app, "startMfaUserSetup", json!({ "session": session, "method": "totp" })).await.expect(200);
    let body = json!({ "session": session, "mfaCode": shown(&app, &started.text("/secret"), 0) });
    post(&app, "finishMfaUserSetup", body).await.expect(200);
}

async fn wrong_backup_codes_count_over_sessions_apart_from_codes(app: TestApp) {
    let (ada, secret) = with_authenticator(&app, "ada@example.com").await;
    let wrong = |session: &str| json!({ "session": session, "backupCode": "AAAAA-AAAAA-AAAAA-AAAAA" });
    for _ in 0..2 {
        let session = ada.log_in().await.expect(200).text("/session");
        for _ in 0..5 {
            post(&app, "resetUserMfaSetup", wrong(&session)).await.error(401, "WRONG_CODE");
        }
        post(&app, "resetUserMfaSetup", wrong(&session)).await.error(401, "INVALID_CREDENTIAL");
    }
    let session = ada.log_in().await.expect(200).text("/session");
    post(&app, "resetUserMfaSetup", wrong(&session)).await.error(429, "RATE_LIMITED");
    let body = json!({ "session": session, "mfaCode": shown(&app, &secret, 0) });
    post(&app, "commitMfaCode", body).await.expect(200);
}

async fn the_backup_code_resets_the_factor_once(app: TestApp) {
    let (ada, backup) = with_phone(&app, "ada@example.com").await;
    let session = ada.log_in().await.expect(200).text("/session");
    let body = json!({ "session": session, "backupCode": "AAAAA-AAAAA-AAAAA-AAAAA" });
    post(&app, "resetUserMfaSetup", body).await.error(401, "WRONG_CODE");
    let reset = post(&app, "resetUserMfaSetup", json!({ "session": session, "backupCode": backup })).await.expect(200);
    assert_eq!(reset.at("/mfaState"), "SETUP");
    let fresh = reset.text("/session");
    ada.exchange(&fresh).await.error(401, "MFA_REQUIRED");
    let started = post(&app, "startMfaUserSetup", json!({ "session": fresh, "method": "totp" })).await.expect(200);
    let body = json!({ "session": fresh, "mfaCode": shown(&app, &started.text("/secret"), 0) });
    let done = post(&app, "finishMfaUserSetup", body).await.expect(200);
    assert_ne!(done.text("/backupCode"), backup);
    let session = ada.log_in().await.expect(200).text("/session");
    let body = json!({ "session": session, "backupCode": backup });
    post(&app, "resetUserMfaSetup", body).await.error(401, "WRONG_CODE");
}

async fn an_administrator_clears_a_factor(app: TestApp) {
    let (ada, _) = with_phone(&app, "ada@example.com").await;
    let caller = app.key().header("x-tenant-id", &ada.tenant.to_string());
    let path = format!("/account/tenant/user/{}/mfa", ada.member);
    assert_eq!(caller.delete(&path).await.expect(200).json(), json!({ "success": true }));
    caller.delete(&path).await.expect(200);
    assert_eq!(ada.log_in().await.expect(200).at("/mfaState"), "DISABLED");
    let bob = app.owner("bob@example.com").await;
    caller.delete(&format!("/account/tenant/user/{}/mfa", bob.member)).await.error(404, "NOT_FOUND");
}

async fn a_factor_cannot_be_replaced_without_showing_it(app: TestApp) {
    let (ada, _) = with_phone(&app, "ada@example.com").await;
    let session = ada.log_in().await.expect(200).text("/session");
    let setup = json!({ "session": session, "method": "totp" });
    post(&app, "startMfaUserSetup", setup).await.error(401, "MFA_REQUIRED");
    let code = sms(&app).await;
    post(&app, "finishMfaUserSetup", json!({ "session": session, "mfaCode": code })).await.error(401, "MFA_REQUIRED");
    let done = post(&app, "commitMfaCode", json!({ "session": session, "mfaCode": code })).await.expect(200);
    let completed = done.text("/session");
    post(&app, "startMfaUserSetup", json!({ "session": completed, "method": "totp" })).await.expect(200);
    // A workspace that asks for two factors lets this login in, and its tokens go on.
    app.key().put(&format!("/account/tenant/{}", ada.tenant), json!({ "mfa": true })).await.expect(200);
    let tokens = Tokens::of(&ada.exchange(&completed).await.expect(200));
    let tokens = Tokens::of(&refresh(&app, &tokens.refresh).await.expect(200));
    let body = json!({ "accessToken": tokens.access, "targetTenantUserId": ada.member });
    app.anon().post("/auth/token/workspace-switch", body).await.expect(200);
}

async fn only_a_session_and_a_page_of_the_app_get_in(app: TestApp) {
    let (ada, _) = with_phone(&app, "ada@example.com").await;
    let session = ada.log_in().await.expect(200).text("/session");
    for (route, body) in [
        ("startMfaUserSetup", json!({ "phoneNumber": PHONE })),
        ("finishMfaUserSetup", json!({ "mfaCode": "123456" })),
        ("challengeMfa", json!({})),
        ("commitMfaCode", json!({ "mfaCode": "123456" })),
        ("resetUserMfaSetup", json!({ "backupCode": "x" })),
    ] {
        let path = format!("/auth/auth/{route}");
        let mut body = body;
        body["session"] = session.clone().into();
        app.page().post(&path, body.clone()).await.refuses(&["mode"]);
        body["mode"] = "sdk".into();
        app.anon().post(&path, body.clone()).await.error(403, "ORIGIN_NOT_ALLOWED");
        let stranger = app.anon().header("origin", "https://stranger.example");
        stranger.post(&path, body.clone()).await.error(403, "ORIGIN_NOT_ALLOWED");
        body["session"] = format!("{session}x").into();
        app.page().post(&path, body.clone()).await.error(401, "INVALID_CREDENTIAL");
        body.as_object_mut().expect("an object").remove("session");
        app.page().post(&path, body).await.refuses(&["session"]);
    }
}

async fn sms_to_one_number_are_limited(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let session = ada.log_in().await.expect(200).text("/session");
    let body = json!({ "session": session, "phoneNumber": PHONE });
    for _ in 0..10 {
        post(&app, "startMfaUserSetup", body.clone()).await.expect(200);
    }
    post(&app, "startMfaUserSetup", body).await.error(429, "RATE_LIMITED");
}

async fn the_right_password_is_no_guess_where_no_code_can_be_sent(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let session = ada.log_in().await.expect(200).text("/session");
    let body = json!({ "session": session, "phoneNumber": PHONE });
    post(&app, "startMfaUserSetup", body).await.expect(200);
    let code = sms(&app).await;
    post(&app, "finishMfaUserSetup", json!({ "session": session, "mfaCode": code })).await.expect(200);
    let mut limited = 0;
    for _ in 0..30 {
        limited += u32::from(ada.log_in().await.status() == 429);
    }
    assert!(limited > 15, "{limited}");
    app.key().in_workspace(ada.tenant).delete(&format!("/account/tenant/user/{}/mfa", ada.member)).await.expect(200);
    ada.log_in().await.expect(200);
}
