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
        "Accept the invitation": "Einladung annehmen",
    });
    app.key().post("/cloud-views/brand/translations", words).await.expect(200);
    let mail = sent(&app, invitation()).await;
    assert_eq!(mail.from, "Shop <no-reply@tenantry.test>");
    assert_eq!(mail.subject, "Komm zu Acme & Sons bei Shop");
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
    Subject: Join Acme Corporation on My app

    Join Acme Corporation

    You have been invited to the workspace Acme Corporation on My app. Choose a password to begin.

    Accept the invitation:
    https://example.com/sample?token=sample

    This link works once, within 7 days. If you did not expect an invitation, you can ignore this mail.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: You are now a member of Acme Corporation

    Welcome to Acme Corporation

    You have been added to the workspace Acme Corporation on My app. Sign in with the account you already have.

    Open My app:
    https://example.com/sample?token=sample

    If you did not expect this, you can ignore this mail.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Choose a new My app password

    Choose a new password

    Somebody asked for a new password for your My app account. If it was you, choose one now.

    Choose a new password:
    https://example.com/sample?token=sample

    This link works once, within one hour. If it was not you, ignore this mail: your password stays as it is.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Confirm your e-mail address for My app

    Confirm your e-mail address

    Thank you for signing up for My app. Confirm that this address is yours, and your account is ready.

    Confirm the address:
    https://example.com/sample?token=sample

    This link works once, within 24 hours. If you did not sign up, you can ignore this mail.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: You already have a My app account

    You already have an account

    Somebody tried to sign up for My app with this address, which has an account already. If it was you, simply sign in.

    Sign in:
    https://example.com/sample?token=sample

    If it was not you, you can ignore this mail. Nothing has changed.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Sign in to My app

    Sign in to My app

    Use this link to sign in. No password needed.

    Sign in:
    https://example.com/sample?token=sample

    This link works once, within 15 minutes. If you did not ask for it, you can ignore this mail.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Set up a passkey for My app

    Set up a passkey

    With a passkey you sign in to My app by fingerprint, face or screen lock instead of a password.

    Set up a passkey:
    https://example.com/sample?token=sample

    This link works once, within one hour. If you did not ask for it, you can ignore this mail.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: May My app send mail from this address?

    Confirm this sender address

    My app would like to send its mail from this address. Confirm that it may.

    Confirm the address:
    https://example.com/sample?token=sample

    This link works once, within 24 hours. If this is news to you, ignore this mail: nothing will be sent in your name.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: Your My app sign-in code

    Your sign-in code

    Enter this code to finish signing in to My app:

    482 913

    The code works once, within 5 minutes. Nobody from My app will ever ask you for it.

    -- 
    My app
    http://localhost:3000

    ======
    Subject: A payment for Acme Corporation failed

    A payment failed

    The last payment for the workspace Acme Corporation on My app did not go through. Check the payment details so that nothing is interrupted.

    Check the payment details:
    https://example.com/sample?token=sample

    If you have paid in the meantime, you can ignore this mail.

    -- 
    My app
    http://localhost:3000

    ======
    "#);
}
