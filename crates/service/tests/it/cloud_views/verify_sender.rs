//! `/cloud-views/verify-sender`, and what a verified sender's address changes.

use std::time::Duration;

use http::Method;
use serde_json::json;
use testkit::{Answer, TestApp, on_both_engines};

on_both_engines!(
    a_new_sender_is_used_once_its_link_was_confirmed,
    following_the_link_changes_nothing,
    a_link_works_once_and_for_a_day,
    another_address_makes_the_link_worthless,
    the_page_has_the_apps_looks_and_words_and_nothing_else,
);

async fn set(app: &TestApp, address: &str) -> Answer {
    app.key().put("/account/app", json!({ "emailSenderEmail": address })).await.expect(200)
}

/// The path of the link in the newest mail.
async fn link(app: &TestApp) -> String {
    app.drain().await;
    let mail = app.mails().pop().expect("a mail");
    let links = mail.links();
    let link = links[0].strip_prefix("http://tenantry.test").expect("a link to here");
    assert!(link.starts_with("/cloud-views/verify-sender?token="), "{link}");
    link.to_owned()
}

async fn press(app: &TestApp, link: &str) -> Answer {
    let form = app.anon().header("content-type", "application/x-www-form-urlencoded");
    let (path, token) = link.split_once('?').expect("a token");
    form.send(Method::POST, path, token.to_owned()).await
}

async fn is_verified(app: &TestApp) -> bool {
    app.key().get("/account/app").await.at("/emailSenderVerified") == true
}

async fn a_new_sender_is_used_once_its_link_was_confirmed(app: TestApp) {
    app.key().put("/account/app", json!({ "name": "Shop", "emailSenderName": "Shop Team" })).await.expect(200);
    assert_eq!(set(&app, "hello@shop.example").await.at("/emailSenderVerified"), false);
    let first = link(&app).await;
    let [mail] = app.mails().try_into().expect("one mail");
    assert_eq!((mail.to.as_str(), mail.from.as_str()), ("hello@shop.example", "Shop Team <no-reply@tenantry.test>"));

    let done = press(&app, &first).await.expect(200);
    assert!(done.body().contains("Email address confirmed") && done.body().contains("hello@shop.example"));
    assert!(is_verified(&app).await);
    // The same address, however it is written, is not asked again; nor do other changes forget it.
    for change in [json!({ "emailSenderEmail": "Hello@shop.example" }), json!({ "mfaEnabled": true })] {
        app.key().put("/account/app", change).await.expect(200);
    }
    assert!(is_verified(&app).await);
    let test = json!({ "type": "SIGNUP", "content": "x", "testRecipient": "ada@customer.example" });
    app.key().put("/communication/email/template/SIGNUP", test).await.expect(200);
    app.drain().await;
    let [_, mail] = app.mails().try_into().expect("two mails");
    assert_eq!(mail.from, "Shop Team <Hello@shop.example>");

    set(&app, "other@shop.example").await;
    assert!(!is_verified(&app).await);
    app.key().put("/account/app", json!({ "emailSenderEmail": null })).await.expect(200);
    assert!(!is_verified(&app).await);
}

async fn following_the_link_changes_nothing(app: TestApp) {
    set(&app, "hello@shop.example").await;
    let link = link(&app).await;
    for _ in 0..2 {
        let page = app.anon().get(&link).await.expect(200);
        assert!(page.body().contains("<form method=\"post\""), "{page:?}");
    }
    assert!(!is_verified(&app).await);
    press(&app, &link).await.expect(200);
    assert!(is_verified(&app).await);
}

async fn a_link_works_once_and_for_a_day(app: TestApp) {
    set(&app, "hello@shop.example").await;
    let first = link(&app).await;
    press(&app, &first).await.expect(200);
    // A second click on the button says the same; the link itself is used up.
    assert!(press(&app, &first).await.expect(200).body().contains("Email address confirmed"));
    assert!(app.anon().get(&first).await.expect(404).body().contains("This link no longer works"));
    set(&app, "late@shop.example").await;
    let late = link(&app).await;
    app.advance(Duration::from_secs(24 * 3600)).await;
    press(&app, &late).await.expect(404);
    for token in ["", "x", "%00", &"é".repeat(5_000)] {
        let answer = press(&app, &format!("/cloud-views/verify-sender?token={token}")).await;
        assert!(matches!(answer.status(), 400 | 404), "{answer:?}");
    }
    assert!(!is_verified(&app).await);
}

async fn another_address_makes_the_link_worthless(app: TestApp) {
    set(&app, "first@shop.example").await;
    let first = link(&app).await;
    set(&app, "second@shop.example").await;
    let second = link(&app).await;
    press(&app, &first).await.expect(404);
    assert!(!is_verified(&app).await);
    press(&app, &second).await.expect(200);
    assert!(is_verified(&app).await);
    set(&app, "third@shop.example").await;
    for used in [&first, &second] {
        press(&app, used).await.expect(404);
    }
    assert!(!is_verified(&app).await);
    set(&app, "second@shop.example").await;
    press(&app, &second).await.expect(404);
    assert!(!is_verified(&app).await);
}

async fn the_page_has_the_apps_looks_and_words_and_nothing_else(app: TestApp) {
    let looks = json!({ "name": "R&D", "logo": "https://cdn.shop.example/logo.svg?a=1&b=2" });
    app.key().put("/account/app", looks).await.expect(200);
    app.key().post("/admin/brand/css", json!({ "content": "a{}" })).await.expect(200);
    let words = json!({ "Confirm email address": "Adresse bestätigen", "Confirm this sender address": "<Absender>" });
    app.key().post("/cloud-views/brand/translations", words).await.expect(200);
    set(&app, "hello@shop.example").await;
    let page = app.anon().get(&link(&app).await).await.expect(200);

    let html = page.body();
    assert!(html.contains("Adresse bestätigen") && html.contains("&lt;Absender&gt;") && html.contains("R&amp;D"));
    assert!(html.contains(&format!("/cloud-views/brand/{}/style.css?v=", app.app_id())), "{html}");
    assert!(html.contains("src=\"https://cdn.shop.example/logo.svg?a=1&amp;b=2\""));
    assert!(html.matches("<script").count() == 1 && !html.contains("style=\""));
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https://cdn.shop.example;"
    ));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let style = app.anon().get("/cloud-views/style.css").await.expect(200);
    assert!(!style.body().contains("url(") && !style.body().contains("@import"));
}
