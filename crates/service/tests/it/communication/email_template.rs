//! `/communication/email/template/{templateName}`.

use serde_json::json;
use testkit::{TestApp, assert_body, on_both_engines};

on_both_engines!(
    every_template_has_a_default_an_override_and_a_way_back,
    an_unknown_template_is_not_found,
    wrong_fields_are_named,
    a_test_mail_shows_the_template_with_sample_values,
    the_layout_is_tried_around_a_whole_mail,
    a_template_that_would_become_too_large_is_refused,
);

const NAMES: [&str; 6] = ["RESET-PASSWORD", "SIGNUP", "INVITE_NEW", "INVITE_EXISTING", "PAYMENT_FAILURE", "BASE"];

fn path(name: &str) -> String {
    format!("/communication/email/template/{name}")
}

async fn every_template_has_a_default_an_override_and_a_way_back(app: TestApp) {
    for name in NAMES {
        let default = app.key().get(&path(name)).await.expect(200);
        assert_eq!(default.text("/type"), name);
        assert!(default.text("/content").contains("{{emailBody}}"), "{default:?}");

        let own = json!({ "type": name, "content": format!("<p>{{{{appName}}}} {name}</p>") });
        let set = app.key().put(&path(name), own.clone()).await.expect(200);
        assert_eq!((set.json(), app.key().get(&path(name)).await.json()), (own.clone(), own));
        let elsewhere = app.other_app().await.get(&path(name)).await.expect(200);
        assert!(!elsewhere.text("/content").contains(name));

        assert_eq!(app.key().delete(&path(name)).await.expect(200).json(), json!({ "success": true }));
        app.key().delete(&path(name)).await.expect(200);
        assert_eq!(app.key().get(&path(name)).await.json(), default.json());
    }
}

async fn an_unknown_template_is_not_found(app: TestApp) {
    for name in ["NOTHING", "signup", "RESET_PASSWORD", "%00"] {
        app.key().get(&path(name)).await.error(404, "NOT_FOUND");
        app.key().delete(&path(name)).await.error(404, "NOT_FOUND");
        let body = json!({ "type": "SIGNUP", "content": "x" });
        app.key().put(&path(name), body).await.error(404, "NOT_FOUND");
    }
}

async fn wrong_fields_are_named(app: TestApp) {
    for (body, field) in [
        (json!({ "content": "x" }), "type"),
        (json!({ "type": "NOTHING", "content": "x" }), "type"),
        (json!({ "type": "BASE", "content": "x" }), "type"),
        (json!({ "type": "SIGNUP" }), "content"),
        (json!({ "type": "SIGNUP", "content": " " }), "content"),
        (json!({ "type": "SIGNUP", "content": "x".repeat(512 * 1024 + 1) }), "content"),
        (json!({ "type": "SIGNUP", "content": "x", "testRecipient": "nobody" }), "testRecipient"),
        (
            json!({ "type": "SIGNUP", "content": "x", "testRecipient": "a@b.example\nBcc: c@d.example" }),
            "testRecipient",
        ),
    ] {
        app.key().put(&path("SIGNUP"), body).await.refuses(&[field]);
    }
    app.key_with(&["APP_READ"]).await.delete(&path("SIGNUP")).await.error(403, "MISSING_PRIVILEGE");
}

async fn a_test_mail_shows_the_template_with_sample_values(app: TestApp) {
    app.key().put("/account/app", json!({ "name": "R&D <Shop>" })).await.expect(200);
    let content = "<b>{{appName}}</b> {{emailTitle}} {{ctaTitle}} {{ctaUrl}} {{currentYear}} {{appColour}}";
    let body = json!({ "type": "SIGNUP", "content": content, "testRecipient": "ada@customer.example" });
    app.key().put(&path("SIGNUP"), body).await.expect(200);
    app.drain().await;
    let [mail] = app.mails().try_into().expect("one mail");
    assert_eq!(mail.to, "ada@customer.example");
    assert_eq!(mail.subject, "[Test] Confirm your email address for R&D <Shop>");
    assert!(
        mail.html.contains("<b>R&amp;D &lt;Shop&gt;</b> Confirm your email address Confirm email address https://")
    );
    assert!(mail.html.contains("{{appColour}}"), "{}", mail.html);
    // Nobody's mailbox is filled with samples.
    let body = json!({ "type": "SIGNUP", "content": "x", "testRecipient": "Ada@customer.example" });
    for _ in 0..9 {
        app.key().put(&path("SIGNUP"), body.clone()).await.expect(200);
    }
    app.key().put(&path("SIGNUP"), body).await.error(429, "RATE_LIMITED");
}

async fn the_layout_is_tried_around_a_whole_mail(app: TestApp) {
    let content = "<html><body><i>{{appUrl}}</i>{{emailBody}}</body></html>";
    let body = json!({ "type": "BASE", "content": content, "testRecipient": "ada@customer.example" });
    assert_body!(app.key().put(&path("BASE"), body).await.expect(200), @r#"
    {
      "content": "<html><body><i>{{appUrl}}</i>{{emailBody}}</body></html>",
      "type": "BASE"
    }
    "#);
    app.drain().await;
    let [mail] = app.mails().try_into().expect("one mail");
    assert!(mail.html.starts_with("<html><body><i>http://localhost:3000</i><h1"), "{}", mail.html);
    assert!(mail.html.contains("Reset your password"));
}

async fn a_template_that_would_become_too_large_is_refused(app: TestApp) {
    let many = json!({ "type": "BASE", "content": "{{emailBody}}".repeat(10_000) });
    app.key().put(&path("BASE"), many).await.refuses(&["content"]);
}
