//! The hosted login, sign-up and password pages, as somebody without scripts walks through them.

use std::time::Duration;

use identity::login::credentials;
use kernel::TenantId;
use serde_json::{Value, json};
use testkit::{
    Browser, Person, TestApp,
    hosted::{at_password, authorize, mailed, sign_in},
    on_both_engines,
    tokens::{CHALLENGE, REDIRECT, VERIFIER, claims, exchange},
};

on_both_engines!(
    a_mailed_link_signs_in_and_answers_the_app,
    a_link_of_the_json_flow_leads_to_the_apps_own_start,
    a_link_works_once_and_for_its_time,
    links_are_nothing_to_other_pages_and_apps,
    an_app_without_an_address_says_so,
    a_link_of_an_app_that_requires_pkce_leads_to_the_app,
    a_forgotten_password_is_replaced_and_signs_in,
    weak_passwords_come_back_to_their_field,
    an_invitation_leads_to_a_password_and_the_app,
    an_invitation_of_somebody_known_asks_for_no_password,
    signing_up_makes_a_workspace_and_signs_in,
    a_free_plan_is_given_and_a_paid_one_remembered,
    signing_up_can_be_off_and_names_are_needed,
    a_link_still_asks_for_the_second_factor,
    somebody_with_several_workspaces_chooses_after_a_link,
    the_pages_tell_nobody_who_has_an_account,
    mails_to_one_address_are_limited,
    switched_off_links_are_refused,
    expired_and_ended_sign_ins_are_swept,
);

/// Who the code in the browser's address signs in, as the access token tells.
async fn who(app: &TestApp, browser: &Browser) -> Value {
    let code = browser.answer("code").unwrap_or_else(|| panic!("no code in {}", browser.location));
    claims(&exchange(app, &code, None).await.expect(200).text("/access_token"))
}

async fn ask_for_link(app: &TestApp, email: &str, asked: &[(&str, &str)]) -> String {
    let mut browser = at_password(app, email, asked).await;
    browser.submit("/auth/login/send-link", &[]).await.sees(200, "Check your inbox").sees(200, email);
    mailed(app, email).await
}

async fn a_mailed_link_signs_in_and_answers_the_app(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let asked =
        [("code_challenge", CHALLENGE), ("code_challenge_method", "S256"), ("state", "a b&c"), ("nonce", "n-0S6")];
    let link = ask_for_link(&app, &ada.email, &asked).await;
    // Whoever looks at it, such as a mail scanner, changes nothing.
    for _ in 0..3 {
        let mut scanner = app.browser();
        scanner.open(&link).await.sees(200, "ada@customer.example").sees(200, "Sign in to");
        assert!(!scanner.cookies().keys().any(|name| name.contains("session") || name.contains("login")));
    }
    let mut browser = app.browser();
    browser.open(&link).await.submit("/auth/login/magic-link", &[]).await;
    assert!(browser.location.starts_with(&format!("{REDIRECT}?code=")), "{}", browser.location);
    assert_eq!(browser.answer("state").as_deref(), Some("a b&c"));
    let code = browser.answer("code").expect("a code");
    exchange(&app, &code, None).await.expect(400);
    let tokens = exchange(&app, &code, Some(VERIFIER)).await.expect(200);
    assert_eq!(claims(&tokens.text("/id_token"))["nonce"], "n-0S6");
    assert_eq!(claims(&tokens.text("/access_token"))["sub"], json!(ada.user));
    // The browser is signed in from now on.
    browser.open(&authorize(&app, &[])).await;
    assert!(browser.answer("code").is_some());
}

async fn a_link_of_the_json_flow_leads_to_the_apps_own_start(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let body = json!({ "username": ada.email, "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/magic-link", body).await.expect(200);
    let mut browser = app.browser();
    browser.open(&mailed(&app, &ada.email).await).await.submit("/auth/login/magic-link", &[]).await;
    assert!(browser.location.starts_with(&format!("{REDIRECT}?code=")), "{}", browser.location);
    assert_eq!(browser.answer("state"), None);
    assert_eq!(who(&app, &browser).await["sub"], json!(ada.user));
}

async fn a_link_works_once_and_for_its_time(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let over = "This link no longer works";
    let first = ask_for_link(&app, &ada.email, &[]).await;
    let mut late = app.browser();
    late.open(&first).await.sees(200, "Sign in");
    let second = ask_for_link(&app, &ada.email, &[]).await;
    // Asking for another one voids none; using one voids all.
    late.clone().open(&first).await.sees(200, "Sign in");
    let mut browser = app.browser();
    browser.open(&second).await.submit("/auth/login/magic-link", &[]).await;
    assert!(browser.answer("code").is_some());
    app.browser().open(&second).await.sees(404, over);
    late.submit("/auth/login/magic-link", &[]).await.sees(404, over);
    // The page knows its app, and the way to a new link.
    late.open(&late.link("Sign in")).await.sees(200, "Sign in to");
    let third = ask_for_link(&app, &ada.email, &[]).await;
    app.advance(Duration::from_secs(15 * 60)).await;
    app.browser().open(&third).await.sees(404, over);

    for (path, hours, mail) in [("/auth/login/forgot", 1, "username"), ("/auth/login/signup", 24, "email")] {
        let email = if mail == "email" { "new@customer.example" } else { "ada@customer.example" };
        let mut browser = at_password(&app, email, &[]).await;
        browser.open(&browser.location.replace("/auth/login/password", path)).await;
        browser.submit(path, &[(mail, email), ("first_name", "New")]).await.sees(200, "Check your inbox");
        let link = mailed(&app, email).await;
        app.advance(Duration::from_secs(hours * 3600 - 10)).await;
        let mut browser = app.browser();
        browser.open(&link).await.sees(200, "Set password");
        app.advance(Duration::from_secs(10)).await;
        let chosen = [("password", "violet harbour lamb")];
        browser.submit("/auth/login/set-password", &chosen).await.sees(404, over);
        app.browser().open(&link).await.sees(404, over);
    }
}

async fn links_are_nothing_to_other_pages_and_apps(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let link = ask_for_link(&app, &ada.email, &[]).await;
    let mut browser = app.browser();
    browser.open(&link.replace("magic-link", "set-password")).await.sees(404, "This link no longer works");
    let mut forgot = at_password(&app, &ada.email, &[]).await;
    forgot.open(&forgot.link("Forgot your password?")).await.submit("/auth/login/forgot", &[]).await;
    let reset = mailed(&app, &ada.email).await;
    browser.open(&reset.replace("set-password", "magic-link")).await.sees(404, "This link no longer works");
    for token in ["", "x", "%0d%0alocation:%20https://evil.example"] {
        for page in ["magic-link", "set-password"] {
            browser.open(&format!("/auth/login/{page}?token={token}")).await.sees(404, "This link no longer works");
        }
    }
    // A link of another app signs in there, and nowhere else.
    let other = app.other_app().await;
    other.put("/account/app", json!({ "defaultCallbackUri": "https://other.example/cb" })).await.expect(200);
    let owner = json!({ "email": "eve@other.example", "firstName": "Eve", "lastName": "E" });
    other.post("/account/tenant", json!({ "owner": owner, "name": "Other" })).await.expect(200);
    let mut eve = app.browser();
    eve.open(&mailed(&app, "eve@other.example").await).await;
    eve.submit("/auth/login/set-password", &[("password", "violet harbour lamb")]).await;
    assert!(eve.location.starts_with("https://other.example/cb?code="), "{}", eve.location);
    exchange(&app, &eve.answer("code").expect("a code"), None).await.expect(400);
}

async fn an_app_without_an_address_says_so(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let none = json!({ "redirectUris": [], "defaultCallbackUri": null, "uiUrl": "http://localhost:3000" });
    app.key().put("/account/app", none).await.expect(200);
    let body = json!({ "username": ada.email, "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/magic-link", body.clone()).await.expect(200);
    let mut browser = app.browser();
    browser.open(&mailed(&app, &ada.email).await).await.sees(200, "You cannot sign in here");
    assert!(!browser.html().contains("<form"));
    browser.sees(200, "href=\"http://localhost:3000\"");
    // A password can be set all the same.
    app.page().post("/auth/auth/password", body).await.expect(200);
    browser.open(&mailed(&app, &ada.email).await).await;
    browser.submit("/auth/login/set-password", &[("password", "violet harbour lamb")]).await;
    browser.sees(200, "Your password has been set").sees(200, "href=\"http://localhost:3000\"");
    ada.log_in().await.error(401, "INVALID_CREDENTIAL");
    let mut changed = ada;
    changed.password = "violet harbour lamb".into();
    changed.log_in().await.expect(200);
}

async fn a_link_of_an_app_that_requires_pkce_leads_to_the_app(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    app.key().put("/account/app", json!({ "requirePkce": true, "uiUrl": "http://localhost:3000" })).await.expect(200);
    let body = json!({ "username": ada.email, "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/magic-link", body).await.expect(200);
    let (mut browser, link) = (app.browser(), mailed(&app, &ada.email).await);
    browser.open(&link).await.sees(200, "You cannot sign in here").sees(200, "href=\"http://localhost:3000\"");
    app.advance(Duration::from_secs(901)).await;
    browser.open(&link).await.sees(404, "no longer works").sees(404, "href=\"http://localhost:3000\"");
}

async fn a_forgotten_password_is_replaced_and_signs_in(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let elsewhere = ada.sign_in().await;
    let mut browser = at_password(&app, &ada.email, &[("state", "s1")]).await;
    browser.open(&browser.link("Forgot your password?")).await.sees(200, "value=\"ada@customer.example\"");
    browser.submit("/auth/login/forgot", &[("username", "not an address")]).await.sees(400, "username-error");
    browser.submit("/auth/login/forgot", &[("username", " ADA@customer.example ")]).await.sees(200, "Check your inbox");
    let link = mailed(&app, &ada.email).await;
    for _ in 0..2 {
        app.browser().open(&link).await.sees(200, "Choose a new password").sees(200, "ada@customer.example");
    }
    ada.log_in().await.expect(200);
    let mut browser = app.browser();
    browser.open(&link).await;
    browser.submit("/auth/login/set-password", &[("password", "violet harbour lamb")]).await;
    assert_eq!(browser.answer("state").as_deref(), Some("s1"));
    assert_eq!(who(&app, &browser).await["sub"], json!(ada.user));
    ada.log_in().await.error(401, "INVALID_CREDENTIAL");
    testkit::tokens::refresh(&app, &elsewhere.refresh).await.expect(400);
    app.browser().open(&link).await.sees(404, "no longer works").sees(404, "Request a new link");
}

async fn weak_passwords_come_back_to_their_field(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let mut browser = at_password(&app, &ada.email, &[]).await;
    browser.open(&browser.link("Forgot your password?")).await.submit("/auth/login/forgot", &[]).await;
    browser.open(&mailed(&app, &ada.email).await).await;
    for (weak, why) in [
        ("", "Password must have at least 8 characters"),
        ("lamp", "Password must have at least 8 characters"),
        ("password1", "Password is too easy to guess"),
        ("ada@customer.example", "Password is too easy to guess"),
    ] {
        browser.submit("/auth/login/set-password", &[("password", weak)]).await.sees(400, why);
        browser.sees(400, "aria-describedby=\"password-hint password-error\" aria-invalid=\"true\"");
        assert!(!browser.html().contains(&format!("type=\"password\" value=\"{weak}\"")) || weak.is_empty());
    }
    browser.submit("/auth/login/set-password", &[("password", "violet harbour lamb")]).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
}

async fn an_invitation_leads_to_a_password_and_the_app(app: TestApp) {
    let acme = app.workspace("acme").await;
    let body = json!({ "username": "bob@customer.example", "role": "MEMBER" });
    acme.key().post("/account/tenant/user", body).await.expect(201);
    let mut browser = app.browser();
    browser.open(&mailed(&app, "bob@customer.example").await).await.sees(200, "Welcome to");
    assert!(!browser.html().contains("name=\"workspace\""));
    browser.submit("/auth/login/set-password", &[("password", "violet harbour lamb")]).await;
    assert!(browser.location.starts_with(&format!("{REDIRECT}?code=")), "{}", browser.location);
    let claims = who(&app, &browser).await;
    assert_eq!((&claims["tid"], &claims["role"]), (&json!(acme.id), &json!("MEMBER")));
}

async fn an_invitation_of_somebody_known_asks_for_no_password(app: TestApp) {
    let (acme, bob) = (app.workspace("acme").await, "bob@customer.example");
    let user = acme.key().post("/account/tenant/user", json!({ "username": bob })).await.expect(201).text("/userId");
    // He has a password from elsewhere, and was not asked for his address yet.
    let (service, user, id) = (app.service(), user.parse().expect("an id"), app.app_id());
    let tenancy = service.core().tenancy.clone();
    let set = service.core().db.write(move |tx| credentials::set(tx, &tenancy, id, user, "a digest"));
    set.await.expect("he has a password");
    let mut browser = app.browser();
    browser.open(&mailed(&app, bob).await).await.sees(200, "You already have an account");
    assert!(!browser.html().contains("<form"));
    let sign_in = browser.link("Sign in");
    browser.open(&sign_in).await.sees(200, "Sign in to");
}

/// Signs up on the hosted pages, as far as the form behind the link.
async fn sign_up(app: &TestApp, email: &str, start: &str) -> Browser {
    let mut browser = app.browser();
    browser.open(start).await.sees(200, "Sign up for");
    let typed = [("first_name", "Grace"), ("last_name", "Hopper"), ("email", email)];
    browser.submit("/auth/login/signup", &typed).await.sees(200, "Check your inbox").sees(200, email);
    let mut browser = app.browser();
    browser.open(&mailed(app, email).await).await.sees(200, "Welcome to");
    browser
}

async fn tenant(app: &TestApp, id: &Value) -> Value {
    let id: TenantId = id.as_str().and_then(|id| id.parse().ok()).expect("a workspace");
    app.key().get(&format!("/account/tenant/byId/{id}")).await.expect(200).json()
}

async fn signing_up_makes_a_workspace_and_signs_in(app: TestApp) {
    let legal =
        json!({ "privacyPolicyUrl": "https://a.example/privacy", "termsOfServiceUrl": "https://a.example/terms" });
    app.key().put("/account/app", legal).await.expect(200);
    let mut page = app.browser();
    page.open(&authorize(&app, &[])).await;
    page.open(&page.link("Create an account")).await;
    assert_eq!(page.link("Privacy policy"), "https://a.example/privacy");
    assert_eq!(page.link("Terms of service"), "https://a.example/terms");
    page.open(&page.link("Sign in")).await.sees(200, "Sign in to");

    let start = authorize(&app, &[("signup", "true"), ("state", "s")]);
    let mut browser = sign_up(&app, "grace@customer.example", &start).await;
    browser.sees(200, "value=\"Grace Hopper\"");
    let nameless = [("password", "violet harbour lamp"), ("workspace", " ")];
    browser.submit("/auth/login/set-password", &nameless).await.sees(400, "Workspace name must not be empty");
    let chosen = [("password", "violet harbour lamp"), ("workspace", " Navy <R&D> ")];
    browser.submit("/auth/login/set-password", &chosen).await;
    assert_eq!(browser.answer("state").as_deref(), Some("s"));
    let claims = who(&app, &browser).await;
    assert_eq!((&claims["email"], &claims["role"]), (&json!("grace@customer.example"), &json!("OWNER")));
    let made = tenant(&app, &claims["tid"]).await;
    assert_eq!((&made["name"], &made["metadata"]), (&json!("Navy <R&D>"), &json!({})));
    assert_eq!(made["signupBy"]["firstName"], "Grace");

    // B2C skips the name.
    app.key().put("/account/app", json!({ "onboardingFlow": "B2C" })).await.expect(200);
    let mut browser = sign_up(&app, "amazing@customer.example", &start).await;
    assert!(!browser.html().contains("name=\"workspace\""));
    let chosen = [("password", "violet harbour lamp"), ("workspace", "Not asked")];
    browser.submit("/auth/login/set-password", &chosen).await;
    assert_eq!(tenant(&app, &who(&app, &browser).await["tid"]).await["name"], "Grace Hopper");
}

async fn a_free_plan_is_given_and_a_paid_one_remembered(app: TestApp) {
    let price = |amount: f64| json!([{ "amount": amount, "currency": "EUR", "recurrenceInterval": "month" }]);
    for (key, amount) in [("gratis", 0.0), ("gold", 99.0)] {
        let plan = json!({ "name": key, "key": key, "prices": price(amount) });
        app.key().post("/account/payments/plan", plan).await.expect(200);
    }
    let start = |plan: &str| {
        let id = app.app_id();
        format!("/auth/url/signup/{id}?signupPlan={plan}&signupCurrency=EUR&signupRecurrenceInterval=month")
    };
    for (plan, given, kept) in [
        ("gratis", json!("gratis"), json!({})),
        ("gold", Value::Null, json!({ "plan": "gold", "currency": "EUR", "recurrenceInterval": "month" })),
    ] {
        let email = format!("{plan}@customer.example");
        let mut browser = sign_up(&app, &email, &start(plan)).await;
        browser.submit("/auth/login/set-password", &[("password", "violet harbour lamp")]).await;
        let made = tenant(&app, &who(&app, &browser).await["tid"]).await;
        assert_eq!(made["plan"], given);
        assert_eq!(made["paymentStatus"]["shouldSelectPlan"], json!(given.is_null()));
        assert_eq!(made["metadata"].get("signup").cloned().unwrap_or_else(|| json!({})), kept);
    }
}

async fn signing_up_can_be_off_and_names_are_needed(app: TestApp) {
    let mut browser = app.browser();
    browser.open(&format!("/auth/url/signup/{}", app.app_id())).await.sees(200, "Sign up for");
    let page = browser.location.clone();
    browser.submit("/auth/login/signup", &[("email", "nonsense"), ("first_name", " ")]).await;
    browser.sees(400, "id=\"email-error\"").sees(400, "id=\"first_name-error\"").sees(400, "value=\"nonsense\"");
    app.key().put("/account/app", json!({ "tenantSelfSignup": false })).await.expect(200);
    let typed = [("email", "new@customer.example"), ("first_name", "New")];
    browser.submit("/auth/login/signup", &typed).await.sees(403, "not allow self-service sign-up");
    browser.open(&page).await.sees(403, "not allow self-service sign-up");
    browser.open(&format!("/auth/url/signup/{}", app.app_id())).await;
    assert_eq!(browser.answer("error").as_deref(), Some("access_denied"));
    browser.open(&authorize(&app, &[])).await.sees(200, "Sign in to");
    assert!(!browser.html().contains("Create an account"));
    app.drain().await;
    assert!(app.mails().is_empty());
}

async fn a_link_still_asks_for_the_second_factor(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    app.key().put("/account/app", json!({ "mfaEnabled": true })).await.expect(200);
    let mut browser = app.browser();
    browser.open(&ask_for_link(&app, &ada.email, &[]).await).await.submit("/auth/login/magic-link", &[]).await;
    assert!(browser.location.contains("/auth/login/mfa/setup?r="), "{}", browser.location);
    let mut browser = at_password(&app, &ada.email, &[]).await;
    browser.open(&browser.link("Forgot your password?")).await.submit("/auth/login/forgot", &[]).await;
    browser.open(&mailed(&app, &ada.email).await).await;
    browser.submit("/auth/login/set-password", &[("password", "violet harbour lamb")]).await;
    assert!(browser.location.contains("/auth/login/mfa/setup?r="), "{}", browser.location);
}

async fn somebody_with_several_workspaces_chooses_after_a_link(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let other = app.workspace("Other").await;
    other.add("ada@customer.example", "MEMBER").await;
    let mut browser = app.browser();
    browser.open(&ask_for_link(&app, &ada.email, &[]).await).await.submit("/auth/login/magic-link", &[]).await;
    browser.sees(200, "Choose a workspace");
    browser.submit("/auth/login/workspace", &[("member", &ada.member.to_string())]).await;
    assert_eq!(who(&app, &browser).await["tid"], json!(ada.tenant));
}

/// The page without what belongs to this request and address alone.
fn anonymous(browser: &Browser, email: &str) -> String {
    let page = browser.html().replace(email, "EMAIL");
    let mut text = String::new();
    let mut rest = page.as_str();
    while let Some((before, after)) = rest.split_once("?r=") {
        text.push_str(before);
        rest = after.split_once('"').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let hidden = |line: &&str| !line.contains("type=\"hidden\"");
    text.lines().filter(hidden).collect::<Vec<_>>().join("\n")
}

async fn the_pages_tell_nobody_who_has_an_account(app: TestApp) {
    app.owner("ada@customer.example").await;
    let mut seen = Vec::new();
    for email in ["ada@customer.example", "nobody@customer.example"] {
        let mut pages = Vec::new();
        let mut browser = at_password(&app, email, &[]).await;
        pages.push((browser.page().status(), anonymous(&browser, email)));
        browser
            .clone()
            .submit("/auth/login/password", &[("password", "wrong")])
            .await
            .sees(401, "Incorrect email address or password.");
        let mut link = browser.clone();
        link.submit("/auth/login/send-link", &[]).await;
        pages.push((link.page().status(), anonymous(&link, email)));
        browser.open(&browser.link("Forgot your password?")).await.submit("/auth/login/forgot", &[]).await;
        pages.push((browser.page().status(), anonymous(&browser, email)));
        browser.open(&format!("/auth/url/signup/{}", app.app_id())).await;
        browser.submit("/auth/login/signup", &[("email", email), ("first_name", "A")]).await;
        pages.push((browser.page().status(), anonymous(&browser, email)));
        seen.push(pages);
    }
    assert_eq!(seen[0], seen[1]);
    app.drain().await;
    let to_nobody: Vec<String> =
        app.mails().into_iter().filter(|mail| mail.to.contains("nobody")).map(|mail| mail.subject).collect();
    assert_eq!(to_nobody.len(), 1, "an unknown address gets the mail of the sign-up alone: {to_nobody:?}");
}

async fn mails_to_one_address_are_limited(app: TestApp) {
    app.owner("ada@customer.example").await;
    for email in ["ada@customer.example", "nobody@customer.example"] {
        let mut browser = at_password(&app, email, &[]).await;
        let password = browser.location.clone();
        browser.open(&password).await;
        // The page that says so offers to send it again.
        for _ in 0..10 {
            browser.submit("/auth/login/send-link", &[]).await.sees(200, "Check your inbox");
        }
        let mut forgot = browser.clone();
        browser.submit("/auth/login/send-link", &[]).await.sees(429, "Too many attempts");
        assert!(browser.page().header("retry-after").is_some());
        assert!(browser.location.starts_with("/auth/login/wait?"), "no page of its own: {}", browser.location);
        forgot.open(&password).await;
        forgot.open(&forgot.link("Forgot your password?")).await;
        forgot.submit("/auth/login/forgot", &[]).await.sees(429, "Too many attempts");
        forgot.open(&format!("/auth/url/signup/{}", app.app_id())).await;
        forgot
            .submit("/auth/login/signup", &[("email", email), ("first_name", "A")])
            .await
            .sees(429, "Too many attempts");
    }
}

async fn switched_off_links_are_refused(app: TestApp) {
    let ada = app.owner("ada@customer.example").await;
    let link = ask_for_link(&app, &ada.email, &[]).await;
    let (mut asking, mut following) = (at_password(&app, &ada.email, &[]).await, app.browser());
    following.open(&link).await;
    app.key().put("/account/app", json!({ "magicLinkEnabled": false })).await.expect(200);
    let mails = app.mails().len();
    asking.submit("/auth/login/send-link", &[]).await.sees(403, "turned magic links off");
    following.submit("/auth/login/magic-link", &[]).await.sees(403, "turned magic links off");
    following.open(&link).await.sees(403, "turned magic links off");
    let page = at_password(&app, &ada.email, &[]).await;
    assert!(!page.html().contains("/auth/login/send-link"));
    app.drain().await;
    assert_eq!(app.mails().len(), mails);
    // Nothing was used up.
    app.key().put("/account/app", json!({ "magicLinkEnabled": true })).await.expect(200);
    following.open(&link).await.submit("/auth/login/magic-link", &[]).await;
    assert!(following.answer("code").is_some(), "{}", following.location);
}

async fn sign_ins(app: &TestApp) -> i64 {
    let count = app.service().core().db.read(|tx| tx.one("SELECT count(*) FROM browser_sessions", &[])).await;
    let (count,): (i64,) = count.expect("a count");
    count
}

async fn expired_and_ended_sign_ins_are_swept(app: TestApp) {
    let (ada, bob) = (app.owner("ada@customer.example").await, app.owner("bob@customer.example").await);
    let signed_in = |person: Person| {
        let app = app.clone();
        async move {
            let mut browser = app.browser();
            sign_in(browser.open(&authorize(&app, &[])).await, &person).await;
            browser
        }
    };
    let mut browser = signed_in(ada.clone()).await;
    browser.open(&format!("/auth/url/logout/{}", app.app_id())).await;
    assert_eq!(sign_ins(&app).await, 1);
    app.advance(Duration::from_secs(2 * 3600)).await;
    assert_eq!(sign_ins(&app).await, 0, "what was ended is swept");
    signed_in(ada.clone()).await;
    app.advance(Duration::from_secs(604_800 + 2 * 3600)).await;
    assert_eq!(sign_ins(&app).await, 0, "what has expired is swept");
    signed_in(ada.clone()).await;
    signed_in(bob.clone()).await;
    let deleter = app.key_with(&["TENANT_DELETE"]).await;
    deleter.delete(&format!("/account/tenant/{}", ada.tenant)).await.expect(200);
    app.drain().await;
    assert_eq!(sign_ins(&app).await, 1, "what belonged to gone people goes");
    app.operator().delete(&format!("/admin/apps/{}", app.app_id())).await.expect(200);
    app.drain().await;
    assert_eq!(sign_ins(&app).await, 0, "what belonged to a gone app goes");
}
