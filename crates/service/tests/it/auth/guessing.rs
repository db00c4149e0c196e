//! Guesses at once, guesses from many places, and who is kept out by them: nobody.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{
    Answer, Caller, Person, TestApp, factors, hosted, on_both_engines,
    passkeys::{asserted, authentication_options, verify_authentication, with_passkey},
};

on_both_engines!(
    of_forty_guesses_at_once_ten_are_judged,
    right_passwords_at_once_are_all_let_in,
    codes_guessed_in_several_sessions_at_once_count_together,
    failures_from_elsewhere_slow_strangers_down_alone,
    a_browser_that_signed_in_before_is_never_kept_out,
    a_mailed_link_is_a_way_in_whatever_others_did,
    the_last_three_links_work_and_one_use_voids_all,
    a_passkey_counts_where_a_second_factor_is_asked_for,
    an_invitation_changes_no_password,
    limits_can_be_switched_off,
);

const AUTHENTICATE: &str = "/auth/auth/authenticate";

fn wrong(person: &Person) -> Value {
    let mut wrong = person.credentials();
    wrong["password"] = "not the password".into();
    wrong
}

fn with_status(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status() == status).count()
}

/// All at once, each in a task of its own.
async fn at_once(calls: Vec<(Caller, &'static str, Value)>) -> Vec<Answer> {
    let asked =
        calls.into_iter().map(|(caller, path, body)| tokio::spawn(async move { caller.post(path, body).await }));
    join_all(asked).await.into_iter().map(|answer| answer.expect("answered")).collect()
}

async fn of_forty_guesses_at_once_ten_are_judged(app: TestApp) {
    let (ada, other) = (app.owner("ada@example.com").await, app.another_node().await);
    let calls = (0..40).map(|number| {
        let node = if number % 2 == 0 { &app } else { &other };
        // The right one comes when the ten are used up.
        (node.page(), AUTHENTICATE, if number == 39 { ada.credentials() } else { wrong(&ada) })
    });
    let answers = at_once(calls.collect()).await;
    assert!(with_status(&answers, 401) <= 10, "{answers:?}");
    assert_eq!(with_status(&answers, 401) + with_status(&answers, 429) + with_status(&answers, 200), 40, "{answers:?}");
    let kept_out = ada.log_in().await.error(429, "RATE_LIMITED");
    assert!(kept_out.header("retry-after").is_some());
}

async fn right_passwords_at_once_are_all_let_in(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let answers = at_once((0..24).map(|_| (app.page(), AUTHENTICATE, ada.credentials())).collect()).await;
    assert_eq!(with_status(&answers, 200), 24, "{answers:?}");
}

async fn codes_guessed_in_several_sessions_at_once_count_together(app: TestApp) {
    let (ada, secret) = factors::with_authenticator(&app, "ada@example.com").await;
    let code = factors::other(&factors::shown(&app, &secret, 3));
    let mut calls = Vec::new();
    for _ in 0..8 {
        let session = ada.log_in().await.expect(200).text("/session");
        let body = json!({ "session": session, "mfaCode": code, "mode": "sdk" });
        calls.extend((0..4).map(|_| (app.page(), "/auth/auth/commitMfaCode", body.clone())));
    }
    let answers = at_once(calls).await;
    assert_eq!((with_status(&answers, 401), with_status(&answers, 429)), (10, 22), "{answers:?}");
    let right = factors::shown(&app, &secret, 0);
    factors::log_in_with(&app, &ada, &right).await.error(429, "RATE_LIMITED");
}

/// Requests come from the addresses that they say they come from.
async fn behind_a_proxy(app: &TestApp) {
    let trusting = web::TrustedProxies::new(vec!["127.0.0.0/8".parse().expect("a range")]);
    app.restart_with(|options| options.web.trusted_proxies = trusting).await;
}

async fn from(app: &TestApp, address: &str, body: &Value) -> Answer {
    app.page().header("x-forwarded-for", address).post(AUTHENTICATE, body.clone()).await
}

/// Wrong passwords from a dozen networks.
async fn attacked(app: &TestApp, person: &Person) {
    for network in 1..=12 {
        from(app, &format!("198.51.100.{network}"), &wrong(person)).await;
    }
}

async fn failures_from_elsewhere_slow_strangers_down_alone(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    behind_a_proxy(&app).await;
    from(&app, "192.0.2.1", &ada.credentials()).await.expect(200);
    attacked(&app, &ada).await;
    from(&app, "203.0.113.1", &ada.credentials()).await.error(429, "RATE_LIMITED");
    from(&app, "192.0.2.1", &ada.credentials()).await.expect(200);
    // One in fifteen seconds is judged, for as long as somebody tries.
    for _ in 0..3 {
        app.advance(Duration::from_secs(16)).await;
        from(&app, "203.0.113.2", &wrong(&ada)).await.error(401, "INVALID_CREDENTIAL");
        from(&app, "203.0.113.3", &wrong(&ada)).await.error(429, "RATE_LIMITED");
    }
    app.advance(Duration::from_secs(16)).await;
    from(&app, "203.0.113.1", &ada.credentials()).await.expect(200);
    // Somebody else's account is not slower for it.
    let bob = app.owner("bob@example.com").await;
    from(&app, "203.0.113.3", &bob.credentials()).await.expect(200);
}

async fn a_browser_that_signed_in_before_is_never_kept_out(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    behind_a_proxy(&app).await;
    let browser = hosted::signed_in(&app, &ada).await;
    attacked(&app, &ada).await;
    let again = hosted::authorize(&app, &[("prompt", "login")]);
    // The same browser, in a network from which only wrong passwords came.
    let mut known = browser.header("x-forwarded-for", "198.51.100.1");
    hosted::sign_in(known.open(&again).await, &ada).await;
    assert!(known.answer("code").is_some(), "{}", known.location);
    let mut stranger = app.browser().header("x-forwarded-for", "198.51.100.1");
    stranger.open(&again).await.submit("/auth/login", &[("username", &ada.email)]).await;
    stranger.submit("/auth/login/password", &[("password", &ada.password)]).await;
    assert!(stranger.html().contains("Too many attempts"), "{}", stranger.html());
    // What it gets wrong itself counts, and it is nobody else's.
    known.open(&again).await.submit("/auth/login", &[("username", &ada.email)]).await;
    for _ in 0..10 {
        known.submit("/auth/login/password", &[("password", "not the password")]).await;
    }
    known.submit("/auth/login/password", &[("password", &ada.password)]).await;
    assert!(known.html().contains("Too many attempts"), "{}", known.html());
}

async fn a_mailed_link_is_a_way_in_whatever_others_did(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    app.restart_with(|options| options.login_limits.per_address = 5).await;
    let who = json!({ "username": ada.email, "appId": app.app_id(), "mode": "sdk" });
    for _ in 0..6 {
        app.page().post(AUTHENTICATE, wrong(&ada)).await;
    }
    ada.log_in().await.error(429, "RATE_LIMITED");
    app.page().post("/auth/auth/magic-link", who.clone()).await.expect(200);
    app.drain().await;
    let follow =
        async |token: &str| app.anon().post("/auth/auth/magic-link/authenticate", json!({ "token": token })).await;
    follow("nonsense").await.error(429, "RATE_LIMITED");
    follow(&app.mailed_token(&ada.email)).await.expect(200);
    app.page().post("/auth/auth/password", who).await.expect(200);
    app.drain().await;
    let body = json!({ "token": app.mailed_token(&ada.email), "password": "another long passphrase" });
    app.anon().put("/auth/auth/password", body).await.expect(200);
}

async fn the_last_three_links_work_and_one_use_voids_all(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut tokens = Vec::new();
    for _ in 0..4 {
        let body = json!({ "username": ada.email, "appId": app.app_id(), "mode": "sdk" });
        app.page().post("/auth/auth/magic-link", body).await.expect(200);
        app.drain().await;
        tokens.push(app.mailed_token(&ada.email));
        app.advance(Duration::from_secs(1)).await;
    }
    let follow =
        async |token: &str| app.anon().post("/auth/auth/magic-link/authenticate", json!({ "token": token })).await;
    follow(&tokens[0]).await.error(401, "INVALID_CREDENTIAL");
    follow(&tokens[1]).await.expect(200);
    for over in &tokens[1..] {
        follow(over).await.error(401, "INVALID_CREDENTIAL");
    }
}

async fn a_passkey_counts_where_a_second_factor_is_asked_for(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut device = with_passkey(&app, &ada).await;
    assert_eq!(ada.log_in().await.expect(200).at("/mfaState"), "DISABLED", "nobody asks");
    factors::require(&app).await;
    let asked = ada.log_in().await.expect(200);
    assert_eq!((asked.at("/mfaState"), asked.at("/mfaMethods")), (json!("REQUIRED"), json!(["passkey"])));
    // Whoever has the password alone gets no tokens, and no factor of their own.
    let session = asked.text("/session");
    ada.exchange(&session).await.error(401, "MFA_REQUIRED");
    let setup = json!({ "session": session, "method": "totp" });
    factors::post(&app, "startMfaUserSetup", setup.clone()).await.error(401, "MFA_REQUIRED");
    factors::post(&app, "finishMfaUserSetup", json!({ "session": session, "mfaCode": "123456" })).await.expect(401);
    factors::post(&app, "challengeMfa", json!({ "session": session })).await.error(409, "CONFLICT");
    let mut browser = hosted::at_password(&app, &ada.email, &[]).await;
    browser.submit("/auth/login/password", &[("password", &ada.password)]).await.sees(200, "Use your passkey");
    // The passkey shows two factors: another one is set up in such a session.
    let options = authentication_options(&app).await.expect(200);
    let strong = verify_authentication(&app, asserted(&app, &mut device, &options).await).await.expect(200);
    assert_eq!((strong.at("/mfaState"), strong.json().get("mfaMethods")), (json!("DISABLED"), None));
    let session = strong.text("/session");
    let started = factors::post(&app, "startMfaUserSetup", json!({ "session": session, "method": "totp" })).await;
    let code = factors::shown(&app, &started.expect(200).text("/secret"), 0);
    let body = json!({ "session": session, "mfaCode": code });
    let backup = factors::post(&app, "finishMfaUserSetup", body).await.expect(200).text("/backupCode");
    let asked = ada.log_in().await.expect(200);
    assert_eq!(asked.at("/mfaMethods"), json!(["totp", "passkey"]));
    // The backup code is a second factor as well.
    let body = json!({ "session": asked.text("/session"), "backupCode": backup });
    let reset = factors::post(&app, "resetUserMfaSetup", body).await.expect(200);
    assert_eq!(reset.at("/mfaState"), "SETUP");
    let setup = json!({ "session": reset.text("/session"), "method": "totp" });
    factors::post(&app, "startMfaUserSetup", setup).await.expect(200);
}

async fn an_invitation_changes_no_password(app: TestApp) {
    let (ada, workspace) = (app.owner("ada@example.com").await, app.workspace("Acme").await);
    workspace.key().post("/account/tenant/user", json!({ "username": ada.email })).await.expect(201);
    app.drain().await;
    let token = app.mailed_token(&ada.email);
    let body = json!({ "token": token, "password": "chosen by a stranger" });
    app.anon().put("/auth/auth/password", body).await.error(401, "INVALID_CREDENTIAL");
    ada.log_in().await.expect(200);
}

async fn limits_can_be_switched_off(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    app.restart_with(|options| (options.login_limits.per_account, options.login_limits.per_address) = (0, 0)).await;
    for _ in 0..12 {
        app.page().post(AUTHENTICATE, wrong(&ada)).await.error(401, "INVALID_CREDENTIAL");
    }
    ada.log_in().await.expect(200);
}
