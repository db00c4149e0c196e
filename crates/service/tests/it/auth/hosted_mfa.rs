//! The hosted pages of the second factor: the challenge, the set-up, and the ways out.

use std::time::Duration;

use serde_json::json;
use testkit::{
    Browser, EngineName, Log, Person, TestApp,
    factors::{PHONE, other, require, shown, sms, with_phone},
    hosted::{authorize, sign_in, signed_in},
    on_both_engines,
    tokens::exchange,
};

on_both_engines!(
    a_phone_is_set_up_while_signing_in,
    an_authenticator_app_is_set_up_while_signing_in,
    a_set_up_under_way_outlasts_its_page,
    a_code_by_sms_is_asked_for,
    a_code_of_the_authenticator_app_is_asked_for,
    somebody_signed_in_steps_up_where_a_workspace_wants_two_factors,
    five_wrong_codes_end_the_login,
    codes_are_sent_again_within_limits,
    the_backup_code_leads_to_a_new_set_up,
    guesses_are_slowed_down_over_logins,
    a_login_that_is_over_leads_to_its_start,
    a_factor_of_another_login_is_not_replaced,
    forms_of_other_pages_change_nothing,
    nothing_secret_is_in_an_address_or_the_log,
);

const MFA: &str = "/auth/login/mfa";
const SETUP: &str = "/auth/login/mfa/setup";
const FINISH: &str = "/auth/login/mfa/setup/finish";
const CONTINUE: &str = "/auth/login/mfa/continue";
const RESEND: &str = "/auth/login/mfa/resend";
const BACKUP: &str = "/auth/login/mfa/backup";

/// Somebody who typed address and password.
async fn typed_password(app: &TestApp, person: &Person) -> Browser {
    let mut browser = app.browser();
    sign_in(browser.open(&authorize(app, &[])).await, person).await;
    browser
}

/// What stands out on the page: a key, or a backup code.
fn highlighted(browser: &Browser) -> String {
    let html = browser.html();
    let start = html.find("class=\"highlight\">").expect("something stands out") + 18;
    html[start..].split('<').next().expect("a paragraph ends").to_owned()
}

/// Chooses the authenticator app; its key.
pub(super) async fn choose_app(browser: &mut Browser) -> String {
    browser.submit(SETUP, &[("method", "totp")]).await.sees(200, "<svg class=\"qr\"");
    highlighted(browser).replace(' ', "")
}

/// Tokens for the code that the app got, with two factors in them.
async fn exchanged(app: &TestApp, browser: &Browser, person: &Person) {
    let tokens = exchange(app, &browser.answer("code").expect("a code"), None).await.expect(200);
    // A workspace that wants two factors takes them.
    let body = json!({ "accessToken": tokens.text("/access_token"), "targetTenantUserId": person.member });
    app.key().put(&format!("/account/tenant/{}", person.tenant), json!({ "mfa": true })).await.expect(200);
    app.anon().post("/auth/token/workspace-switch", body).await.expect(200);
}

/// A person with an authenticator app; its key and the backup code. The code of now is spent.
async fn with_app(app: &TestApp, email: &str) -> (Person, String, String) {
    require(app).await;
    let person = app.owner(email).await;
    let mut browser = typed_password(app, &person).await;
    let key = choose_app(&mut browser).await;
    browser.submit(FINISH, &[("code", &shown(app, &key, 0))]).await.sees(200, "Save your backup code");
    let backup = highlighted(&browser);
    browser.submit(CONTINUE, &[]).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
    (person, key, backup)
}

async fn a_phone_is_set_up_while_signing_in(app: TestApp) {
    require(&app).await;
    let ada = app.owner("ada@example.com").await;
    let mut browser = typed_password(&app, &ada).await;
    browser.sees(200, "Set up two-step verification");
    browser.submit(SETUP, &[("method", "sms"), ("phone", "0170")]).await;
    browser.sees(400, "id=\"phone-error\"").sees(400, "value=\"0170\"");
    browser.submit(SETUP, &[("method", "sms"), ("phone", PHONE)]).await.sees(200, "we sent to •••67");
    let code = sms(&app).await;
    browser.submit(FINISH, &[("code", &other(&code))]).await.sees(401, "id=\"code-error\"").sees(401, "•••67");
    let spaced = format!(" {} {}", &code[..3], &code[3..]);
    browser.submit(FINISH, &[("code", &spaced)]).await.sees(200, "Save your backup code");
    assert!(browser.location.starts_with(SETUP) && !browser.location.contains(&highlighted(&browser)));
    browser.submit(CONTINUE, &[]).await;
    exchanged(&app, &browser, &ada).await;
}

async fn an_authenticator_app_is_set_up_while_signing_in(app: TestApp) {
    require(&app).await;
    let ada = app.owner("ada@example.com").await;
    let mut browser = typed_password(&app, &ada).await;
    let key = choose_app(&mut browser).await;
    assert!(browser.link("Open your authenticator app on this device").contains(&format!("secret={key}")));
    browser.submit(FINISH, &[("code", &shown(&app, &key, 9))]).await.sees(401, "The code is incorrect");
    assert_eq!(highlighted(&browser).replace(' ', ""), key);
    browser.submit(FINISH, &[("code", &shown(&app, &key, 0))]).await.sees(200, "Save your backup code");
    // Sent again, or come back to, the page shows the code until its button is pressed; then the login continues.
    let backup = highlighted(&browser);
    let back = browser.form(CONTINUE);
    let again = [back, vec![("code".into(), shown(&app, &key, 0))]].concat();
    browser.post(FINISH, &again).await.sees(200, &backup);
    browser.submit(CONTINUE, &[]).await;
    assert!(!browser.cookies().keys().any(|name| name.contains("-flash-")), "{:?}", browser.cookies());
    exchanged(&app, &browser, &ada).await;
}

async fn a_set_up_under_way_outlasts_its_page(app: TestApp) {
    require(&app).await;
    let ada = app.owner("ada@example.com").await;
    let mut browser = typed_password(&app, &ada).await;
    let key = choose_app(&mut browser).await;
    let page = browser.location.clone();
    for _ in 0..2 {
        browser.open(&page).await.sees(200, "<svg");
        assert_eq!(highlighted(&browser).replace(' ', ""), key);
    }
    // Looking at the choice changes nothing either.
    let choice = browser.link("Choose another method");
    browser.open(&choice).await.sees(200, "Get codes by SMS").open(&page).await;
    assert_eq!(highlighted(&browser).replace(' ', ""), key);
    browser.open(&choice).await.submit(SETUP, &[("method", "sms"), ("phone", PHONE)]).await.sees(200, "•••67");
    browser.submit(FINISH, &[("code", &sms(&app).await)]).await.sees(200, "Save your backup code");
}

async fn a_code_by_sms_is_asked_for(app: TestApp) {
    let (ada, _) = with_phone(&app, "ada@example.com").await;
    let mut browser = typed_password(&app, &ada).await;
    browser.sees(200, "Enter the code we sent to •••67.").sees(200, "autocomplete=\"one-time-code\"");
    let page = browser.location.clone();
    let (sent, code) = (app.sms().len(), sms(&app).await);
    browser.open(&page).await.sees(200, "•••67");
    assert_eq!((app.sms().len(), sms(&app).await), (sent + 1, code.clone()));
    browser.submit(MFA, &[("code", &other(&code))]).await.sees(401, "id=\"code-error\"");
    browser.submit(MFA, &[("code", &code)]).await;
    exchanged(&app, &browser, &ada).await;
}

async fn a_code_of_the_authenticator_app_is_asked_for(app: TestApp) {
    let (ada, key, _) = with_app(&app, "ada@example.com").await;
    let mut browser = typed_password(&app, &ada).await;
    browser.sees(200, "Enter the code from your authenticator app.");
    assert!(!browser.html().contains(RESEND));
    browser.submit(MFA, &[("code", &shown(&app, &key, 0))]).await.sees(401, "already been used");
    app.advance(Duration::from_secs(30)).await;
    browser.submit(MFA, &[("code", &shown(&app, &key, 0))]).await;
    exchanged(&app, &browser, &ada).await;
}

async fn somebody_signed_in_steps_up_where_a_workspace_wants_two_factors(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut browser = signed_in(&app, &ada).await;
    app.key().put(&format!("/account/tenant/{}", ada.tenant), json!({ "mfa": true })).await.expect(200);
    // A cookie alone does not set a factor up: the password is asked for again.
    sign_in(browser.open(&authorize(&app, &[])).await, &ada).await;
    browser.sees(200, "Set up two-step verification");
    let key = choose_app(&mut browser).await;
    browser.submit(FINISH, &[("code", &shown(&app, &key, 0))]).await.submit(CONTINUE, &[]).await;
    exchanged(&app, &browser, &ada).await;
    browser.open(&authorize(&app, &[("prompt", "none")])).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
}

async fn five_wrong_codes_end_the_login(app: TestApp) {
    let (ada, _) = with_phone(&app, "ada@example.com").await;
    let mut browser = typed_password(&app, &ada).await;
    let (page, code) = (browser.location.clone(), sms(&app).await);
    for _ in 0..4 {
        browser.submit(MFA, &[("code", &other(&code))]).await.sees(401, "Enter the code we sent");
    }
    let form = browser.form(MFA);
    browser.submit(MFA, &[("code", &other(&code))]).await.sees(401, "Session expired");
    browser.open(&page).await.sees(401, "too many incorrect codes");
    let right = [&form[..2], &[("code".to_owned(), code)]].concat();
    browser.post(MFA, &right).await.sees(401, "Session expired");
    let start = browser.link("Back to sign-in");
    sign_in(browser.open(&start).await, &ada).await;
    browser.sees(200, "Enter the code we sent").submit(MFA, &[("code", &sms(&app).await)]).await;
    assert!(browser.answer("code").is_some());
}

async fn codes_are_sent_again_within_limits(app: TestApp) {
    let (ada, _) = with_phone(&app, "ada@example.com").await;
    let mut browser = typed_password(&app, &ada).await;
    let first = sms(&app).await;
    // One for the login; nine more go out. That of the set-up is counted apart.
    for _ in 0..9 {
        browser.submit(RESEND, &[]).await.sees(200, "We have sent a new code.");
    }
    let page = browser.location.clone();
    let last = sms(&app).await;
    assert_eq!(app.sms().len(), 11);
    browser.submit(RESEND, &[]).await.sees(429, "Too many attempts");
    assert!(browser.page().header("retry-after").is_some());
    browser.open(&page).await;
    if first != last {
        browser.submit(MFA, &[("code", &first)]).await.sees(401, "The code is incorrect");
    }
    browser.submit(MFA, &[("code", &last)]).await;
    assert!(browser.answer("code").is_some());
    app.drain().await;
    assert_eq!(app.sms().len(), 11);
}

async fn the_backup_code_leads_to_a_new_set_up(app: TestApp) {
    let (ada, _, backup) = with_app(&app, "ada@example.com").await;
    let mut browser = typed_password(&app, &ada).await;
    let way_out = browser.link("Use your backup code");
    browser.open(&way_out).await.sees(200, "Use your backup code");
    browser.submit(BACKUP, &[("code", "AAAAA-AAAAA-AAAAA-AAAAA")]).await.sees(401, "id=\"code-error\"");
    browser.submit(BACKUP, &[("code", &backup)]).await.sees(200, "Set up two-step verification");
    let key = choose_app(&mut browser).await;
    browser.submit(FINISH, &[("code", &shown(&app, &key, 0))]).await.sees(200, "Save your backup code");
    assert_ne!(highlighted(&browser), backup);
    browser.submit(CONTINUE, &[]).await;
    exchanged(&app, &browser, &ada).await;
    let mut browser = typed_password(&app, &ada).await;
    let way_out = browser.link("Use your backup code");
    browser.open(&way_out).await.submit(BACKUP, &[("code", &backup)]).await.sees(401, "The code is incorrect");
}

async fn guesses_are_slowed_down_over_logins(app: TestApp) {
    let (ada, _) = with_phone(&app, "ada@example.com").await;
    for _ in 0..2 {
        let mut browser = typed_password(&app, &ada).await;
        let wrong = other(&sms(&app).await);
        for _ in 0..5 {
            browser.submit(MFA, &[("code", &wrong)]).await;
        }
    }
    let mut browser = typed_password(&app, &ada).await;
    let page = browser.location.clone();
    let code = sms(&app).await;
    browser.submit(MFA, &[("code", &code)]).await.sees(429, "Too many attempts");
    // The backup code is a way out all the same.
    let mut lost = browser.clone();
    lost.open(&page.replace(MFA, BACKUP)).await.submit(BACKUP, &[("code", "AAAAA-AAAAA-AAAAA-AAAAA")]).await;
    lost.sees(401, "id=\"code-error\"");
    app.advance(Duration::from_secs(3_601)).await;
    let mut browser = typed_password(&app, &ada).await;
    browser.submit(MFA, &[("code", &sms(&app).await)]).await;
    assert!(browser.answer("code").is_some());
}

async fn a_login_that_is_over_leads_to_its_start(app: TestApp) {
    let (ada, _) = with_phone(&app, "ada@example.com").await;
    let mut browser = typed_password(&app, &ada).await;
    let page = browser.location.clone();
    let way_out = browser.link("Use your backup code");
    // Another browser has no such login.
    app.browser().open(&page).await.sees(401, "Session expired");
    app.advance(Duration::from_secs(601)).await;
    browser.submit(MFA, &[("code", "123456")]).await.sees(401, "Session expired");
    for address in [&page, &way_out, &page.replace(MFA, SETUP)] {
        browser.open(address).await.sees(401, "Session expired");
    }
    // Nor has one that has finished it.
    let mut browser = typed_password(&app, &ada).await;
    let page = browser.location.clone();
    browser.submit(MFA, &[("code", &sms(&app).await)]).await;
    assert!(browser.answer("code").is_some());
    browser.open(&page).await.sees(401, "Session expired");
}

async fn a_factor_of_another_login_is_not_replaced(app: TestApp) {
    require(&app).await;
    let ada = app.owner("ada@example.com").await;
    let (mut thief, mut hers) = (typed_password(&app, &ada).await, typed_password(&app, &ada).await);
    let stolen = choose_app(&mut thief).await;
    let key = choose_app(&mut hers).await;
    hers.submit(FINISH, &[("code", &shown(&app, &key, 0))]).await.submit(CONTINUE, &[]).await;
    assert!(hers.answer("code").is_some());
    let page = thief.location.clone();
    thief.submit(FINISH, &[("code", &shown(&app, &stolen, 0))]).await.sees(401, "Session expired");
    let choice = format!("{page}&choose=1");
    thief.open(&choice).await.submit(SETUP, &[("method", "totp")]).await.sees(401, "Session expired");
}

async fn forms_of_other_pages_change_nothing(app: TestApp) {
    let (ada, backup) = with_phone(&app, "ada@example.com").await;
    let mut browser = typed_password(&app, &ada).await;
    let (page, code, sent) = (browser.location.clone(), sms(&app).await, app.sms().len());
    let own = browser.form(MFA);
    let value = |name: &str| own.iter().find(|(known, _)| known == name).expect("a hidden field").1.clone();
    let mut stranger = app.browser();
    let foreign = stranger.open(&authorize(&app, &[])).await.form("/auth/login");
    let foreign = foreign.iter().find(|(name, _)| name == "csrf").expect("a hidden field").1.clone();
    for csrf in [String::new(), "nonsense".to_owned(), foreign] {
        for (action, name, typed) in [
            (MFA, "code", code.as_str()),
            (RESEND, "", ""),
            (BACKUP, "code", backup.as_str()),
            (SETUP, "method", "totp"),
            (FINISH, "code", code.as_str()),
            (CONTINUE, "", ""),
        ] {
            let form = [("r", value("r")), ("csrf", csrf.clone()), (name, typed.to_owned())];
            let form: Vec<(String, String)> = form.map(|(name, value)| (name.to_owned(), value)).into();
            browser.post(action, &form).await.sees(403, "This form has expired");
        }
    }
    app.drain().await;
    assert_eq!(app.sms().len(), sent);
    // Nothing was counted, and code and factor are as before.
    browser.open(&page).await.submit(MFA, &[("code", &code)]).await;
    assert!(browser.answer("code").is_some());
}

async fn nothing_secret_is_in_an_address_or_the_log(engine: EngineName) {
    let log = Log::of_this_process();
    let app = TestApp::start(engine).await;
    require(&app).await;
    let ada = app.owner("ada@example.com").await;
    let mut browser = typed_password(&app, &ada).await;
    let key = choose_app(&mut browser).await;
    let policy = browser.page().header("content-security-policy").expect("a policy").to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
    assert_eq!(browser.page().header("cache-control"), Some("no-store"));
    assert_eq!(browser.page().header("referrer-policy"), Some("no-referrer"));
    let code = shown(&app, &key, 0);
    let mut addresses = vec![browser.location.clone()];
    browser.submit(FINISH, &[("code", &code)]).await;
    let backup = highlighted(&browser);
    assert_eq!(browser.page().header("cache-control"), Some("no-store"));
    addresses.push(browser.location.clone());
    browser.submit(CONTINUE, &[]).await;
    addresses.push(browser.location.clone());
    let logged = log.text();
    assert!(logged.contains(FINISH));
    for secret in [&key, &backup] {
        assert!(!addresses.iter().any(|address| address.contains(secret.as_str())), "{addresses:?}");
        assert_eq!(logged.lines().find(|line| line.contains(secret.as_str())), None);
    }
    app.service().close().await;
}
