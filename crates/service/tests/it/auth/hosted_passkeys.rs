//! Passkeys on the hosted pages, which are on https here. The test's browser runs no scripts, so the tests do what the
//! pages' script does, with a software authenticator that was not written here.

use std::{ops::Deref, time::Duration};

use passkey::types::webauthn::{CredentialCreationOptions, CredentialRequestOptions};
use serde_json::{Value, json};
use testkit::{
    Answer, Browser, EngineName, Fixture, Person, TestApp,
    factors::require,
    hosted::{authorize, sign_in},
    on_both_engines,
    passkeys::{Device, without_token},
    tokens::exchange,
};

on_both_engines!(
    a_passkey_is_set_up_by_mail_and_signs_in_with_two_factors,
    the_script_comes_from_here_and_only_where_it_is_needed,
    looking_at_the_pages_changes_nothing,
    an_answer_counts_once_and_for_five_minutes,
    another_origin_gets_nowhere,
    another_apps_passkey_is_not_known,
    switched_off_passkeys_are_not_offered_and_refused,
    a_link_works_once_and_for_an_hour,
    an_app_without_a_callback_still_sets_up_passkeys,
    unknown_addresses_get_the_same_answer,
    links_are_mailed_within_limits,
    forms_of_other_pages_change_nothing,
);

const HERE: &str = "https://login.example";
const SIGN_IN: &str = "/auth/login/passkey";
const OPTIONS: &str = "/auth/login/passkey/options";
const LINK: &str = "/auth/login/passkey-link";
const SETUP: &str = "/auth/login/passkey-setup";
const SETUP_OPTIONS: &str = "/auth/login/passkey-setup/options";

/// A service on https. No app allows its origin.
#[derive(Clone)]
struct Secure(TestApp);

impl Deref for Secure {
    type Target = TestApp;

    fn deref(&self) -> &TestApp {
        &self.0
    }
}

impl Fixture for Secure {
    async fn prepare(engine: EngineName) -> Self {
        Self(TestApp::start_with(engine, |options| options.base_url = HERE.into()).await)
    }

    async fn finish(self) {
        self.0.finish().await;
    }
}

type Fields = Vec<(String, String)>;

fn filled(mut form: Fields, options: &Value, credential: &Value) -> Fields {
    form.retain(|(name, _)| name != "challenge" && name != "credential");
    let challenge = options["sdkChallengeToken"].as_str().expect("a challenge token");
    form.push(("challenge".into(), challenge.into()));
    form.push(("credential".into(), credential.to_string()));
    form
}

/// What a script of the page gets.
async fn fetched(browser: &Browser, address: &str, form: &Fields) -> Answer {
    browser.clone().post(address, form).await.page().clone()
}

/// The form of the page after the ceremony that it is for.
async fn created(browser: &Browser, device: &mut Device, origin: &str) -> Fields {
    let form = browser.form(SETUP);
    let answer = fetched(browser, SETUP_OPTIONS, &form).await.expect(200);
    let options: CredentialCreationOptions = serde_json::from_value(without_token(&answer)).expect("creation options");
    filled(form, &answer.json(), &device.create(origin, options).await)
}

async fn shown(browser: &Browser, device: &mut Device, origin: &str) -> Fields {
    let form = browser.form(SIGN_IN);
    let answer = fetched(browser, OPTIONS, &form).await.expect(200);
    let options: CredentialRequestOptions = serde_json::from_value(without_token(&answer)).expect("request options");
    filled(form, &answer.json(), &device.get(origin, options).await)
}

async fn login_page(app: &TestApp) -> Browser {
    let mut browser = app.browser();
    browser.open(&authorize(app, &[("state", "begun")])).await.sees(200, "Sign in to");
    browser
}

/// The address of a mailed link, as the test's browser knows it.
async fn mailed(app: &TestApp, email: &str) -> String {
    app.drain().await;
    let link = app.mailed_link(email);
    link.strip_prefix(HERE).expect("a link to this service").to_owned()
}

/// A browser that asked for a link and followed it.
async fn followed_link(app: &TestApp, email: &str) -> Browser {
    let mut browser = login_page(app).await;
    let link = browser.link("Set up a passkey");
    browser.open(&link).await.sees(200, "We will email you a link").submit(LINK, &[("username", email)]).await;
    browser.sees(200, "Check your inbox").sees(200, email);
    browser.open(&mailed(app, email).await).await.sees(200, "Set up a passkey");
    browser
}

async fn with_passkey(app: &TestApp, person: &Person) -> Device {
    let (mut browser, mut device) = (followed_link(app, &person.email).await, Device::default());
    let form = created(&browser, &mut device, HERE).await;
    browser.post(SETUP, &form).await.sees(200, "Your passkey is ready");
    device
}

async fn a_passkey_is_set_up_by_mail_and_signs_in_with_two_factors(app: Secure) {
    let ada = app.owner("ada@example.com").await;
    let (mut browser, mut device) = (followed_link(&app, &ada.email).await, Device::default());
    let form = created(&browser, &mut device, HERE).await;
    browser.post(SETUP, &form).await.sees(200, "Your passkey is ready");
    // It signs in right there, and ends where the app had asked for it …
    let form = shown(&browser, &mut device, HERE).await;
    browser.post(SIGN_IN, &form).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
    assert_eq!(browser.answer("state").as_deref(), Some("begun"));
    // … and for an app and a workspace that want two factors.
    require(&app).await;
    app.key().put(&format!("/account/tenant/{}", ada.tenant), json!({ "mfa": true })).await.expect(200);
    let mut browser = app.browser();
    browser.open(&authorize(&app, &[("state", "s"), ("nonce", "n1")])).await;
    let form = shown(&browser, &mut device, HERE).await;
    browser.post(SIGN_IN, &form).await;
    assert_eq!(browser.answer("state").as_deref(), Some("s"));
    assert!(browser.cookies().keys().any(|name| name.starts_with("__Host-tenantry-session-")));
    let tokens = exchange(&app, &browser.answer("code").expect("a code"), None).await.expect(200);
    let claims = testkit::tokens::claims(&tokens.text("/id_token"));
    assert_eq!((claims["nonce"].as_str(), claims["email"].as_str()), (Some("n1"), Some("ada@example.com")));
}

async fn the_script_comes_from_here_and_only_where_it_is_needed(app: Secure) {
    let mut browser = login_page(&app).await;
    let policy = |browser: &Browser| browser.page().header("content-security-policy").expect("a policy").to_owned();
    assert!(policy(&browser).contains("default-src 'none'; script-src 'self'; connect-src 'self'; "));
    let html = browser.html();
    assert_eq!(html.matches("<script").count(), 2);
    for script in ["form", "passkey"] {
        assert!(html.contains(&format!("<script src=\"/cloud-views/{script}.js\" defer></script>")));
    }
    // Hidden until the script has found that the browser knows passkeys; all that it says comes with the page.
    let form = &html[html.find("id=\"passkey\"").expect("a form")..];
    assert!(form[..form.find('>').expect("a tag ends")].ends_with(" hidden"), "{form}");
    assert!(
        form.contains("data-failed=\"Something went wrong.") && form.contains("data-cancelled=\"No passkey was used.")
    );
    browser.submit("/auth/login", &[("username", "ada@example.com")]).await.sees(200, "Password");
    assert!(policy(&browser).contains("script-src 'self'; style-src") && !browser.html().contains("passkey.js"));
    let script = app.anon().get("/cloud-views/passkey.js").await.expect(200);
    assert_eq!(script.header("content-type"), Some("text/javascript; charset=utf-8"));
    assert_eq!(script.header("cache-control"), Some("public, max-age=300"));
    let words = json!({ "Something went wrong. Reload the page and try again.": "Das ging nicht." });
    app.key().post("/cloud-views/brand/translations", words).await.expect(200);
    login_page(&app).await.sees(200, "data-failed=\"Das ging nicht.\"");
}

async fn looking_at_the_pages_changes_nothing(app: Secure) {
    let ada = app.owner("ada@example.com").await;
    let mut browser = followed_link(&app, &ada.email).await;
    browser.sees(200, "<noscript>");
    let (page, mails) = (browser.location.clone(), app.mails().len());
    for _ in 0..2 {
        browser.open(&page).await.sees(200, "Set up a passkey");
        assert!(browser.page().header("content-security-policy").expect("a policy").contains("script-src 'self';"));
        assert_eq!(browser.page().header("referrer-policy"), Some("no-referrer"));
    }
    // Options cost the link nothing either.
    let mut device = Device::default();
    created(&browser, &mut device, HERE).await;
    let form = created(&browser, &mut device, HERE).await;
    browser.post(SETUP, &form).await.sees(200, "Your passkey is ready");
    assert!(!browser.location.contains("token"), "{}", browser.location);
    let ready = browser.location.clone();
    browser.open(&ready).await.sees(200, "Your passkey is ready");
    app.drain().await;
    let subjects: Vec<String> = app.mails()[mails..].iter().map(|mail| mail.subject.clone()).collect();
    assert_eq!(subjects, ["A passkey was added to your My app account"]);
}

async fn an_answer_counts_once_and_for_five_minutes(app: Secure) {
    let ada = app.owner("ada@example.com").await;
    let mut device = with_passkey(&app, &ada).await;
    let mut browser = login_page(&app).await;
    let form = shown(&browser, &mut device, HERE).await;
    let mut again = browser.clone();
    browser.post(SIGN_IN, &form).await;
    assert!(browser.answer("code").is_some());
    // Later than a double click.
    app.advance(Duration::from_secs(31)).await;
    again.post(SIGN_IN, &form).await.sees(401, "This passkey is not registered here");
    assert!(!again.cookies().keys().any(|name| name.contains("-session-")));
    // The page offers to try again.
    let form = shown(&again, &mut device, HERE).await;
    app.advance(Duration::from_secs(301)).await;
    again.post(SIGN_IN, &form).await.sees(401, "role=\"alert\"");
    for credential in ["", "nonsense", "{}", "[]"] {
        let form = filled(form.clone(), &json!({ "sdkChallengeToken": "x" }), &json!(credential));
        again.post(SIGN_IN, &form).await.sees(401, "role=\"alert\"");
    }
    let page = again.location.clone();
    sign_in(again.open(&page).await, &ada).await;
    assert!(again.answer("code").is_some());
}

async fn another_origin_gets_nowhere(app: Secure) {
    let ada = app.owner("ada@example.com").await;
    // The same host, so that the authenticator agrees, but not the same page.
    let elsewhere = "https://login.example:8443";
    app.key().put("/account/app", json!({ "allowedOrigins": [elsewhere] })).await.expect(200);
    let mut browser = followed_link(&app, &ada.email).await;
    let form = created(&browser, &mut Device::default(), elsewhere).await;
    browser.post(SETUP, &form).await.sees(400, "Something went wrong.");
    let mut device = Device::default();
    let form = created(&browser, &mut device, HERE).await;
    browser.post(SETUP, &form).await.sees(200, "Your passkey is ready");
    let mut browser = login_page(&app).await;
    let form = shown(&browser, &mut device, elsewhere).await;
    browser.post(SIGN_IN, &form).await.sees(401, "This passkey is not registered here");
}

async fn another_apps_passkey_is_not_known(app: Secure) {
    let ada = app.owner("ada@example.com").await;
    let mut device = with_passkey(&app, &ada).await;
    let other = app.other_app().await;
    other.put("/account/app", json!({ "defaultCallbackUri": "https://other.example/cb" })).await.expect(200);
    let mut browser = app.browser();
    browser.open(&format!("/auth/url/login/{}", other.app_id())).await.sees(200, "Sign in to");
    let form = shown(&browser, &mut device, HERE).await;
    browser.post(SIGN_IN, &form).await.sees(401, "This passkey is not registered here");
    // Nor does a link of one app set up a passkey at another, or its options come from there.
    let setup = followed_link(&app, &ada.email).await.form(SETUP);
    let token = setup.into_iter().find(|(name, _)| name == "token").expect("the mailed token");
    let crossed = [&browser.form(SIGN_IN)[..2], &[token]].concat();
    fetched(&browser, SETUP_OPTIONS, &crossed).await.error(403, "FORM_REJECTED");
    browser.post(SETUP, &crossed).await.sees(403, "This form has expired");
}

async fn switched_off_passkeys_are_not_offered_and_refused(app: Secure) {
    let ada = app.owner("ada@example.com").await;
    let mut device = with_passkey(&app, &ada).await;
    let (mut browser, mut setting_up) = (login_page(&app).await, followed_link(&app, &ada.email).await);
    let (form, link) = (shown(&browser, &mut device, HERE).await, browser.link("Set up a passkey"));
    let (setup, page) = (created(&setting_up, &mut Device::default(), HERE).await, setting_up.location.clone());
    let mut asking = browser.clone();
    asking.open(&link).await;
    app.key().put("/account/app", json!({ "passkeysEnabled": false })).await.expect(200);
    fetched(&browser, OPTIONS, &form).await.error(403, "LOGIN_METHOD_OFF");
    browser.post(SIGN_IN, &form).await.sees(403, "turned passkeys off");
    browser.open(&link).await.sees(403, "turned passkeys off");
    asking.submit(LINK, &[("username", &ada.email)]).await.sees(403, "turned passkeys off");
    fetched(&setting_up, SETUP_OPTIONS, &setup).await.error(403, "LOGIN_METHOD_OFF");
    setting_up.post(SETUP, &setup).await.sees(403, "turned passkeys off");
    setting_up.open(&page).await.sees(403, "turned passkeys off");
    let browser = login_page(&app).await;
    assert!(!browser.html().contains("passkey"), "{}", browser.html());
}

async fn a_link_works_once_and_for_an_hour(app: Secure) {
    let ada = app.owner("ada@example.com").await;
    let mut browser = followed_link(&app, &ada.email).await;
    let (page, mut device) = (browser.location.clone(), Device::default());
    let (first, second) = (created(&browser, &mut device, HERE).await, created(&browser, &mut device, HERE).await);
    browser.clone().post(SETUP, &first).await.sees(200, "Your passkey is ready");
    browser.post(SETUP, &second).await.sees(404, "This link no longer works");
    let another = browser.link("Request a new link");
    browser.open(&page).await.sees(404, "This link no longer works");
    browser.open(&another).await.submit(LINK, &[("username", "no address")]).await.sees(400, "id=\"username-error\"");
    let mut late = followed_link(&app, &ada.email).await;
    let page = late.location.clone();
    app.advance(Duration::from_secs(3601)).await;
    late.open(&page).await.sees(404, "This link no longer works");
    late.open(&format!("{SETUP}?token=nonsense")).await.sees(404, "This link no longer works");
}

async fn an_app_without_a_callback_still_sets_up_passkeys(app: Secure) {
    let ada = app.owner("ada@example.com").await;
    let mut browser = followed_link(&app, &ada.email).await;
    app.key().put("/account/app", json!({ "defaultCallbackUri": null, "redirectUris": [] })).await.expect(200);
    let page = browser.location.clone();
    browser.open(&page).await.sees(200, "Set up a passkey");
    let form = created(&browser, &mut Device::default(), HERE).await;
    browser.post(SETUP, &form).await.sees(200, "Your passkey is ready");
}

async fn unknown_addresses_get_the_same_answer(app: Secure) {
    app.owner("ada@example.com").await;
    app.drain().await;
    let mails = app.mails().len();
    let mut pages = Vec::new();
    for email in ["ada@example.com", "nobody@example.com"] {
        let mut browser = login_page(&app).await;
        let link = browser.link("Set up a passkey");
        browser.open(&link).await.submit(LINK, &[("username", email)]).await.sees(200, "Check your inbox");
        let html = browser.html().replace(email, "-");
        pages.push(html[..html.find("name=\"r\"").expect("a form")].to_owned());
    }
    assert_eq!(pages[0], pages[1]);
    app.drain().await;
    assert_eq!(app.mails().len(), mails + 1);
}

async fn links_are_mailed_within_limits(app: Secure) {
    let mut browser = login_page(&app).await;
    let link = browser.link("Set up a passkey");
    for _ in 0..10 {
        browser
            .open(&link)
            .await
            .submit(LINK, &[("username", "nobody@example.com")])
            .await
            .sees(200, "Check your inbox");
    }
    browser.open(&link).await.submit(LINK, &[("username", "nobody@example.com")]).await;
    browser.sees(429, "Too many attempts");
}

async fn forms_of_other_pages_change_nothing(app: Secure) {
    let ada = app.owner("ada@example.com").await;
    let mut device = with_passkey(&app, &ada).await;
    let mut setting_up = followed_link(&app, &ada.email).await;
    let (mut second, mails) = (Device::default(), app.mails().len());
    let setup = created(&setting_up, &mut second, HERE).await;
    let mut browser = login_page(&app).await;
    let form = shown(&browser, &mut device, HERE).await;
    let foreign = login_page(&app).await.form("/auth/login").remove(1);
    let with = |form: &Fields, csrf: &str| -> Fields {
        let keep = form.iter().filter(|(name, _)| name != "csrf").cloned();
        keep.chain([("csrf".to_owned(), csrf.to_owned())]).collect()
    };
    let mut link = form.clone();
    link.push(("username".into(), ada.email.clone()));
    for csrf in ["", "nonsense", foreign.1.as_str()] {
        for (action, form) in [(SIGN_IN, &form), (LINK, &link), (SETUP, &setup)] {
            browser.clone().post(action, &with(form, csrf)).await.sees(403, "This form has expired");
        }
        for (action, form) in [(OPTIONS, &form), (SETUP_OPTIONS, &setup)] {
            fetched(&browser, action, &with(form, csrf)).await.error(403, "FORM_REJECTED");
        }
        // From a browser that has been nowhere yet, even what was right elsewhere.
        app.browser().post(SIGN_IN, &form).await.sees(403, "This form has expired");
    }
    app.drain().await;
    assert_eq!(app.mails().len(), mails);
    browser.post(SIGN_IN, &form).await;
    assert!(browser.answer("code").is_some());
    setting_up.post(SETUP, &setup).await.sees(200, "Your passkey is ready");
}
