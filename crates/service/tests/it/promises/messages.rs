//! Mail and SMS: queued in a transaction, sent after it.

use kernel::Code;
use spine::{NewSms, queue_mail, queue_sms};
use testkit::{
    TestApp, on_both_engines,
    queued::{mail, queue},
};

on_both_engines!(
    a_mail_leaves_after_the_commit,
    a_mail_of_a_failed_transaction_never_leaves,
    an_sms_leaves_after_the_commit
);

async fn a_mail_leaves_after_the_commit(app: TestApp) {
    queue(&app, "Änne <anne@customer.example>").await;
    assert_eq!(app.mails(), []);
    app.drain().await;
    app.drain().await;
    let [mail] = app.mails().try_into().expect("one mail");
    assert_eq!(mail.to, "Änne <anne@customer.example>");
    assert_eq!(mail.from, "Grüße GmbH <no-reply@tenantry.test>");
    assert_eq!(mail.reply_to.as_deref(), Some("help@shop.example"));
    assert_eq!(mail.subject, "Willkommen, Änne – your código");
    assert_eq!(mail.links(), ["https://shop.example/join?code=s3cret&x=1", "https://shop.example/help"]);
    assert!(mail.html.contains("code=s3cret&amp;x=1\">this</a>"), "{}", mail.html);
    let kept: Option<(String, String)> =
        app.service().core().db.get_one("SELECT state, sealed FROM mail_outbox", &[]).await.expect("read");
    assert_eq!(kept, Some(("sent".into(), String::new())), "its content is erased");
}

async fn a_mail_of_a_failed_transaction_never_leaves(app: TestApp) {
    let (mail, keyring) = (mail(&app, "ada@customer.example"), app.service().core().keyring.clone());
    let failed = app.service().core().db.write(move |tx| {
        queue_mail(tx, &keyring, &mail)?;
        Err::<(), _>(kernel::Error::new(Code::Conflict, "Changed my mind."))
    });
    failed.await.expect_err("rolled back");
    app.drain().await;
    assert_eq!(app.mails(), []);
}

async fn an_sms_leaves_after_the_commit(app: TestApp) {
    let keyring = app.service().core().keyring.clone();
    let sms = NewSms { app: Some(app.app_id()), to: "+491701234567".into(), text: "Your code is 123456".into() };
    app.service().core().db.write(move |tx| queue_sms(tx, &keyring, &sms)).await.expect("queued");
    app.drain().await;
    let [sms] = app.sms().try_into().expect("one SMS");
    assert_eq!((sms.to.as_str(), sms.text.as_str()), ("+491701234567", "Your code is 123456"));
}
