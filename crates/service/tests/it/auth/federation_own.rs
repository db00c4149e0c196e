//! What people do for themselves in logins through a workspace's identity provider, and where they are led by what their workspaces ask
//! for.

use std::time::Duration;

use kernel::TenantId;
use serde_json::{Value, json};
use testkit::{
    Browser, EngineName, IdentityProvider, SamlRequest, TestApp,
    factors::shown,
    hosted::{authorize, mailed},
    on_both_engines,
    tokens::{code, exchange, is_signed_in, refresh},
};
use web::{LimitClass, Quota, RateLimits};

use super::{
    federation::{ISSUER, bearer, come, set, tokens},
    hosted_mfa::choose_app,
};

on_both_engines!(
    good_answers_are_never_too_many,
    a_client_begins_so_many_logins_a_minute,
    a_second_factor_of_a_providers_login_goes_when_the_address_is_proven,
    a_second_factor_that_was_set_up_with_ones_own_password_stays,
    a_provider_sets_up_no_factor_of_somebody_who_belongs_elsewhere,
    a_grant_that_a_workspace_does_not_take_is_invalid,
    a_login_that_did_not_come_through_the_provider_ends_at_its_next_refresh,
    people_of_the_provider_alone_see_and_name_themselves,
    an_address_that_a_providers_login_asked_for_is_not_kept_for_later,
    the_choice_of_a_closed_workspace_leads_to_its_provider,
    a_forced_kind_leads_to_the_persons_connection,
    a_workspace_that_was_chosen_has_a_say_from_then_on,
    the_choice_of_a_workspace_that_wants_two_factors_asks_for_them,
    a_login_that_was_answered_too_late_can_be_started_again,
);

const BOB: &str = "bob@acme.example";

async fn good_answers_are_never_too_many(engine: EngineName) {
    let app = TestApp::start_with(engine, |options| {
        let limits = RateLimits::new(options.clock.clone());
        options.rate_limits = limits.with(LimitClass::Credential, Quota { per_minute: 6, burst: 2 });
    })
    .await;
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    for _ in 0..5 {
        come(&app, &idp, &connection, &ada.email).await.answer("code").expect("a code");
    }
    let other = IdentityProvider::new(ISSUER);
    for _ in 0..2 {
        come(&app, &other, &connection, &ada.email).await.sees(400, "could not be accepted");
    }
    come(&app, &other, &connection, &ada.email).await.sees(429, "Too many attempts");
    come(&app, &idp, &connection, &ada.email).await.answer("code").expect("a good one still counts");
}

async fn a_client_begins_so_many_logins_a_minute(engine: EngineName) {
    let app = TestApp::start_with(engine, |options| {
        let limits = RateLimits::new(options.clock.clone());
        options.rate_limits = limits.with(LimitClass::Start, Quota { per_minute: 6, burst: 2 });
    })
    .await;
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let start = format!("/auth/federation/saml/{}/login", idp.connect(&app, &[ada.tenant]).await);
    for _ in 0..2 {
        app.anon().get(&start).await.expect(302);
    }
    app.anon().get(&start).await.expect(429);
}

/// Somebody whom only the provider knows, with an authenticator app that they set up in a login through it: its key.
async fn with_factor(app: &TestApp, idp: &IdentityProvider, connection: &str, email: &str) -> String {
    let mut browser = come(app, idp, connection, email).await;
    let key = choose_app(&mut browser).await;
    let code = shown(app, &key, 0);
    browser.submit("/auth/login/mfa/setup/finish", &[("code", &code)]).await.sees(200, "Save your backup code");
    browser.submit("/auth/login/mfa/continue", &[]).await;
    tokens(app, &browser).await;
    key
}

async fn log_in(app: &TestApp, email: &str, password: &str) -> Value {
    let shown = json!({ "username": email, "password": password, "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/authenticate", shown).await.expect(200).json()
}

/// Sets a password with a mailed link.
async fn choose_password(app: &TestApp, email: &str, password: &str) {
    let forgotten = json!({ "username": email, "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/password", forgotten).await.expect(200);
    app.drain().await;
    let chosen = json!({ "token": app.mailed_token(email), "password": password });
    app.anon().put("/auth/auth/password", chosen).await.expect(200);
}

async fn a_second_factor_of_a_providers_login_goes_when_the_address_is_proven(app: TestApp) {
    let (acme, idp) = (app.workspace("acme").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[acme.id]).await;
    set(&app, acme.id, json!({ "mfa": true })).await;
    let key = with_factor(&app, &idp, &connection, BOB).await;
    // From now on it is asked for.
    app.advance(Duration::from_secs(60)).await;
    let mut again = come(&app, &idp, &connection, BOB).await;
    again.submit("/auth/login/mfa", &[("code", &shown(&app, &key, 0))]).await;
    tokens(&app, &again).await;
    // The provider may have named somebody who never saw it: the mailbox tells.
    choose_password(&app, BOB, "amber lantern quay").await;
    assert_eq!(log_in(&app, BOB, "amber lantern quay").await["mfaState"], "SETUP");
}

async fn a_second_factor_that_was_set_up_with_ones_own_password_stays(app: TestApp) {
    let (ada, _) = testkit::factors::with_authenticator(&app, "ada@acme.example").await;
    let idp = IdentityProvider::new(ISSUER);
    let connection = idp.connect(&app, &[ada.tenant]).await;
    come(&app, &idp, &connection, &ada.email).await.sees(200, "code");
    choose_password(&app, &ada.email, "amber lantern quay").await;
    assert_eq!(log_in(&app, &ada.email, "amber lantern quay").await["mfaState"], "REQUIRED");
}

async fn a_provider_sets_up_no_factor_of_somebody_who_belongs_elsewhere(app: TestApp) {
    let (acme, idp) = (app.workspace("acme").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[acme.id]).await;
    set(&app, acme.id, json!({ "mfa": true })).await;
    let victim = app.owner("vic@bolt.example").await;
    come(&app, &idp, &connection, &victim.email).await.sees(403, "at your identity provider");
    // Nor while the page was open.
    let mut browser = come(&app, &idp, &connection, BOB).await;
    let key = choose_app(&mut browser).await;
    app.workspace("bolt").await.add(BOB, "MEMBER").await;
    let code = shown(&app, &key, 0);
    browser.submit("/auth/login/mfa/setup/finish", &[("code", &code)]).await.sees(403, "identity provider");
}

async fn a_grant_that_a_workspace_does_not_take_is_invalid(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let bob = app.member(BOB, ada.tenant, "MEMBER").await;
    let before = bob.sign_in().await;
    let made = code(&app, &bob, None).await;
    set(&app, ada.tenant, json!({ "mfa": true })).await;
    let refused = exchange(&app, &made, None).await.expect(400).json();
    assert_eq!((&refused["error"], refused["error_description"].is_string()), (&json!("invalid_grant"), true));
    idp.connect(&app, &[ada.tenant]).await;
    set(&app, ada.tenant, json!({ "mfa": false, "ssoRequired": true })).await;
    let refused = refresh(&app, &before.refresh).await.expect(400).json();
    assert_eq!((&refused["error"], refused["error_description"].is_string()), (&json!("invalid_grant"), true));
}

async fn a_login_that_did_not_come_through_the_provider_ends_at_its_next_refresh(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let bob = app.member(BOB, ada.tenant, "MEMBER").await;
    let (first, second, third) = (bob.sign_in().await, bob.sign_in().await, bob.sign_in().await);
    let owner = ada.sign_in().await;
    idp.connect(&app, &[ada.tenant]).await;
    set(&app, ada.tenant, json!({ "ssoRequired": true })).await;
    refresh(&app, &first.refresh).await.expect(400);
    bearer(&app, &second).post("/auth/refresh-token", json!({})).await.error(401, "SSO_REQUIRED");
    refresh(&app, &owner.refresh).await.expect(200);
    set(&app, ada.tenant, json!({ "ssoRequired": false })).await;
    for ended in [&first, &second] {
        refresh(&app, &ended.refresh).await.expect(400);
        assert!(!is_signed_in(&app, &ended.access).await);
    }
    refresh(&app, &third.refresh).await.expect(200);
}

const OWN: [&str; 3] = ["/account/me/identities", "/account/me/passkeys", "/account/me/mfa"];

async fn people_of_the_provider_alone_see_and_name_themselves(app: TestApp) {
    let (acme, idp) = (app.workspace("acme").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[acme.id]).await;
    let me = bearer(&app, &tokens(&app, &come(&app, &idp, &connection, BOB).await).await);
    for path in OWN {
        me.get(path).await.expect(200);
    }
    let change = json!({ "firstName": "Gracie", "phoneNumber": "+4930123456" });
    assert_eq!(me.put("/account/me", change.clone()).await.expect(200).text("/firstName"), "Gracie");
    // How they sign in is not the provider's business.
    me.delete("/account/me/mfa").await.error(403, "FORBIDDEN");
    let password = json!({ "current": "violet harbour lamp", "password": "amber lantern quay" });
    me.post("/account/me/password", password).await.error(403, "FORBIDDEN");
    me.post("/account/me/email", json!({ "email": "bobby@acme.example" })).await.expect(200);
    let mut browser = app.browser();
    browser.open(&mailed(&app, "bobby@acme.example").await).await.submit("/auth/login/new-address", &[]).await;
    browser.sees(200, "Your email address has been changed");
    assert_eq!(me.get("/account/me").await.expect(200).text("/email"), "bobby@acme.example");
    app.advance(Duration::from_secs(601)).await;
    let late = me.post("/account/me/email", json!({ "email": "b@acme.example" })).await;
    late.error(401, "REAUTHENTICATION_REQUIRED");
    // Whoever belongs elsewhere too is nobody that the provider could name, or look at.
    app.workspace("bolt").await.add("bobby@acme.example", "MEMBER").await;
    for path in OWN {
        me.get(path).await.error(403, "FORBIDDEN");
    }
    me.put("/account/me", change).await.error(403, "FORBIDDEN");
    me.post("/account/me/email", json!({ "email": "b@acme.example" })).await.error(403, "FORBIDDEN");
}

/// Whoever runs the provider could otherwise ask for a mailbox of theirs, wait until the person belongs to another workspace, and take
/// that over with the link.
async fn an_address_that_a_providers_login_asked_for_is_not_kept_for_later(app: TestApp) {
    let (acme, idp) = (app.workspace("acme").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[acme.id]).await;
    let me = bearer(&app, &tokens(&app, &come(&app, &idp, &connection, BOB).await).await);
    me.post("/account/me/email", json!({ "email": "mallory@evil.example" })).await.expect(200);
    let link = mailed(&app, "mallory@evil.example").await;
    app.workspace("bolt").await.add(BOB, "MEMBER").await;
    app.browser().open(&link).await.submit("/auth/login/new-address", &[]).await.sees(403, "other workspaces");
    assert_eq!(me.get("/account/me").await.expect(200).text("/email"), BOB);
}

/// A browser that has shown Bob's password, on the choice of a workspace.
async fn at_choice(app: &TestApp, email: &str, password: &str) -> Browser {
    let mut browser = app.browser();
    browser.open(&authorize(app, &[])).await.submit("/auth/login", &[("username", email)]).await;
    let by_password = browser.sees(200, "Choose how to sign in").link("Sign in another way");
    browser.open(&by_password).await.submit("/auth/login/password", &[("password", password)]).await;
    browser.sees(200, "Choose a workspace");
    browser
}

async fn the_choice_of_a_closed_workspace_leads_to_its_provider(app: TestApp) {
    let (ada, carl) = (app.owner("ada@acme.example").await, app.owner("carl@bolt.example").await);
    let bob = app.member(BOB, ada.tenant, "MEMBER").await;
    let elsewhere = json!({ "username": BOB, "role": "MEMBER", "muteNotifications": true });
    app.key().in_workspace(carl.tenant).post("/account/tenant/user", elsewhere).await.expect(201);
    app.workspace("own").await.add(BOB, "MEMBER").await;
    let idp = IdentityProvider::new(ISSUER);
    let connection = idp.connect(&app, &[ada.tenant]).await;
    idp.connect(&app, &[carl.tenant]).await;
    set(&app, ada.tenant, json!({ "ssoRequired": true })).await;
    let mut browser = at_choice(&app, BOB, &bob.password).await;
    browser.submit("/auth/login/workspace", &[("member", &bob.member.to_string())]).await;
    let asked = SamlRequest::of(&browser.location);
    assert!(asked.acs.contains(&connection), "{}", asked.acs);
    browser.post(&asked.acs, &idp.answer(&asked, BOB, app.now())).await;
    tokens(&app, &browser).await;
}

async fn a_forced_kind_leads_to_the_persons_connection(app: TestApp) {
    let (ada, carl) = (app.owner("ada@acme.example").await, app.owner("carl@bolt.example").await);
    let idp = IdentityProvider::new(ISSUER);
    let connection = idp.connect(&app, &[ada.tenant]).await;
    idp.connect(&app, &[carl.tenant]).await;
    // Another workspace of theirs, which has no connection, is no way in that the app wants.
    app.workspace("own").await.add(&ada.email, "MEMBER").await;
    let mut browser = app.browser();
    browser.open(&authorize(&app, &[("force_federation", "saml")])).await;
    browser.submit("/auth/login", &[("username", &ada.email)]).await;
    let asked = SamlRequest::of(&browser.location);
    assert!(asked.acs.contains(&connection), "{}", asked.acs);
}

/// The membership that somebody has on the provider's word: its id.
async fn joined(app: &TestApp, workspace: TenantId, email: &str) -> String {
    let users = app.key().in_workspace(workspace).get("/account/tenant/user").await.expect(200).json();
    let found = users.as_array().into_iter().flatten().find(|user| user["email"] == email).expect("a member");
    found["id"].as_str().expect("an id").to_owned()
}

async fn a_workspace_that_was_chosen_has_a_say_from_then_on(app: TestApp) {
    let (acme, idp) = (app.workspace("acme").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[acme.id]).await;
    let dora = app.owner("dora@bolt.example").await;
    come(&app, &idp, &connection, &dora.email).await.answer("code").expect("she joins");
    set(&app, acme.id, json!({ "mfa": true })).await;
    let begun = dora.log_in().await.expect(200);
    assert_eq!(begun.text("/mfaState"), "DISABLED", "a provider's word asks nothing of her other logins");
    let member = joined(&app, acme.id, &dora.email).await;
    let body =
        json!({ "session": begun.text("/session"), "tenantUserId": member, "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/token/direct", body).await.error(401, "MFA_REQUIRED");
    assert_eq!(dora.log_in().await.expect(200).text("/mfaState"), "SETUP", "she has chosen it herself");
}

async fn the_choice_of_a_workspace_that_wants_two_factors_asks_for_them(app: TestApp) {
    let (acme, idp) = (app.workspace("acme").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[acme.id]).await;
    let dora = app.owner("dora@bolt.example").await;
    come(&app, &idp, &connection, &dora.email).await.answer("code").expect("she joins");
    set(&app, acme.id, json!({ "mfa": true })).await;
    let member = joined(&app, acme.id, &dora.email).await;
    let mut browser = at_choice(&app, &dora.email, &dora.password).await;
    browser.submit("/auth/login/workspace", &[("member", &member)]).await;
    let key = choose_app(&mut browser).await;
    let code = shown(&app, &key, 0);
    browser.submit("/auth/login/mfa/setup/finish", &[("code", &code)]).await.sees(200, "Save your backup code");
    browser.submit("/auth/login/mfa/continue", &[]).await.submit("/auth/login/workspace", &[("member", &member)]).await;
    tokens(&app, &browser).await;
}

async fn a_login_that_was_answered_too_late_can_be_started_again(app: TestApp) {
    let (ada, idp) = (app.owner("ada@acme.example").await, IdentityProvider::new(ISSUER));
    let connection = idp.connect(&app, &[ada.tenant]).await;
    let mut browser = app.browser();
    browser.open(&authorize(&app, &[("federation_connection", &connection)])).await;
    let asked = SamlRequest::of(&browser.location);
    app.advance(Duration::from_secs(601)).await;
    browser.post(&asked.acs, &idp.answer(&asked, &ada.email, app.now())).await;
    let again = browser.sees(400, "could not be accepted").link("Back to sign-in");
    browser.open(&again).await;
    let asked = SamlRequest::of(&browser.location);
    let form = idp.answer(&asked, &ada.email, app.now());
    browser.post(&asked.acs, &form).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
    // An outcome that was fetched before.
    browser.post(&asked.acs, &form).await.sees(400, "Back to sign-in");
}
