//! A double click, a slow line and the Back button on the hosted pages: a form that is sent again continues like the first.

use std::time::Duration;

use futures_util::future::join;
use serde_json::json;
use testkit::{
    Browser, TestApp, factors,
    hosted::{at_password, authorize, mailed, sign_in},
    on_both_engines,
};

on_both_engines!(
    a_magic_link_clicked_twice_signs_in,
    a_password_set_twice_signs_in,
    a_sign_up_sent_and_finished_twice_makes_one_workspace,
    a_code_sent_twice_counts_once,
    a_workspace_chosen_twice_is_chosen,
    a_mail_is_sent_once,
    a_form_is_dealt_with_although_nobody_waits,
    another_browser_is_not_answered_alike,
    no_answer_to_a_form_is_a_page,
);

/// Sends the page's form twice, as a double click does; what both times led to is the same.
async fn twice(browser: &mut Browser, action: &str, fields: &[(&str, &str)]) {
    let (mut first, mut second, mut late) = (browser.clone(), browser.clone(), browser.clone());
    join(first.submit(action, fields), second.submit(action, fields)).await;
    // And once more, with the cookies from before.
    late.submit(action, fields).await;
    for other in [&second, &late] {
        assert_eq!(first.location.split('?').next(), other.location.split('?').next(), "{}", other.html());
        if first.location.starts_with("http://localhost:3000") {
            assert_eq!(first.answer("code"), other.answer("code"));
        }
    }
    *browser = late;
}

async fn a_magic_link_clicked_twice_signs_in(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut browser = at_password(&app, &ada.email, &[]).await;
    twice(&mut browser, "/auth/login/send-link", &[]).await;
    browser.sees(200, "Check your inbox").open(&mailed(&app, &ada.email).await).await;
    twice(&mut browser, "/auth/login/magic-link", &[]).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
}

async fn a_password_set_twice_signs_in(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let body = json!({ "username": ada.email, "appId": app.app_id(), "mode": "sdk" });
    app.page().post("/auth/auth/password", body).await.expect(200);
    let mut browser = app.browser();
    browser.open(&mailed(&app, &ada.email).await).await;
    twice(&mut browser, "/auth/login/set-password", &[("password", "violet harbour lamb")]).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
    // Later it is another attempt, and the link is used.
    let mut later = app.browser();
    later.open(&mailed(&app, &ada.email).await).await.sees(404, "This link no longer works");
}

async fn a_sign_up_sent_and_finished_twice_makes_one_workspace(app: TestApp) {
    let mut browser = app.browser();
    browser.open(&authorize(&app, &[("signup", "true")])).await.sees(200, "Sign up for");
    twice(&mut browser, "/auth/login/signup", &[("first_name", "Grace"), ("email", "grace@example.com")]).await;
    app.drain().await;
    let mails = app.mails().into_iter().filter(|mail| mail.to.contains("grace@example.com")).count();
    assert_eq!(mails, 1, "one mail");
    browser.open(&mailed(&app, "grace@example.com").await).await;
    let before = app.key().get("/account/tenant").await.expect(200).json().as_array().expect("a list").len();
    let fields = [("password", "violet harbour lamb"), ("workspace", "Compilers")];
    twice(&mut browser, "/auth/login/set-password", &fields).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
    let after = app.key().get("/account/tenant").await.expect(200).json().as_array().expect("a list").len();
    assert_eq!(after, before + 1);
}

async fn a_code_sent_twice_counts_once(app: TestApp) {
    let (ada, secret) = factors::with_authenticator(&app, "ada@example.com").await;
    let mut browser = app.browser();
    sign_in(browser.open(&authorize(&app, &[])).await, &ada).await;
    browser.sees(200, "Enter your code");
    // Five wrong codes end a login; six double clicks on one wrong code are one.
    let wrong = factors::other(&factors::shown(&app, &secret, 3));
    let asked = browser.clone();
    for _ in 0..6 {
        let mut again = asked.clone();
        again.submit("/auth/login/mfa", &[("code", &wrong)]).await.sees(401, "The code is incorrect");
        browser = again;
    }
    let right = factors::shown(&app, &secret, 0);
    twice(&mut browser, "/auth/login/mfa", &[("code", &right)]).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
}

async fn a_workspace_chosen_twice_is_chosen(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let body = json!({ "name": "Second", "owner": { "email": ada.email, "firstName": "Ada", "lastName": "Lovelace" }, "muteNotifications": true });
    app.key().post("/account/tenant", body).await.expect(200);
    let mut browser = app.browser();
    sign_in(browser.open(&authorize(&app, &[])).await, &ada).await;
    browser.sees(200, "Choose a workspace");
    twice(&mut browser, "/auth/login/workspace", &[("member", &ada.member.to_string())]).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
}

async fn a_mail_is_sent_once(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    app.drain().await;
    let before = app.mails().len();
    let mut browser = at_password(&app, &ada.email, &[]).await;
    twice(&mut browser, "/auth/login/send-link", &[]).await;
    app.drain().await;
    assert_eq!(app.mails().len(), before + 1);
    // Asked for again from the page, it is another one.
    let mut again = at_password(&app, &ada.email, &[]).await;
    twice(&mut again, "/auth/login/send-link", &[]).await;
    app.drain().await;
    assert_eq!(app.mails().len(), before + 2);
}

async fn a_form_is_dealt_with_although_nobody_waits(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut browser = at_password(&app, &ada.email, &[]).await;
    browser.submit("/auth/login/send-link", &[]).await.open(&mailed(&app, &ada.email).await).await;
    let mut hung_up = browser.clone();
    // Long enough for the link to be used, not for the answer.
    let given_up = tokio::time::timeout(Duration::from_millis(5), hung_up.submit("/auth/login/magic-link", &[]));
    given_up.await.ok();
    browser.submit("/auth/login/magic-link", &[]).await;
    assert!(browser.answer("code").is_some(), "{}", browser.location);
}

async fn another_browser_is_not_answered_alike(app: TestApp) {
    let ada = app.owner("ada@example.com").await;
    let mut browser = at_password(&app, &ada.email, &[]).await;
    let form = browser.form("/auth/login/password");
    let mut other = app.browser();
    other.open(&authorize(&app, &[])).await;
    let mut fields = form;
    fields.retain(|(name, _)| name != "password");
    fields.push(("password".into(), ada.password.clone()));
    browser.post("/auth/login/password", &fields).await;
    assert!(browser.answer("code").is_some());
    other.post("/auth/login/password", &fields).await.sees(403, "This form has expired");
}

async fn no_answer_to_a_form_is_a_page(app: TestApp) {
    let (ada, _) = factors::with_authenticator(&app, "ada@example.com").await;
    let led_to_a_page = |browser: &Browser, action: &str| {
        // Going back to what a form answered would ask whether to send it again.
        assert!(browser.location != action && browser.location.contains('?'), "{action} answered a page");
    };
    let mut browser = app.browser();
    browser.open(&authorize(&app, &[])).await.submit("/auth/login", &[("username", "nobody at all")]).await;
    led_to_a_page(browser.sees(400, "Enter a valid email address"), "/auth/login");
    // The page says it once.
    let address = browser.location.clone();
    browser.open(&address).await.sees(200, "Sign in to");
    browser.submit("/auth/login", &[("username", &ada.email)]).await;
    browser.submit("/auth/login/password", &[("password", "not the password")]).await;
    led_to_a_page(browser.sees(401, "Incorrect email address or password."), "/auth/login/password");
    browser.submit("/auth/login/password", &[("password", &ada.password)]).await;
    browser.submit("/auth/login/mfa", &[("code", "not a code")]).await;
    led_to_a_page(browser.sees(401, "The code is incorrect"), "/auth/login/mfa");
    browser.open(&authorize(&app, &[("signup", "true")])).await;
    let fields = [("first_name", ""), ("last_name", "Hopper"), ("email", "nobody")];
    browser
        .submit("/auth/login/signup", &fields)
        .await
        .sees(400, "value=\"Hopper\"")
        .sees(400, "Enter your first name.");
    led_to_a_page(&browser, "/auth/login/signup");
    let long = "x".repeat(201);
    let fields = [("first_name", "Grace"), ("last_name", long.as_str()), ("email", "grace@example.com")];
    browser.submit("/auth/login/signup", &fields).await.sees(400, "Enter a shorter last name.");
    led_to_a_page(&browser, "/auth/login/signup");
}
