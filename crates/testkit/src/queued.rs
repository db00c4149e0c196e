//! A mail on its way, for tests of what happens to mails.

use spine::{NewMail, queue_mail};

use crate::TestApp;

pub fn mail(app: &TestApp, to: &str) -> NewMail {
    NewMail {
        app: Some(app.app_id()),
        to: to.into(),
        from_name: "Grüße GmbH".into(),
        from_address: None,
        reply_to: Some("help@shop.example".into()),
        subject: "Willkommen, Änne – your código".into(),
        text: "Open https://shop.example/join?code=s3cret&x=1 (or https://shop.example/help).\n".into(),
        html: "<p>Open <a href=\"https://shop.example/join?code=s3cret&amp;x=1\">this</a></p>".into(),
    }
}

/// Puts a mail on its way.
pub async fn queue(app: &TestApp, to: &str) {
    let (mail, keyring) = (mail(app, to), app.service().core().keyring.clone());
    app.service().core().db.write(move |tx| queue_mail(tx, &keyring, &mail)).await.expect("queued");
}
