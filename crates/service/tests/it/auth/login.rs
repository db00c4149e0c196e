//! `/auth/auth/…`: password, magic link, sign-up, forgotten password; who may call, and how often.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{
    Answer, PAGE, TestApp, Tokens, on_both_engines,
    people::imported,
    tokens::{claims, refresh},
};

on_both_engines!(
    only_pages_of_the_app_may_call,
    a_right_password_opens_a_session_and_a_wrong_one_nothing,
    a_session_ends_after_ten_minutes,
    a_session_is_good_for_its_own_app_and_person,
    the_ways_to_sign_in_are_told,
    an_imported_password_works_once_and_is_then_our_own,
    guessing_is_slowed_down_alike_for_known_and_unknown,
    spellings_of_an_address_share_their_failures,
    a_magic_link_signs_in_once,
    a_magic_link_leads_where_the_app_allows,
    switched_off_methods_are_refused,
    signing_up_makes_a_workspace_once_the_address_is_proven,
    signing_up_twice_tells_nobody,
    a_forgotten_password_is_replaced_and_other_sessions_end,
    weak_passwords_are_refused_and_leave_the_link_alone,
    mails_to_one_recipient_are_limited,
    what_happens_is_told_as_facts,
    of_one_address_three_sign_ups_wait,
    signing_up_with_an_account_without_a_password_mails_a_way_into_it,
);

fn who(app: &TestApp, username: &str) -> Value {
    json!({ "username": username, "appId": app.app_id(), "mode": "sdk" })
}

async fn post(app: &TestApp, route: &str, body: Value) -> Answer {
    app.page().post(&format!("/auth/auth/{route}"), body).await
}

async fn only_pages_of_the_app_may_call(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut email = who(&app, "ada@example.com");
    email["email"] = "new@example.com".into();
    for (route, body) in [
        ("authenticate", ada.credentials()),
        ("credentialsConfig", who(&app, "ada@example.com")),
        ("magic-link", who(&app, "ada@example.com")),
        ("signup", email),
        ("password", who(&app, "ada@example.com")),
    ] {
        let path = format!("/auth/auth/{route}");
        app.anon().post(&path, body.clone()).await.error(403, "ORIGIN_NOT_ALLOWED");
        for foreign in ["https://stranger.example", "http://localhost:3001", "https://localhost:3000", "null"] {
            app.anon().header("origin", foreign).post(&path, body.clone()).await.error(403, "ORIGIN_NOT_ALLOWED");
        }
        let answer = app.page().post(&path, body.clone()).await.expect(200);
        assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE));
        assert_eq!(answer.header("set-cookie"), None);
        let mut other = body.clone();
        other["mode"] = "web".into();
        app.page().post(&path, other).await.refuses(&["mode"]);
        let mut other = body.clone();
        other.as_object_mut().expect("an object").remove("mode");
        app.page().post(&path, other).await.refuses(&["mode"]);
        let mut other = body;
        other["appId"] = "app_01h455vb4pex5vsknk084sn02q".into();
        app.page().post(&path, other).await.error(404, "NOT_FOUND");
    }
}

async fn a_right_password_opens_a_session_and_a_wrong_one_nothing(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let session = ada.log_in().await.expect(200);
    assert_eq!(session.header("cache-control"), Some("no-store"));
    let mut members: Vec<String> = session.json().as_object().expect("an object").keys().cloned().collect();
    members.sort();
    assert_eq!(members, ["expires", "mfaState", "session", "tenantUsers"]);
    let now = app.now().as_seconds();
    assert!((now + 595..=now + 600).contains(&session.at("/expires").as_i64().expect("a time")));
    // Case and blanks around the address do not matter.
    let mut credentials = ada.credentials();
    credentials["username"] = " ADA@Example.com".into();
    post(&app, "authenticate", credentials).await.expect(200);
    let mut wrong = ada.credentials();
    wrong["password"] = "violet harbour lamb".into();
    let mut unknown = ada.credentials();
    unknown["username"] = "nobody@example.com".into();
    let (wrong, unknown) = (post(&app, "authenticate", wrong).await, post(&app, "authenticate", unknown).await);
    let message = wrong.error(401, "INVALID_CREDENTIAL").text("/message");
    assert_eq!(unknown.error(401, "INVALID_CREDENTIAL").text("/message"), message);
    // The session is not an access token.
    let caller = app.anon().with_access_token(app.app_id(), &session.text("/session"));
    caller.get("/auth/userinfo").await.error(401, "INVALID_CREDENTIAL");
}

async fn a_session_ends_after_ten_minutes(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let session = ada.log_in().await.expect(200).text("/session");
    app.advance(Duration::from_secs(590)).await;
    let tokens = Tokens::of(&ada.exchange(&session).await.expect(200));
    let access = claims(&tokens.access);
    assert!(access["iat"].as_i64().expect("iat") - access["auth_time"].as_i64().expect("auth_time") >= 589);
    app.advance(Duration::from_secs(15)).await;
    ada.exchange(&session).await.error(401, "INVALID_CREDENTIAL");
}

async fn a_session_is_good_for_its_own_app_and_person(app: TestApp) {
    let (ada, bob) = (app.owner("ada@example.com").await, app.owner("bob@example.com").await);
    let session = ada.log_in().await.expect(200).text("/session");
    bob.exchange(&session).await.error(401, "INVALID_CREDENTIAL");
    let other = app.other_app().await;
    let body = json!({ "session": session, "tenantUserId": ada.member, "appId": other.app_id(), "mode": "sdk" });
    app.anon().post("/auth/token/direct", body).await.error(401, "INVALID_CREDENTIAL");
    let body = json!({ "session": session, "appId": app.app_id(), "mode": "sdk" });
    app.anon()
        .header("origin", "https://stranger.example")
        .post("/auth/token/direct", body.clone())
        .await
        .error(403, "ORIGIN_NOT_ALLOWED");
    app.anon().post("/auth/token/direct", body.clone()).await.expect(200);
    let second = app.member("ada@example.com", bob.tenant, "MEMBER").await;
    let session = second.log_in().await.expect(200);
    assert_eq!(session.at("/tenantUsers").as_array().map(Vec::len), Some(2));
    let body = json!({ "session": session.text("/session"), "appId": app.app_id(), "mode": "sdk" });
    app.anon().post("/auth/token/direct", body.clone()).await.refuses(&["tenantUserId"]);
    let mut empty = body;
    empty["tenantUserId"] = json!("");
    app.anon().post("/auth/token/direct", empty).await.refuses(&["tenantUserId"]);
    let tokens = Tokens::of(&second.exchange(&session.text("/session")).await.expect(200));
    assert_eq!(claims(&tokens.access)["tid"], json!(bob.tenant));
}

async fn the_ways_to_sign_in_are_told(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let told = post(&app, "credentialsConfig", who(&app, "ADA@example.com")).await.expect(200);
    assert_eq!(told.json(), json!({ "hasPassword": true, "hasPasskeys": false, "federationConnections": [] }));
    let body = json!({ "username": "bob@example.com", "muteNotifications": true });
    let caller = app.key().header("x-tenant-id", &ada.tenant.to_string());
    caller.post("/account/tenant/user", body).await.expect(201);
    let told = post(&app, "credentialsConfig", who(&app, "bob@example.com")).await.expect(200);
    assert_eq!(told.at("/hasPassword"), false);
    post(&app, "credentialsConfig", who(&app, "nobody@example.com")).await.error(401, "INVALID_CREDENTIAL");
}

async fn an_imported_password_works_once_and_is_then_our_own(app: TestApp) {
    let mut credentials = imported(&app, "bob@example.com").await;
    credentials["password"] = "passwords".into();
    post(&app, "authenticate", credentials.clone()).await.error(401, "INVALID_CREDENTIAL");
    credentials["password"] = "password".into();
    for _ in 0..2 {
        post(&app, "authenticate", credentials.clone()).await.expect(200);
    }
    let service = app.service();
    let digest: Option<(Option<String>, Option<String>)> = service
        .core()
        .db
        .get_one(
            "SELECT digest, sealed_import FROM user_credentials JOIN users ON users.id = user_credentials.user_id \
             WHERE users.email = 'bob@example.com'",
            &[],
        )
        .await
        .expect("reads");
    let (digest, import) = digest.expect("a credential");
    assert!(digest.is_some_and(|digest| digest.starts_with("$argon2id$")) && import.is_none());
}

async fn guessing_is_slowed_down_alike_for_known_and_unknown(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    for username in ["ada@example.com", "nobody@example.com"] {
        let mut wrong = ada.credentials();
        (wrong["username"], wrong["password"]) = (username.into(), "wrong".into());
        for _ in 0..10 {
            post(&app, "authenticate", wrong.clone()).await.error(401, "INVALID_CREDENTIAL");
        }
        let blocked = post(&app, "authenticate", wrong.clone()).await.error(429, "RATE_LIMITED");
        assert!((1..=15).contains(&blocked.header("retry-after").expect("a wait").parse().expect("seconds")));
    }
    // The right password has to wait too, then it is as if nothing had been.
    ada.log_in().await.error(429, "RATE_LIMITED");
    app.advance(Duration::from_secs(16)).await;
    let mut wrong = ada.credentials();
    wrong["password"] = "wrong".into();
    post(&app, "authenticate", wrong.clone()).await.error(401, "INVALID_CREDENTIAL");
    let blocked = ada.log_in().await.error(429, "RATE_LIMITED");
    assert!(blocked.header("retry-after").expect("a wait").parse::<u64>().expect("seconds") > 15, "the wait doubles");
    app.advance(Duration::from_secs(31)).await;
    ada.log_in().await.expect(200);
    post(&app, "authenticate", wrong).await.error(401, "INVALID_CREDENTIAL");
    ada.log_in().await.expect(200);
}

async fn spellings_of_an_address_share_their_failures(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    for spelling in
        ["ada@example.com", "ADA@example.com", " ada@example.com", "Ada@Example.COM", "ada@EXAMPLE.com "].repeat(2)
    {
        let mut wrong = ada.credentials();
        (wrong["username"], wrong["password"]) = (spelling.into(), "wrong".into());
        post(&app, "authenticate", wrong).await.error(401, "INVALID_CREDENTIAL");
    }
    ada.log_in().await.error(429, "RATE_LIMITED");
}

async fn a_magic_link_signs_in_once(app: TestApp) {
    app.owner("ada@example.com").await;
    let sent = post(&app, "magic-link", who(&app, "ada@example.com")).await.expect(200);
    assert_eq!(sent.json(), json!({ "expiresIn": 900_000 }));
    app.drain().await;
    assert!(app.mailed_link("ada@example.com").starts_with("http://tenantry.test/auth/login/magic-link?token="));
    let follow = |token: String| {
        let anon = app.anon();
        async move { anon.post("/auth/auth/magic-link/authenticate", json!({ "token": token })).await }
    };
    let first = app.mailed_token("ada@example.com");
    let session = follow(first.clone()).await.expect(200);
    assert_eq!(session.at("/mfaState"), "DISABLED");
    follow(first).await.error(401, "INVALID_CREDENTIAL");
    follow("nonsense".into()).await.error(401, "INVALID_CREDENTIAL");

    post(&app, "magic-link", who(&app, "ada@example.com")).await.expect(200);
    app.drain().await;
    let late = app.mailed_token("ada@example.com");
    app.advance(Duration::from_secs(901)).await;
    follow(late).await.error(401, "INVALID_CREDENTIAL");
    let mails = app.mails().len();
    let sent = post(&app, "magic-link", who(&app, "nobody@example.com")).await.expect(200);
    assert_eq!(sent.json(), json!({ "expiresIn": 900_000 }));
    app.drain().await;
    assert_eq!(app.mails().len(), mails);
}

async fn a_magic_link_leads_where_the_app_allows(app: TestApp) {
    app.owner("ada@example.com").await;
    let mut body = who(&app, "ada@example.com");
    for foreign in ["https://stranger.example/x", "http://localhost:3000.stranger.example/", "javascript:alert(1)", "x"]
    {
        body["successUrl"] = foreign.into();
        post(&app, "magic-link", body.clone()).await.refuses(&["successUrl"]);
    }
    body["successUrl"] = "http://localhost:3000/done?x=1".into();
    post(&app, "magic-link", body).await.expect(200);
    app.drain().await;
    let link = app.mailed_link("ada@example.com");
    assert!(link.starts_with("http://localhost:3000/done?x=1&service_magic_link_token="), "{link}");
}

async fn switched_off_methods_are_refused(app: TestApp) {
    app.owner("ada@example.com").await;
    post(&app, "magic-link", who(&app, "ada@example.com")).await.expect(200);
    app.drain().await;
    let token = app.mailed_token("ada@example.com");
    app.key().put("/account/app", json!({ "magicLinkEnabled": false, "tenantSelfSignup": false })).await.expect(200);
    post(&app, "magic-link", who(&app, "ada@example.com")).await.error(403, "LOGIN_METHOD_OFF");
    let follow = app.anon().post("/auth/auth/magic-link/authenticate", json!({ "token": token })).await;
    follow.error(403, "LOGIN_METHOD_OFF");
    let body = json!({ "email": "new@example.com", "appId": app.app_id(), "mode": "sdk" });
    post(&app, "signup", body).await.error(403, "SIGNUP_DISABLED");
}

async fn signing_up_makes_a_workspace_once_the_address_is_proven(app: TestApp) {
    let body = json!({
        "email": "New@example.com", "firstName": "Grace", "lastName": "Hopper", "appId": app.app_id(), "mode": "sdk",
    });
    let answer = post(&app, "signup", body).await.expect(200);
    assert_eq!(answer.at("/success"), true);
    assert!(answer.at("/message").is_string());
    app.drain().await;
    assert_eq!(app.key().get("/account/tenant").await.expect(200).json(), json!([]));
    let token = app.mailed_token("New@example.com");
    let set = json!({ "token": token, "password": "violet harbour lamp" });
    app.anon().put("/auth/auth/password", set.clone()).await.expect(200);
    app.anon().put("/auth/auth/password", set).await.error(401, "INVALID_CREDENTIAL");
    let tenants = app.key().get("/account/tenant").await.expect(200);
    assert_eq!(
        (tenants.at("/0/name"), tenants.at("/0/signupBy/email")),
        (json!("Grace Hopper"), json!("New@example.com"))
    );
    let mut credentials = who(&app, "new@example.com");
    credentials["password"] = "violet harbour lamp".into();
    let session = post(&app, "authenticate", credentials).await.expect(200).text("/session");
    let body = json!({ "session": session, "appId": app.app_id(), "mode": "sdk" });
    let tokens = Tokens::of(&app.page().post("/auth/token/direct", body).await.expect(200));
    assert_eq!(claims(&tokens.access)["role"], "OWNER");
    assert_eq!(claims(&tokens.id)["email_verified"], true);
}

async fn signing_up_twice_tells_nobody(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let sign_up = |email: &str| json!({ "email": email, "appId": app.app_id(), "mode": "sdk" });
    let known = post(&app, "signup", sign_up("ada@example.com")).await.expect(200).json();
    assert_eq!(post(&app, "signup", sign_up("new@example.com")).await.expect(200).json(), known);
    app.drain().await;
    let told = app.mails().into_iter().rfind(|mail| mail.to.contains("ada@example.com")).expect("a mail");
    assert!(told.links().iter().all(|link| !link.contains("token=")), "{}", told.text);
    // Two links to one new address: the first that is followed counts.
    let first = app.mailed_token("new@example.com");
    post(&app, "signup", sign_up("NEW@example.com")).await.expect(200);
    app.drain().await;
    let second = app.mailed_token("NEW@example.com");
    let set = |token: &str| json!({ "token": token, "password": "violet harbour lamp" });
    app.anon().put("/auth/auth/password", set(&first)).await.expect(200);
    app.anon().put("/auth/auth/password", set(&second)).await.error(401, "INVALID_CREDENTIAL");
    ada.log_in().await.expect(200);
}

async fn a_forgotten_password_is_replaced_and_other_sessions_end(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let tokens = ada.sign_in().await;
    assert_eq!(
        post(&app, "password", who(&app, "ada@example.com")).await.expect(200).json(),
        json!({ "success": true })
    );
    assert_eq!(
        post(&app, "password", who(&app, "nobody@example.com")).await.expect(200).json(),
        json!({ "success": true })
    );
    app.drain().await;
    let token = app.mailed_token("ada@example.com");
    let set = json!({ "token": token, "password": "copper window seventeen" });
    app.anon().put("/auth/auth/password", set.clone()).await.expect(200);
    app.anon().put("/auth/auth/password", set).await.error(401, "INVALID_CREDENTIAL");
    refresh(&app, &tokens.refresh).await.expect(400);
    app.anon().with_access_token(app.app_id(), &tokens.access).get("/auth/userinfo").await.expect(401);
    ada.log_in().await.error(401, "INVALID_CREDENTIAL");
    let mut credentials = ada.credentials();
    credentials["password"] = "copper window seventeen".into();
    post(&app, "authenticate", credentials).await.expect(200);
    // An hour is all there is.
    post(&app, "password", who(&app, "ada@example.com")).await.expect(200);
    app.drain().await;
    let token = app.mailed_token("ada@example.com");
    app.advance(Duration::from_secs(3601)).await;
    let set = json!({ "token": token, "password": "violet harbour lamp" });
    app.anon().put("/auth/auth/password", set).await.error(401, "INVALID_CREDENTIAL");
}

async fn weak_passwords_are_refused_and_leave_the_link_alone(app: TestApp) {
    app.owner("ada.lovelace@example.com").await;
    post(&app, "password", who(&app, "ada.lovelace@example.com")).await.expect(200);
    app.drain().await;
    let token = app.mailed_token("ada.lovelace@example.com");
    for weak in ["short", "password1", "ada.lovelace@example.com"] {
        let body = json!({ "token": token, "password": weak });
        app.anon().put("/auth/auth/password", body).await.refuses(&["password"]);
    }
    let body = json!({ "token": token, "password": "copper window seventeen" });
    app.anon().put("/auth/auth/password", body).await.expect(200);
}

async fn mails_to_one_recipient_are_limited(app: TestApp) {
    app.owner("ada@example.com").await;
    for username in ["ada@example.com", "nobody@example.com"] {
        for number in 0..10 {
            let route = if number % 2 == 0 { "password" } else { "magic-link" };
            post(&app, route, who(&app, username)).await.expect(200);
        }
        let limited = post(&app, "password", who(&app, username)).await.error(429, "RATE_LIMITED");
        assert!(limited.header("retry-after").expect("a wait").parse::<u64>().expect("seconds") <= 900);
    }
    app.advance(Duration::from_secs(901)).await;
    post(&app, "password", who(&app, "ada@example.com")).await.expect(200);
}

async fn what_happens_is_told_as_facts(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut wrong = ada.credentials();
    wrong["password"] = "wrong".into();
    post(&app, "authenticate", wrong).await.error(401, "INVALID_CREDENTIAL");
    let tokens = ada.sign_in().await;
    refresh(&app, &tokens.refresh).await.expect(200);
    app.advance(Duration::from_secs(31)).await;
    refresh(&app, &tokens.refresh).await.expect(400);
    let kinds = app
        .service()
        .core()
        .db
        .read(|tx| tx.all::<(String, String)>("SELECT kind, payload FROM outbox ORDER BY created_at, id", &[]));
    let kinds = kinds.await.expect("reads");
    for kind in ["password.changed", "login.failed", "login.succeeded", "refresh.reused"] {
        let told: Vec<&String> = kinds.iter().filter(|(told, _)| told == kind).map(|(_, payload)| payload).collect();
        assert_eq!(told.len(), 1, "{kind}");
        assert!(!told[0].contains("violet") && !told[0].contains("eyJ"), "{kind} tells a secret");
    }
}

async fn signing_up_with_an_account_without_a_password_mails_a_way_into_it(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let silent = json!({ "username": "bob@example.com", "muteNotifications": true });
    app.key().in_workspace(ada.tenant).post("/account/tenant/user", silent).await.expect(201);
    let sign_up = |email: &str| json!({ "email": email, "appId": app.app_id(), "mode": "sdk" });
    let known = post(&app, "signup", sign_up("Bob@example.com")).await.expect(200).json();
    assert_eq!(post(&app, "signup", sign_up("new@example.com")).await.expect(200).json(), known);
    app.drain().await;
    let told = app.mails().into_iter().rfind(|mail| mail.to.to_lowercase().contains("bob@")).expect("a mail");
    assert!(told.subject.starts_with("You already have a"), "{}", told.subject);
    let set = json!({ "token": token_of(&told.links()[0]), "password": "violet harbour lamp" });
    app.anon().put("/auth/auth/password", set).await.expect(200);
    let mut credentials = who(&app, "bob@example.com");
    credentials["password"] = "violet harbour lamp".into();
    let session = post(&app, "authenticate", credentials).await.expect(200);
    assert_eq!(session.at("/tenantUsers").as_array().map(Vec::len), Some(1), "no workspace of their own");
}

async fn of_one_address_three_sign_ups_wait(app: TestApp) {
    let sign_up = async |email: &str| {
        let body = json!({ "email": email, "firstName": "Eve", "appId": app.app_id(), "mode": "sdk" });
        post(&app, "signup", body).await.expect(200);
    };
    for _ in 0..6 {
        sign_up("Eve@Example.com").await;
    }
    sign_up("other@example.com").await;
    let count = "SELECT count(*) FROM one_time_links WHERE purpose = 'sign_up'";
    let rows = app.service().core().db.get_one::<(i64,)>(count, &[]).await.expect("reads");
    assert_eq!(rows, Some((4,)), "three of one address, one of the other");
    app.drain().await;
    let tokens: Vec<String> =
        app.mails().iter().filter(|mail| mail.to.contains("Eve")).map(|mail| token_of(&mail.links()[0])).collect();
    let set = async |token: &str| {
        app.anon().put("/auth/auth/password", json!({ "token": token, "password": "copper window seventeen" })).await
    };
    set(&tokens[2]).await.error(401, "INVALID_CREDENTIAL");
    set(&tokens[3]).await.expect(200);
    set(&tokens[5]).await.error(401, "INVALID_CREDENTIAL");
}

fn token_of(link: &str) -> String {
    link.split_once("token=").expect("a token").1.to_owned()
}
