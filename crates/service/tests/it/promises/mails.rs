//! The mails that people get in an app's name.

use serde_json::json;
use tenancy::mails::{self, AppMail};
use testkit::{CaughtMail, TestApp, on_both_engines, on_one_engine};

on_both_engines!(a_mail_is_in_the_apps_words_looks_and_name, a_mail_takes_the_apps_templates);
on_one_engine!(every_mail_reads_well);

/// Queues the mail as any room would, and catches it.
async fn sent(app: &TestApp, mail: AppMail) -> CaughtMail {
    let (tenancy, id) = (app.service().core().tenancy.clone(), app.app_id());
    let db = tenancy.db.clone();
    let queued = db.write(move |tx| {
        let app = tenancy::apps::get(tx, id)?;
        mails::queue(tx, &tenancy, &app, "ada@customer.example", &mail)
    });
    queued.await.expect("queued");
    app.drain().await;
    app.mails().pop().expect("a mail")
}

fn invitation() -> AppMail {
    AppMail::InviteNew { workspace: "Acme & Sons".into(), link: "https://t.example/join?token=t&x=1".into() }
}

async fn a_mail_is_in_the_apps_words_looks_and_name(app: TestApp) {
    let looks = json!({ "name": "Shop", "logo": "https://cdn.example/l.png", "uiUrl": "https://shop.example" });
    app.key().put("/account/app", looks).await.expect(200);
    let words = json!({
        "Join {workspace} on {appName}": "Komm zu {workspace} bei {appName}",
        "Accept invitation": "Einladung annehmen",
    });
    app.key().post("/cloud-views/brand/translations", words).await.expect(200);
    let mail = sent(&app, invitation()).await;
    assert_eq!(mail.from, "Shop <no-reply@tenantry.test>");
    assert_eq!(mail.subject, "Komm zu “Acme & Sons” bei Shop");
    assert_eq!(mail.links(), ["https://t.example/join?token=t&x=1", "https://shop.example"]);
    assert!(mail.html.contains("Acme &amp; Sons") && mail.html.contains(">Einladung annehmen</a>"), "{}", mail.html);
    assert!(mail.html.contains("<img src=\"https://cdn.example/l.png\" alt=\"Shop\""));
    assert!(!mail.html.contains("{{") && !mail.html.contains("<script"));
}

async fn a_mail_takes_the_apps_templates(app: TestApp) {
    let path = |name: &str| format!("/communication/email/template/{name}");
    for (name, content) in [
        ("INVITE_NEW", "<h2>{{emailTitle}}</h2>{{nothing}}"),
        ("BASE", "<html><body class=\"mine\">{{emailBody}}</body></html>"),
    ] {
        app.key().put(&path(name), json!({ "type": name, "content": content })).await.expect(200);
    }
    let mail = sent(&app, invitation()).await;
    assert!(mail.html.starts_with("<html><body class=\"mine\"><h2>Join Acme &amp; Sons</h2>\n<p"), "{}", mail.html);
    let other = sent(&app, AppMail::MagicLink { link: "https://t.example/in".into() }).await;
    assert!(other.html.starts_with("<html><body class=\"mine\"><h1"), "{}", other.html);
    app.key().delete(&path("BASE")).await.expect(200);
    let mail = sent(&app, invitation()).await;
    assert!(mail.html.starts_with("<!doctype html>") && mail.html.contains("<h2>Join"));
}

async fn every_mail_reads_well(app: TestApp) {
    let mut read = String::new();
    for mail in AppMail::samples() {
        let mail = sent(&app, mail).await;
        read.push_str(&format!("Subject: {}\n\n{}\n======\n", mail.subject, mail.text));
    }
    testkit::assert_text!(read, @r#"
    Subject: Join “Acme Corporation” on My app

    Join Acme Corporation

    You have been invited to join Acme Corporation on My app. Choose a password to get started.

    Accept invitation:
    https://example.com/sample?token=sample

    This link expires in 7 days and can be used once. If you were not expecting an invitation, you can ignore this email.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: You have been added to “Acme Corporation”

    Welcome to Acme Corporation

    You have been added to Acme Corporation on My app. Sign in with your existing account to open it.

    Open My app:
    https://example.com/sample?token=sample

    If you were not expecting this, you can ignore this email.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Join “Acme Corporation” on My app

    Join Acme Corporation

    Ada Lovelace has invited you to join Acme Corporation on My app.

    Accept invitation:
    https://example.com/sample?token=sample

    This link expires in 7 days and can be used once. If you were not expecting an invitation, you can ignore this email.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Reset your My app password

    Reset your password

    We received a request to reset the password of your My app account. If it was you, choose a new password now.

    Reset password:
    https://example.com/sample?token=sample

    This link expires in one hour and can be used once. If it was not you, ignore this email: your password will not change.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Confirm your email address for My app

    Confirm your email address

    Thank you for signing up for My app. Confirm your email address to finish creating your account.

    Confirm email address:
    https://example.com/sample?token=sample

    This link expires in 24 hours and can be used once. If you did not sign up, you can ignore this email.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: You already have a My app account

    You already have an account

    Someone tried to sign up for My app with this email address, which already has an account. If it was you, sign in instead.

    Sign in:
    https://example.com/sample?token=sample

    If it was not you, you can ignore this email. Your account has not changed.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Sign in to My app

    Sign in to My app

    Use this link to sign in. You do not need a password.

    Sign in:
    https://example.com/sample?token=sample

    This link expires in 15 minutes and can be used once. If you did not request it, you can ignore this email.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Set up a passkey for My app

    Set up a passkey

    A passkey lets you sign in to My app with your fingerprint, face or screen lock instead of a password.

    Set up a passkey:
    https://example.com/sample?token=sample

    This link expires in one hour and can be used once. If you did not request it, you can ignore this email.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Allow My app to send email from this address?

    Confirm this sender address

    My app wants to send email from this address. Confirm that you allow it.

    Confirm email address:
    https://example.com/sample?token=sample

    This link expires in 24 hours and can be used once. If you were not expecting this, ignore this email: nothing will be sent from your address.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Confirm your new email address for My app

    Confirm your new email address

    You asked to use this email address for your My app account from now on.

    Confirm email address:
    https://example.com/sample?token=sample

    This link expires in 24 hours and can be used once. If it was not you, ignore this email: nothing will change.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Your My app email address is about to change

    Your email address is about to change

    Someone who is signed in to your My app account asked to use another email address for it. It changes once that address is confirmed.

    If it was not you, reset your password right away and contact the support of My app.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Your My app email address was changed

    Your email address was changed

    Your My app account now uses another email address. This one no longer works for signing in.

    If it was not you, contact the support of My app right away.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Payment failed for “Acme Corporation”

    Payment failed

    We could not process the last payment for Acme Corporation on My app. Update your payment details to keep your plan.

    Update payment details:
    https://example.com/sample?token=sample

    If you have already paid, you can ignore this email.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Your My app password was changed

    Your password was changed

    The password of your My app account was changed, and you were signed out everywhere else.

    If it was not you, reset your password right away and contact the support of My app.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: A passkey was added to your My app account

    A passkey was added

    You can now sign in to My app with a new passkey.

    If it was not you, reset your password right away and contact the support of My app.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: A passkey was removed from your My app account

    A passkey was removed

    You can no longer sign in to My app with that passkey.

    If it was not you, reset your password right away and contact the support of My app.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Two-step sign-in was set up for your My app account

    Two-step sign-in was set up

    Signing in to My app now asks for a code as well.

    If it was not you, reset your password right away and contact the support of My app.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Two-step sign-in was turned off for your My app account

    Two-step sign-in was turned off

    Signing in to My app no longer asks for a code or a passkey, until you set one up again.

    If it was not you, reset your password right away and contact the support of My app.

    -- 
    My app
    http://localhost:3000

    ======
    "#);
}
