//! `/account/me…`: what people see and change about themselves.

use std::time::Duration;

use serde_json::json;
use testkit::{
    Caller, Person, TestApp,
    factors::{post, require, shown, with_authenticator, with_phone},
    facts::{told, told_of_app},
    hosted::{authorize, mailed, sign_in},
    on_both_engines,
    passkeys::{asserted, authentication_options, verify_authentication, with_passkey},
    tokens::{claims, exchange, is_signed_in, refresh},
};

on_both_engines!(
    a_profile_is_read_and_changed,
    the_app_may_be_named_but_not_another_one,
    only_parameters_that_are_theirs_can_be_changed,
    sessions_are_listed_and_ended_one_by_one,
    a_session_is_listed_as_long_as_it_can_be_refreshed,
    ending_a_session_signs_its_browser_out,
    a_password_is_changed_with_the_present_one,
    a_guessed_password_counts_as_an_attempt,
    a_second_factor_is_shown_and_turned_off,
    passkeys_are_listed_and_removed,
    the_last_passkey_of_somebody_without_a_password_stays,
    another_address_counts_once_it_is_confirmed,
    an_address_that_somebody_has_is_not_given_away,
    what_decides_about_the_account_asks_for_a_fresh_login,
);

const NEW_PASSWORD: &str = "copper window seventeen";

async fn a_profile_is_read_and_changed(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let me = ada.signed_in().await;
    let expected = json!({
        "userId": ada.user, "email": ada.email, "emailVerified": true, "firstName": "Ada", "lastName": "Lovelace",
        "fullName": "Ada Lovelace", "phoneNumber": null, "hasPassword": true, "tenantUserId": ada.member,
        "workspaceId": ada.tenant, "role": "OWNER", "parameters": {},
    });
    assert_eq!(me.get("/account/me").await.expect(200).json(), expected);
    let change = json!({ "firstName": "Augusta", "phoneNumber": "+4930123456" });
    let changed = me.put("/account/me", change).await.expect(200);
    assert_eq!(
        (changed.text("/fullName").as_str(), changed.text("/phoneNumber").as_str()),
        ("Augusta Lovelace", "+4930123456")
    );
    assert_eq!(me.get("/account/me").await.expect(200).json(), changed.json());
    let updated = told(&app, "tenant_user.updated").await;
    assert_eq!(updated.last().expect("told").1["tenantUserId"], json!(ada.member));
    me.put("/account/me", json!({ "firstName": "x".repeat(201) })).await.error(400, "VALIDATION_FAILED");
    me.put("/account/me", json!({ "phoneNumber": "12" })).await.error(400, "VALIDATION_FAILED");
    // Role, switch and address are not theirs to change here.
    let ignored = me.put("/account/me", json!({ "role": "ADMIN", "email": "x@y.example", "enabled": false })).await;
    assert_eq!(ignored.expect(200).json(), changed.json());
}

async fn the_app_may_be_named_but_not_another_one(app: TestApp) {
    let me = app.owner("ada@example.com").await.signed_in().await;
    let other = app.other_app().await.app_id().to_string();
    for path in ["/account/me", "/auth/userinfo"] {
        me.header("x-app-id", &app.app_id().to_string()).get(path).await.expect(200);
        me.header("x-app-id", &other).get(path).await.error(403, "FORBIDDEN");
        me.header("x-app-id", "nonsense").get(path).await.error(403, "FORBIDDEN");
    }
}

async fn only_parameters_that_are_theirs_can_be_changed(app: TestApp) {
    let definition = |key: &str, by: &str| json!({ "key": key, "type": "string", "editableBy": by });
    let definitions = json!([definition("seat", "user"), definition("desk", "owner"), definition("tier", "app")]);
    app.key().put("/account/app/userParameters", definitions).await.expect(200);
    let ada = app.owner("ada@example.com").await;
    let key = app.key().in_workspace(ada.tenant);
    let path = format!("/account/tenant/user/{}", ada.member);
    let before = json!({ "seat": "aisle", "desk": "4", "tier": "gold", "free": 1 });
    key.put(&path, json!({ "parameters": before })).await.expect(200);
    let me = ada.signed_in().await;
    let change = |name: &str, value: serde_json::Value| {
        let mut after = before.clone();
        after[name] = value;
        json!({ "parameters": after })
    };
    for foreign in ["desk", "tier", "free", "new"] {
        me.put("/account/me", change(foreign, json!("mine"))).await.expect(403);
    }
    me.put("/account/me", json!({ "parameters": { "seat": "aisle" } })).await.expect(403);
    me.put("/account/me", change("seat", json!(7))).await.error(400, "VALIDATION_FAILED");
    assert_eq!(me.get("/account/me").await.expect(200).at("/parameters"), before);
    let changed = me.put("/account/me", change("seat", json!("window"))).await.expect(200);
    assert_eq!(changed.at("/parameters/seat"), json!("window"));
    assert_eq!(key.get(&path).await.expect(200).at("/parameters"), changed.at("/parameters"));
}

async fn sessions_are_listed_and_ended_one_by_one(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let (here, there) = (ada.sign_in().await, ada.sign_in().await);
    let me = app.anon().with_access_token(app.app_id(), &here.access);
    let listed = me.get("/account/me/sessions").await.expect(200).json();
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), 2);
    let is_current = |session: &&serde_json::Value| session["current"] == true;
    let current: Vec<_> = listed.iter().filter(is_current).map(|session| session["id"].clone()).collect();
    assert_eq!(current, [claims(&here.access)["sid"].clone()]);
    let other = format!("/account/me/sessions/{}", claims(&there.access)["sid"].as_str().expect("a session"));

    let bob = app.owner("bob@example.com").await;
    bob.signed_in().await.delete(&other).await.expect(404);
    assert!(is_signed_in(&app, &there.access).await);
    me.delete(&other).await.expect(200);
    assert!(!is_signed_in(&app, &there.access).await);
    refresh(&app, &there.refresh).await.expect(400);
    assert!(is_signed_in(&app, &here.access).await);
    me.delete(&other).await.expect(404);
    assert_eq!(told_of_app(&app, "login.ended").await.len(), 1);
    assert_eq!(me.get("/account/me/sessions").await.expect(200).json().as_array().map(Vec::len), Some(1));
}

async fn a_session_is_listed_as_long_as_it_can_be_refreshed(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let (left, kept) = (ada.sign_in().await, ada.sign_in().await);
    app.advance(Duration::from_secs(6 * 24 * 3600)).await;
    let kept = refresh(&app, &kept.refresh).await.expect(200);
    app.advance(Duration::from_secs(6 * 24 * 3600)).await;
    let listed = ada.signed_in().await.get("/account/me/sessions").await.expect(200).json();
    let ids: Vec<_> = listed.as_array().expect("a list").iter().map(|session| session["id"].clone()).collect();
    assert!(ids.contains(&claims(&kept.text("/access_token"))["sid"]), "{listed}");
    assert!(!ids.contains(&claims(&left.access)["sid"]), "{listed}");
}

async fn ending_a_session_signs_its_browser_out(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut browser = app.browser();
    browser.open(&authorize(&app, &[("state", "s")])).await;
    sign_in(&mut browser, &ada).await;
    let code = browser.answer("code").expect("a code");
    let there = exchange(&app, &code, None).await.expect(200).text("/access_token");
    let me = ada.signed_in().await;
    let id = claims(&there)["sid"].as_str().expect("a session").to_owned();
    me.delete(&format!("/account/me/sessions/{id}")).await.expect(200);
    assert!(!is_signed_in(&app, &there).await);
    browser.open(&authorize(&app, &[("state", "again")])).await.sees(200, "Sign in to");
}

async fn a_password_is_changed_with_the_present_one(app: TestApp) {
    let mut ada = app.owner("ada@example.com").await;
    let (here, there) = (ada.sign_in().await, ada.sign_in().await);
    let me = app.anon().with_access_token(app.app_id(), &here.access);
    let change = |current: &str, new: &str| json!({ "current": current, "password": new });
    let weak = me.post("/account/me/password", change(&ada.password, "secret")).await;
    assert_eq!(weak.error(400, "VALIDATION_FAILED").text("/details/0/field"), "password");
    me.post("/account/me/password", change("wrong horse battery", NEW_PASSWORD)).await.error(401, "INVALID_CREDENTIAL");
    assert!(is_signed_in(&app, &there.access).await, "nothing has changed");
    me.post("/account/me/password", change(&ada.password, NEW_PASSWORD)).await.expect(200);
    ada.log_in().await.expect(401);
    ada.password = NEW_PASSWORD.into();
    ada.log_in().await.expect(200);
    assert!(is_signed_in(&app, &here.access).await, "whoever changed it stays");
    assert!(!is_signed_in(&app, &there.access).await, "all others are signed out");
    refresh(&app, &there.refresh).await.expect(400);
    app.drain().await;
    let subjects: Vec<_> = app.mails().into_iter().map(|mail| mail.subject).collect();
    assert!(subjects.iter().any(|subject| subject == "Your My app password was changed"), "{subjects:?}");
    assert_eq!(told_of_app(&app, "password.changed").await.len(), 2);
}

async fn a_guessed_password_counts_as_an_attempt(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let me = ada.signed_in().await;
    let guess = || json!({ "current": "wrong horse battery", "password": NEW_PASSWORD });
    for _ in 0..10 {
        me.post("/account/me/password", guess()).await.error(401, "INVALID_CREDENTIAL");
    }
    me.post("/account/me/password", guess()).await.error(429, "RATE_LIMITED");
    let right = json!({ "current": ada.password, "password": NEW_PASSWORD });
    me.post("/account/me/password", right).await.error(429, "RATE_LIMITED");
}

async fn a_second_factor_is_shown_and_turned_off(app: TestApp) {
    require(&app).await;
    let (ada, secret) = with_authenticator(&app, "ada@example.com").await;
    app.advance(Duration::from_secs(60)).await;
    let me = with_code(&app, &ada, &secret).await;
    let shown = me.get("/account/me/mfa").await.expect(200);
    assert_eq!(shown.json(), json!({ "method": "totp", "phoneNumber": null, "passkeys": 0 }));
    me.delete("/account/me/mfa").await.expect(200);
    me.delete("/account/me/mfa").await.expect(200);
    assert_eq!(me.get("/account/me/mfa").await.expect(200).at("/method"), json!(null));
    let changes = told_of_app(&app, "factor.changed").await;
    let changes: Vec<_> = changes.iter().map(|fact| fact["change"].as_str().unwrap_or_default()).collect();
    assert_eq!(changes, ["set_up", "turned_off"], "what was not there was not taken away");

    let (bob, _) = with_phone(&app, "bob@example.com").await;
    let session = bob.log_in().await.expect(200).text("/session");
    post(&app, "challengeMfa", json!({ "session": session })).await.expect(200);
    let code = testkit::factors::sms(&app).await;
    let done = post(&app, "commitMfaCode", json!({ "session": session, "mfaCode": code })).await.expect(200);
    let access = bob.exchange(&done.text("/session")).await.expect(200).text("/access_token");
    let shown = app.anon().with_access_token(app.app_id(), &access).get("/account/me/mfa").await.expect(200);
    assert_eq!(shown.json(), json!({ "method": "sms", "phoneNumber": "…567", "passkeys": 0 }));
}

/// Signs in with password and authenticator.
async fn with_code(app: &TestApp, person: &Person, secret: &str) -> Caller {
    let session = person.log_in().await.expect(200).text("/session");
    let code = json!({ "session": session, "mfaCode": shown(app, secret, 0) });
    let done = post(app, "commitMfaCode", code).await.expect(200);
    let access = person.exchange(&done.text("/session")).await.expect(200).text("/access_token");
    app.anon().with_access_token(app.app_id(), &access)
}

async fn passkeys_are_listed_and_removed(app: TestApp) {
    let (ada, bob) = (app.owner("ada@example.com").await, app.owner("bob@example.com").await);
    with_passkey(&app, &ada).await;
    let me = ada.signed_in().await;
    let listed = me.get("/account/me/passkeys").await.expect(200);
    assert_eq!(listed.json().as_array().map(Vec::len), Some(1));
    assert_eq!(listed.at("/0/lastUsedAt"), json!(null));
    let path = format!("/account/me/passkeys/{}", listed.text("/0/id"));
    bob.signed_in().await.delete(&path).await.expect(404);
    me.delete(&path).await.expect(200);
    me.delete(&path).await.expect(404);
    assert_eq!(me.get("/account/me/passkeys").await.expect(200).json(), json!([]));
    app.drain().await;
    let removed = "A passkey was removed from your My app account";
    assert!(app.mails().iter().any(|mail| mail.subject == removed && mail.to.contains(&ada.email)));
}

async fn the_last_passkey_of_somebody_without_a_password_stays(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let body = json!({ "username": "bob@example.com", "muteNotifications": true });
    let made = app.key().in_workspace(ada.tenant).post("/account/tenant/user", body).await.expect(201);
    let mut bob = ada.clone();
    (bob.email, bob.user, bob.member) = ("bob@example.com".into(), made.id("/userId"), made.id("/id"));
    let mut device = with_passkey(&app, &bob).await;
    let options = authentication_options(&app).await;
    let shown = asserted(&app, &mut device, &options).await;
    let session = verify_authentication(&app, shown).await.expect(200).text("/session");
    let access = bob.exchange(&session).await.expect(200).text("/access_token");
    let me = app.anon().with_access_token(app.app_id(), &access);
    assert_eq!(me.get("/account/me").await.expect(200).at("/hasPassword"), json!(false));
    let change = json!({ "current": "x", "password": NEW_PASSWORD });
    me.post("/account/me/password", change).await.error(409, "CONFLICT");
    let passkey = me.get("/account/me/passkeys").await.expect(200).text("/0/id");
    me.delete(&format!("/account/me/passkeys/{passkey}")).await.error(409, "LAST_WAY_IN");
    assert_eq!(me.get("/account/me/passkeys").await.expect(200).text("/0/id"), passkey);
}

async fn another_address_counts_once_it_is_confirmed(app: TestApp) {
    let mut ada = app.owner("ada@example.com").await;
    let me = ada.signed_in().await;
    me.post("/account/me/email", json!({ "email": "ADA@example.com" })).await.error(400, "VALIDATION_FAILED");
    me.post("/account/me/email", json!({ "email": "nowhere" })).await.error(400, "VALIDATION_FAILED");
    let forgotten = json!({ "username": ada.email, "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/password", forgotten).await.expect(200);
    app.drain().await;
    let to_old = app.mailed_token(&ada.email);
    me.post("/account/me/email", json!({ "email": "first@new.example" })).await.expect(200);
    let replaced = mailed(&app, "first@new.example").await;
    me.post("/account/me/email", json!({ "email": "ada@new.example" })).await.expect(200);
    let link = mailed(&app, "ada@new.example").await;
    let subjects =
        || app.mails().into_iter().filter(|mail| mail.to.contains("ada@example.com")).map(|mail| mail.subject);
    assert_eq!(subjects().next_back().as_deref(), Some("Your My app email address is about to change"));
    assert_eq!(me.get("/account/me").await.expect(200).text("/email"), ada.email, "nobody has followed the link");

    let mut browser = app.browser();
    browser.open(&replaced).await.sees(404, "This link no longer works");
    browser.open(&link).await.sees(200, "Confirm your new email address").sees(200, "ada@new.example");
    browser.submit("/auth/login/new-address", &[]).await.sees(200, "Your email address has been changed");
    browser.open(&link).await.sees(404, "This link no longer works");
    let changed = me.get("/account/me").await.expect(200);
    assert_eq!((changed.text("/email").as_str(), changed.at("/emailVerified")), ("ada@new.example", json!(true)));
    ada.log_in().await.expect(401);
    ada.email = "ada@new.example".into();
    ada.log_in().await.expect(200);
    app.drain().await;
    assert_eq!(subjects().next_back().as_deref(), Some("Your My app email address was changed"));
    let old_link = json!({ "token": to_old, "password": NEW_PASSWORD });
    app.anon().put("/auth/auth/password", old_link).await.expect(401);
    assert_eq!(told_of_app(&app, "address.changed").await, [json!({ "userId": ada.user })]);
    assert_eq!(told(&app, "tenant_user.updated").await.last().expect("told").1["email"], json!("ada@new.example"));
}

async fn an_address_that_somebody_has_is_not_given_away(app: TestApp) {
    let (ada, bob) = (app.owner("ada@example.com").await, app.owner("bob@example.com").await);
    let me = ada.signed_in().await;
    me.post("/account/me/email", json!({ "email": bob.email })).await.expect(200);
    let mut browser = app.browser();
    browser.open(&mailed(&app, &bob.email).await).await.sees(200, "Confirm your new email address");
    browser.submit("/auth/login/new-address", &[]).await.sees(409, "Another person has this email address.");
    assert_eq!(me.get("/account/me").await.expect(200).text("/email"), ada.email);
    bob.log_in().await.expect(200);
}

async fn what_decides_about_the_account_asks_for_a_fresh_login(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    with_passkey(&app, &ada).await;
    let me = ada.signed_in().await;
    let passkey = me.get("/account/me/passkeys").await.expect(200).text("/0/id");
    let passkey = format!("/account/me/passkeys/{passkey}");
    let change = json!({ "current": ada.password, "password": NEW_PASSWORD });
    let address = json!({ "email": "ada@new.example" });
    app.advance(Duration::from_secs(600)).await;
    let code = "REAUTHENTICATION_REQUIRED";
    me.post("/account/me/password", change.clone()).await.error(401, code);
    me.post("/account/me/email", address.clone()).await.error(401, code);
    me.delete("/account/me/mfa").await.error(401, code);
    me.delete(&passkey).await.error(401, code);
    assert_eq!(me.get("/account/me/passkeys").await.expect(200).json().as_array().map(Vec::len), Some(1));
    me.put("/account/me", json!({ "firstName": "Augusta" })).await.expect(200);

    // A login from before the second factor does not take it away.
    let bob = app.owner("bob@example.com").await;
    let me = bob.signed_in().await;
    let session = bob.log_in().await.expect(200).text("/session");
    let started = post(&app, "startMfaUserSetup", json!({ "session": session, "method": "totp" })).await.expect(200);
    let shown = json!({ "session": session, "mfaCode": shown(&app, &started.text("/secret"), 0) });
    post(&app, "finishMfaUserSetup", shown).await.expect(200);
    me.delete("/account/me/mfa").await.error(401, code);
    me.post("/account/me/email", address).await.error(401, code);
    me.post("/account/me/password", change).await.error(401, code);
}
