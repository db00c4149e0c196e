//! What is over once somebody's sessions are ended, their password is replaced or a second factor is asked for.

use futures_util::future::{join, join_all};
use serde_json::{Value, json};
use testkit::{
    Answer, Person, TestApp, factors,
    hosted::{authorize, sign_in, signed_in},
    on_both_engines, passkeys,
    tokens::{REDIRECT, code, exchange, is_signed_in, refresh},
};

on_both_engines!(
    ending_all_sessions_signs_browsers_out,
    ending_all_sessions_ends_a_login_on_the_pages,
    a_new_password_voids_every_mailed_link,
    a_link_serves_no_other_purpose,
    a_new_password_ends_logins_of_nodes_with_a_fast_clock,
    a_password_replaced_while_it_is_checked_opens_nothing,
    a_factor_asked_for_meanwhile_stops_the_exchange_of_a_code,
);

const NEW_PASSWORD: &str = "amber lantern quay";

async fn end_by_administrator(app: &TestApp, person: &Person) {
    let path = format!("/account/tenant/user/{}/sessions", person.member);
    app.key().in_workspace(person.tenant).delete(&path).await.expect(200);
}

async fn sign_out_everywhere(app: &TestApp, person: &Person) {
    let body = json!({ "refreshToken": person.sign_in().await.refresh, "all": true });
    app.anon().post("/auth/auth/revoke", body).await.expect(200);
}

async fn ending_all_sessions_signs_browsers_out(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    for by_administrator in [true, false] {
        let mut browser = signed_in(&app, &ada).await;
        browser.open(&authorize(&app, &[])).await;
        assert!(browser.answer("code").is_some(), "{}", browser.location);
        match by_administrator {
            true => end_by_administrator(&app, &ada).await,
            false => sign_out_everywhere(&app, &ada).await,
        }
        browser.open(&authorize(&app, &[])).await.sees(200, "Sign in to");
    }
}

async fn ending_all_sessions_ends_a_login_on_the_pages(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    app.workspace("Other").await.add(&ada.email, "MEMBER").await;
    for by_administrator in [true, false] {
        let mut browser = app.browser();
        sign_in(browser.open(&authorize(&app, &[])).await, &ada).await;
        browser.sees(200, "Choose a workspace");
        match by_administrator {
            true => end_by_administrator(&app, &ada).await,
            false => sign_out_everywhere(&app, &ada).await,
        }
        let member = ada.member.to_string();
        browser.submit("/auth/login/workspace", &[("member", &member)]).await.sees(200, "Sign in to");
    }
}

fn who(app: &TestApp, email: &str) -> Value {
    json!({ "username": email, "appId": app.app_id(), "mode": "sdk" })
}

/// The token of the link that this request mails.
async fn asked_for(app: &TestApp, route: &str, email: &str) -> String {
    app.page().post(&format!("/auth/auth/{route}"), who(app, email)).await.expect(200);
    app.drain().await;
    app.mailed_token(email)
}

async fn follow_magic_link(app: &TestApp, token: &str) -> Answer {
    app.anon().post("/auth/auth/magic-link/authenticate", json!({ "token": token })).await
}

async fn set_password(app: &TestApp, token: &str) -> Answer {
    app.anon().put("/auth/auth/password", json!({ "token": token, "password": NEW_PASSWORD })).await
}

async fn a_new_password_voids_every_mailed_link(app: TestApp) {
    let (workspace, email) = (app.workspace("Acme").await, "bob@customer.example");
    workspace.key().post("/account/tenant/user", json!({ "username": email })).await.expect(201);
    app.drain().await;
    let invitation = app.mailed_token(email);
    let magic = asked_for(&app, "magic-link", email).await;
    let passkey = passkeys::setup_token(&app, email).await;
    let earlier = asked_for(&app, "password", email).await;
    let reset = asked_for(&app, "password", email).await;
    passkeys::registration_options(&app, &passkey).await.expect(200);
    set_password(&app, &reset).await.expect(200);
    for token in [&invitation, &earlier, &reset] {
        set_password(&app, token).await.error(401, "INVALID_CREDENTIAL");
    }
    follow_magic_link(&app, &magic).await.error(401, "INVALID_CREDENTIAL");
    passkeys::registration_options(&app, &passkey).await.error(401, "INVALID_CREDENTIAL");
}

async fn a_link_serves_no_other_purpose(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let magic = asked_for(&app, "magic-link", &ada.email).await;
    let reset = asked_for(&app, "password", &ada.email).await;
    let passkey = passkeys::setup_token(&app, &ada.email).await;
    let options = passkeys::registration_options(&app, &passkey).await.expect(200);
    let mut device = passkeys::Device::default();
    let ceremony = passkeys::created(&app, &mut device, &options).await;
    for other in [&magic, &reset] {
        passkeys::registration_options(&app, other).await.error(401, "INVALID_CREDENTIAL");
        passkeys::verify_registration(&app, other, ceremony.clone()).await.error(401, "INVALID_CREDENTIAL");
    }
    for other in [&reset, &passkey] {
        follow_magic_link(&app, other).await.error(401, "INVALID_CREDENTIAL");
    }
    for other in [&magic, &passkey] {
        set_password(&app, other).await.error(401, "INVALID_CREDENTIAL");
    }
    passkeys::verify_registration(&app, &passkey, ceremony).await.expect(200);
    follow_magic_link(&app, &magic).await.expect(200);
    set_password(&app, &reset).await.expect(200);
}

/// Moves the beginning of every login into the future, as if another node's clock had told it, or as if it had begun while
/// the next transaction waited for it.
async fn begin_a_minute_later(app: &TestApp) {
    let moved = app.service().core().db.write(|tx| {
        for update in [
            "UPDATE refresh_families SET authenticated_at = authenticated_at + 60000000",
            "UPDATE login_sessions SET created_at = created_at + 60000000",
            "UPDATE browser_sessions SET authenticated_at = authenticated_at + 60000000",
            "UPDATE authorization_codes SET authenticated_at = authenticated_at + 60000000",
        ] {
            tx.exec(update, &[])?;
        }
        Ok(())
    });
    moved.await.expect("the logins can be moved");
}

async fn a_new_password_ends_logins_of_nodes_with_a_fast_clock(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let reset = asked_for(&app, "password", &ada.email).await;
    let mut browser = signed_in(&app, &ada).await;
    let (tokens, session) = (ada.sign_in().await, ada.log_in().await.text("/session"));
    let code = code(&app, &ada, None).await;
    begin_a_minute_later(&app).await;
    assert!(is_signed_in(&app, &tokens.access).await);

    set_password(&app, &reset).await.expect(200);
    assert!(!is_signed_in(&app, &tokens.access).await);
    assert_eq!(refresh(&app, &tokens.refresh).await.status(), 400);
    assert_eq!(exchange(&app, &code, None).await.status(), 400);
    assert_eq!(ada.exchange(&session).await.status(), 401);
    browser.open(&authorize(&app, &[])).await.sees(200, "Sign in to");
}

/// The change is on its way when the old password is typed: most checks of it end after the change was stored.
async fn a_password_replaced_while_it_is_checked_opens_nothing(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let reset = asked_for(&app, "password", &ada.email).await;
    let (changed, logins) = join(set_password(&app, &reset), join_all((0..12).map(|_| ada.log_in()))).await;
    changed.expect(200);
    for login in logins.iter().filter(|login| login.status() == 200) {
        ada.exchange(&login.text("/session")).await.error(401, "INVALID_CREDENTIAL");
    }
}

async fn a_factor_asked_for_meanwhile_stops_the_exchange_of_a_code(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let codes = [code(&app, &ada, None).await, code(&app, &ada, None).await];
    factors::require(&app).await;
    let [one, other] = codes;
    assert_eq!(exchange(&app, &one, None).await.expect(400).text("/error"), "invalid_grant");
    let body = json!({ "code": other, "redirectUri": REDIRECT });
    app.anon().post(&format!("/auth/token/code/{}", app.app_id()), body).await.error(401, "MFA_REQUIRED");
}
