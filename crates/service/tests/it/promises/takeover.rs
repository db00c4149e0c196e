//! Ways in which somebody with a little access could become somebody else, or more than they are.

use std::time::Duration;

use serde_json::json;
use testkit::{
    TestApp,
    hosted::{authorize, sign_in},
    on_both_engines, passkeys,
    tokens::refresh,
};

on_both_engines!(
    a_workspaces_token_cannot_become_its_members,
    a_token_gives_no_role_beyond_itself,
    a_password_that_changed_meanwhile_lets_nobody_in,
    an_older_login_cannot_replace_a_factor,
    a_cookie_is_not_enough_to_set_up_a_factor,
    nobody_is_texted_who_may_not_be_asked,
    set_up_messages_do_not_use_up_those_of_logins,
    slow_guessing_of_codes_adds_up,
    a_used_up_refresh_token_signs_nobody_out_everywhere,
    signing_out_ends_the_login_under_way_too,
    clearing_factors_clears_passkeys,
    a_very_long_name_is_only_a_wrong_one,
    a_refresh_needs_no_body,
    a_passkey_added_by_mail_does_not_replace_a_factor,
    an_app_that_insists_on_pkce_begins_each_login_itself,
    sign_up_links_end_with_self_service,
    two_sign_up_links_make_one_account,
    a_backup_code_is_read_as_people_write_it,
    looking_at_links_blocks_nobody,
);

async fn a_workspaces_token_cannot_become_its_members(app: TestApp) {
    let victim = app.owner("ceo@victim.example").await;
    let own = app.workspace("Evil").await;
    let token = own.token(&["USER_READ", "USER_WRITE"]).await;
    let member = own.add(&victim.email, "MEMBER").await["id"].as_str().expect("an id").to_owned();
    let path = format!("/account/tenant/user/{member}");
    token.get(&format!("{path}/passwordLink")).await.error(403, "FORBIDDEN");
    token.delete(&format!("{path}/mfa")).await.error(403, "FORBIDDEN");
    token.delete(&format!("{path}/sessions")).await.error(403, "FORBIDDEN");
    token.put(&path, json!({ "phoneNumber": "+4930123456" })).await.error(403, "FORBIDDEN");
    token.put(&path, json!({ "firstName": "Mallory" })).await.error(403, "FORBIDDEN");
    // What they are in this workspace is its business, and so is somebody who is nowhere else.
    token.put(&path, json!({ "teams": ["red"], "onboarded": true })).await.expect(200);
    let mine = own.add("bob@evil.example", "MEMBER").await["id"].as_str().expect("an id").to_owned();
    token.put(&format!("/account/tenant/user/{mine}"), json!({ "firstName": "Bob" })).await.expect(200);
    token.delete(&format!("/account/tenant/user/{mine}/sessions")).await.expect(200);
    own.key().get(&format!("{path}/passwordLink")).await.expect(200);
}

async fn a_token_gives_no_role_beyond_itself(app: TestApp) {
    let own = app.workspace("Acme").await;
    let token = own.token(&["USER_READ", "USER_WRITE"]).await;
    let add = |role: &str| json!({ "username": format!("{role}@acme.example"), "role": role });
    for role in ["OWNER", "ADMIN"] {
        token.post("/account/tenant/user", add(role)).await.error(403, "FORBIDDEN");
    }
    let member = token.post("/account/tenant/user", add("MEMBER")).await.expect(201).text("/id");
    let path = format!("/account/tenant/user/{member}");
    token.put(&path, json!({ "role": "OWNER" })).await.error(403, "FORBIDDEN");
    token.put(&path, json!({ "role": "MEMBER", "enabled": false })).await.expect(200);
    own.key().put(&path, json!({ "role": "ADMIN" })).await.expect(200);
    // A role that somebody has already is not given again.
    token.put(&path, json!({ "role": "ADMIN", "enabled": true })).await.expect(200);
}

async fn a_password_that_changed_meanwhile_lets_nobody_in(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let session = ada.log_in().await.expect(200).text("/session");
    let tokens = ada.sign_in().await;
    let path = format!("/account/tenant/user/{}/passwordLink", ada.member);
    let link = app.key().in_workspace(ada.tenant).get(&path).await.expect(200).json();
    let token = link.as_str().and_then(|link| link.rsplit_once('=')).expect("a token").1.to_owned();
    let body = json!({ "token": token, "password": "amber lantern quay" });
    // Many checks of the old password race the change: whatever they led to is over afterwards.
    let logins = (0..4).map(async |_| {
        let login = ada.log_in().await;
        match login.status() {
            200 => Some(ada.exchange(&login.text("/session")).await),
            _ => None,
        }
    });
    let change = app.anon();
    let change = change.put("/auth/auth/password", body);
    let (logins, changed) = futures_util::future::join(futures_util::future::join_all(logins), change).await;
    changed.expect(200);
    for exchanged in logins.into_iter().flatten().filter(|exchanged| exchanged.status() == 200) {
        refresh(&app, &exchanged.text("/refresh_token")).await.expect(400);
    }
    ada.exchange(&session).await.expect(401);
    refresh(&app, &tokens.refresh).await.expect(400);
    ada.log_in().await.expect(401);
}

async fn an_older_login_cannot_replace_a_factor(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let older = ada.log_in().await.expect(200).text("/session");
    let begun = json!({ "session": older, "method": "totp", "mode": "sdk" });
    app.page().post("/auth/auth/startMfaUserSetup", begun.clone()).await.expect(200);
    let newer = ada.log_in().await.expect(200).text("/session");
    testkit::factors::set_up_sms(&app, &newer, "+491701234567").await;
    app.page().post("/auth/auth/startMfaUserSetup", begun).await.error(401, "MFA_REQUIRED");
    let finish = json!({ "session": older, "mfaCode": "000000", "mode": "sdk" });
    app.page().post("/auth/auth/finishMfaUserSetup", finish).await.error(401, "MFA_REQUIRED");
}

async fn a_cookie_is_not_enough_to_set_up_a_factor(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let mut browser = app.browser();
    sign_in(browser.open(&authorize(&app, &[])).await, &ada).await;
    app.key().put(&format!("/account/tenant/{}", ada.tenant), json!({ "mfa": true })).await.expect(200);
    app.drain().await;
    browser.open(&authorize(&app, &[])).await.sees(200, "Sign in to");
    assert!(!browser.cookies().keys().any(|name| name.contains("-login-")));
}

async fn nobody_is_texted_who_may_not_be_asked(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let mut browser = app.browser();
    sign_in(browser.open(&authorize(&app, &[])).await, &ada).await;
    let session = ada.log_in().await.expect(200).text("/session");
    testkit::factors::set_up_sms(&app, &session, "+491701234567").await;
    app.key().put(&format!("/account/tenant/{}", ada.tenant), json!({ "mfa": true })).await.expect(200);
    app.drain().await;
    let before = app.sms().len();
    browser.open(&authorize(&app, &[("prompt", "none")])).await;
    assert_eq!(browser.answer("error").as_deref(), Some("interaction_required"));
    app.drain().await;
    assert_eq!(app.sms().len(), before);
}

async fn set_up_messages_do_not_use_up_those_of_logins(app: TestApp) {
    let (ada, eve) = (app.owner("ada@customer.example").await, app.owner("eve@evil.example").await);
    let session = ada.log_in().await.expect(200).text("/session");
    testkit::factors::set_up_sms(&app, &session, "+491701234567").await;
    let session = eve.log_in().await.expect(200).text("/session");
    let begin =
        |number: usize| json!({ "session": session, "phoneNumber": format!("+49170123456{number}"), "mode": "sdk" });
    let mut refused = 0;
    for count in 0..12 {
        let number = if count < 6 { 7 } else { count - 6 };
        refused += usize::from(app.page().post("/auth/auth/startMfaUserSetup", begin(number)).await.status() == 429);
    }
    assert_eq!(refused, 2, "ten messages in all, whatever the numbers");
    ada.log_in().await.expect(200);
}

async fn slow_guessing_of_codes_adds_up(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let session = ada.log_in().await.expect(200).text("/session");
    testkit::factors::set_up_sms(&app, &session, "+491701234567").await;
    let mut statuses = Vec::new();
    for _ in 0..12 {
        let session = ada.log_in().await.text("/session");
        let body = json!({ "session": session, "mfaCode": "000000", "mode": "sdk" });
        statuses.push(app.page().post("/auth/auth/commitMfaCode", body).await.status());
        app.advance(Duration::from_secs(120)).await;
    }
    assert_eq!(statuses, [&[401; 10][..], &[429; 2]].concat(), "ten in an hour");
    app.advance(Duration::from_secs(3_600)).await;
    let session = ada.log_in().await.text("/session");
    let body = json!({ "session": session, "mfaCode": "000000", "mode": "sdk" });
    app.page().post("/auth/auth/commitMfaCode", body).await.expect(401);
}

async fn a_used_up_refresh_token_signs_nobody_out_everywhere(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let (first, other) = (ada.sign_in().await, ada.sign_in().await);
    refresh(&app, &first.refresh).await.expect(200);
    app.advance(Duration::from_secs(60)).await;
    app.anon().post("/auth/auth/revoke", json!({ "refreshToken": first.refresh, "all": true })).await.expect(200);
    refresh(&app, &other.refresh).await.expect(200);
}

async fn signing_out_ends_the_login_under_way_too(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let other = app.workspace("Other").await;
    other.add(&ada.email, "MEMBER").await;
    app.drain().await;
    let mut browser = app.browser();
    sign_in(browser.open(&authorize(&app, &[])).await, &ada).await;
    browser.sees(200, "Choose a workspace");
    let (_, session) = browser.cookies().iter().find(|(name, _)| name.contains("-login-")).expect("under way");
    let session = session.clone();
    browser.open(&format!("/auth/url/logout/{}", app.app_id())).await;
    ada.exchange(&session).await.expect(401);
}

async fn clearing_factors_clears_passkeys(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let (id, user) = (app.app_id(), ada.user);
    let service = app.service();
    let db = &service.core().db;
    let stored = db.write(move |tx| {
        tx.exec(
            "INSERT INTO passkeys (id, app_id, user_id, rp_id, credential, created_at) \
             VALUES ($1, $2, $3, 'localhost', '{}', $4)",
            &store::args!["credential", id, user, tx.now()],
        )
    });
    stored.await.expect("a passkey");
    let path = format!("/account/tenant/user/{}/mfa", ada.member);
    app.key().in_workspace(ada.tenant).delete(&path).await.expect(200);
    let left: (i64,) = db
        .read(move |tx| tx.one("SELECT count(*) FROM passkeys WHERE user_id = $1", &store::args![user]))
        .await
        .expect("a count");
    assert_eq!(left, (0,));
}

async fn a_very_long_name_is_only_a_wrong_one(app: TestApp) {
    let name: String =
        (0..3000u32).map(|n| char::from(b'a' + u8::try_from(n.wrapping_mul(7919) % 26).unwrap_or(0))).collect();
    let body = json!({ "username": name, "password": "violet harbour lamp", "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/authenticate", body).await.expect(401);
    let body = json!({ "username": name, "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/magic-link", body).await.expect(200);
}

async fn a_refresh_needs_no_body(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let caller = ada.signed_in().await;
    caller.call(http::Method::POST, "/auth/refresh-token", None).await.expect(200);
    caller.post("/auth/refresh-token", json!({ "scope": "openid" })).await.expect(200);
}

async fn a_passkey_added_by_mail_does_not_replace_a_factor(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let session = ada.log_in().await.expect(200).text("/session");
    testkit::factors::set_up_sms(&app, &session, "+491701234567").await;
    let mut device = passkeys::with_passkey(&app, &ada).await;
    let options = passkeys::authentication_options(&app).await;
    let body = passkeys::asserted(&app, &mut device, &options).await;
    let login = passkeys::verify_authentication(&app, body).await.expect(200);
    assert_eq!(login.at("/mfaState"), "REQUIRED");
    // Without a factor to make up for, it counts as two.
    app.key().in_workspace(ada.tenant).delete(&format!("/account/tenant/user/{}/mfa", ada.member)).await.expect(200);
    let mut device = passkeys::with_passkey(&app, &ada).await;
    let options = passkeys::authentication_options(&app).await;
    let body = passkeys::asserted(&app, &mut device, &options).await;
    assert_eq!(passkeys::verify_authentication(&app, body).await.expect(200).at("/mfaState"), "DISABLED");
}

async fn an_app_that_insists_on_pkce_begins_each_login_itself(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    app.key().put("/account/app", json!({ "requirePkce": true })).await.expect(200);
    let mut browser = app.browser();
    browser.open(&format!("/auth/url/logout/{}", app.app_id())).await.sees(200, "Signed out").sees(200, "Open ");
    let path = format!("/account/tenant/user/{}/passwordLink", ada.member);
    let link = app.key().in_workspace(ada.tenant).get(&path).await.expect(200).json();
    browser.open(link.as_str().expect("a link")).await.sees(200, "Choose a new password");
    browser.submit("/auth/login/set-password", &[("password", "amber lantern quay")]).await;
    browser.sees(200, "Your password has been set").sees(200, "Open ");
}

/// A mailed sign-up link's token.
async fn sign_up(app: &TestApp, email: &str) -> String {
    let body = json!({ "email": email, "firstName": "Grace", "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/signup", body).await.expect(200);
    app.drain().await;
    app.mailed_token(email)
}

async fn sign_up_links_end_with_self_service(app: TestApp) {
    let token = sign_up(&app, "grace@customer.example").await;
    app.key().put("/account/app", json!({ "tenantSelfSignup": false })).await.expect(200);
    let body = json!({ "token": token, "password": "amber lantern quay" });
    app.anon().put("/auth/auth/password", body.clone()).await.error(403, "SIGNUP_DISABLED");
    app.key().put("/account/app", json!({ "tenantSelfSignup": true })).await.expect(200);
    app.anon().put("/auth/auth/password", body).await.expect(200);
}

async fn two_sign_up_links_make_one_account(app: TestApp) {
    let tokens = [sign_up(&app, "grace@customer.example").await, sign_up(&app, "grace@customer.example").await];
    let caller = app.anon();
    let followed = tokens.map(|token| {
        let body = json!({ "token": token, "password": "amber lantern quay" });
        caller.put("/auth/auth/password", body)
    });
    let answers = futures_util::future::join_all(followed).await;
    assert_eq!(answers.iter().filter(|answer| answer.status() == 200).count(), 1);
    let workspaces = app.key().get("/account/tenant").await.expect(200).json();
    let made =
        workspaces.as_array().into_iter().flatten().filter(|one| one["signupBy"]["email"] == "grace@customer.example");
    assert_eq!(made.count(), 1);
}

async fn a_backup_code_is_read_as_people_write_it(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let session = ada.log_in().await.expect(200).text("/session");
    let code = testkit::factors::set_up_sms(&app, &session, "+491701234567").await;
    assert_eq!(code.len(), 23, "{code}");
    let session = ada.log_in().await.expect(200).text("/session");
    let typed = format!(" {} ", code.replace('-', " ").replace('0', "o").replace('1', "l").to_lowercase());
    let body = json!({ "session": session, "backupCode": typed, "mode": "sdk" });
    app.page().post("/auth/auth/resetUserMfaSetup", body).await.expect(200);
}

async fn looking_at_links_blocks_nobody(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    for number in 0..120 {
        app.anon().get(&format!("/auth/login/magic-link?token=guess{number}")).await.expect(404);
    }
    ada.log_in().await.expect(200);
}
