//! Mail through a real server, into files, and what happens when it does not leave.

use std::{
    os::unix::fs::PermissionsExt as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kernel::{AppId, Code, Entropy, Error, Secret, Timestamp};
use spine::{
    Mailer, NewMail, NewSms, Runner, TestClock, Texter, mail::MailTransport, queue_mail, queue_sms, sms::SmsTransport,
};
use store::{Db, args, on_both_engines, testing::TestDb};
use vault::{Keyring, MasterKey};

use crate::{
    MIGRATIONS,
    servers::{self, Reply},
    soon,
};

pub(crate) fn keyring() -> Keyring {
    Keyring::new(&MasterKey::generate(&Entropy::seeded_for_tests(1)), None, Entropy::os())
}

/// Longer than a line of a mail likes to be.
const LINK: &str =
    "https://app.example/a/long/path/to/a/page?with=several&parameters=in&it=and&code=s3cret-s3cret-s3cret";

fn mail(to: &str) -> NewMail {
    NewMail {
        app: Some(AppId::from_u128(7)),
        to: to.to_owned(),
        from_name: "Änne’s \"App\"".into(),
        from_address: None,
        reply_to: Some("help@app.example".into()),
        subject: "Your código".into(),
        text: format!("Open {LINK}\n.a line with a dot"),
        html: "<p>Open <a href=\"https://app.example/?code=s3cret\">this</a></p>".into(),
    }
}

async fn queue(db: &Db, to: &str) -> String {
    let (mail, keyring) = (mail(to), keyring());
    db.write(move |tx| queue_mail(tx, &keyring, &mail)).await.unwrap().to_string()
}

fn mailer(db: &Db, url: &str) -> Runner {
    let runner = Runner::new();
    let transport = MailTransport::from_url(&Secret::new(url.to_owned())).unwrap();
    Mailer::new(db.clone(), keyring(), transport, "no-reply@tenantry.example".parse().unwrap()).add_to(&runner);
    runner
}

#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) state: String,
    pub(crate) attempts: i64,
    pub(crate) erased: bool,
    pub(crate) error: Option<String>,
}

async fn row(db: &Db, id: &str) -> Row {
    let sql = "SELECT state, attempts, sealed, last_error FROM mail_outbox WHERE id = $1";
    let row: Option<(String, i64, String, Option<String>)> = db.get_one(sql, &args![id]).await.unwrap();
    let (state, attempts, sealed, error) = row.unwrap();
    Row { state, attempts, erased: sealed.is_empty(), error }
}

fn sent() -> Row {
    Row { state: "sent".into(), attempts: 1, erased: true, error: None }
}

async fn a_mail_reaches_a_server_and_its_body_is_erased(test: TestDb) {
    let (address, mut inbox) = servers::smtp(|_| Reply::Accept).await;
    let runner = mailer(&test.db, &format!("smtp://{address}"));
    let id = queue(&test.db, "Zoë <zoe@example.com>").await;
    let waiting = row(&test.db, &id).await;
    assert_eq!((waiting.state.as_str(), waiting.erased), ("waiting", false));
    runner.drain().await.unwrap();
    let message = inbox.recv().await.unwrap();
    for part in [
        format!("Message-ID: <{id}@tenantry.example>\r\n"),
        "Reply-To: help@app.example\r\n".into(),
        "<no-reply@tenantry.example>\r\n".into(),
        "<zoe@example.com>\r\n".into(),
        "Subject: Your =?utf-8?b?Y8OzZGlnbw==?=\r\n".into(),
        "multipart/alternative".into(),
    ] {
        assert!(message.contains(&part), "{part} is not in:\n{message}");
    }
    assert_eq!(row(&test.db, &id).await, sent());
    assert!(inbox.try_recv().is_err(), "sent once");
}

async fn nothing_of_the_content_is_readable_in_the_row(test: TestDb) {
    let id = queue(&test.db, "zoe@example.com").await;
    let sql = "SELECT sealed FROM mail_outbox WHERE id = $1";
    let (sealed,): (String,) = test.db.get_one(sql, &args![id]).await.unwrap().unwrap();
    assert!(sealed.starts_with("s1.") && !sealed.contains("s3cret") && !sealed.contains("digo"), "{sealed}");
}

async fn a_mail_of_a_transaction_that_rolled_back_is_never_sent(test: TestDb) {
    let (address, mut inbox) = servers::smtp(|_| Reply::Accept).await;
    let runner = mailer(&test.db, &format!("smtp://{address}"));
    let outcome = test.db.write(|tx| {
        queue_mail(tx, &keyring(), &mail("zoe@example.com"))?;
        Err::<(), _>(Error::new(Code::Conflict, "changed my mind"))
    });
    assert!(outcome.await.is_err());
    runner.drain().await.unwrap();
    assert!(inbox.try_recv().is_err());
}

/// The server is busy three times: a minute, five and thirty later it is tried again, each at its own moment.
async fn a_passing_failure_is_retried_when_the_test_clock_steps(test: TestDb) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let (address, mut inbox) = servers::smtp(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        0..3 => Reply::Refuse("451 try again later"),
        _ => Reply::Accept,
    })
    .await;
    let runner = mailer(&test.db, &format!("smtp://{address}"));
    let clock = TestClock::open(test.db.clone(), runner.clone()).await.unwrap();
    let id = queue(&test.db, "zoe@example.com").await;
    let start = clock.now();
    runner.drain().await.unwrap();
    let waiting = row(&test.db, &id).await;
    assert_eq!((waiting.state.as_str(), waiting.attempts, waiting.erased), ("waiting", 1, false));
    assert!(waiting.error.unwrap().contains("try again later"));
    clock.advance_by(Duration::from_secs(3_600)).await.unwrap();
    assert_eq!(row(&test.db, &id).await, Row { attempts: 4, ..sent() });
    assert!(inbox.try_recv().is_ok() && inbox.try_recv().is_err());
    let sql = "SELECT finished_at FROM mail_outbox WHERE id = $1";
    let (at,): (Timestamp,) = test.db.get_one(sql, &args![id]).await.unwrap().unwrap();
    let minutes = at.since(start).as_secs() / 60;
    assert!((36..40).contains(&minutes), "sent after {minutes} minutes");
}

async fn a_permanent_failure_is_final_at_once(test: TestDb) {
    let (address, _inbox) = servers::smtp(|_| Reply::Refuse("550 no such mailbox")).await;
    let runner = mailer(&test.db, &format!("smtp://{address}"));
    let id = queue(&test.db, "nobody@example.com").await;
    runner.drain().await.unwrap();
    let failed = row(&test.db, &id).await;
    assert_eq!((failed.state.as_str(), failed.attempts, failed.erased), ("failed", 1, true));
    assert!(failed.error.unwrap().contains("no such mailbox"));
}

async fn after_six_attempts_a_mail_is_given_up_and_later_forgotten(test: TestDb) {
    // A file stands where the folder should be.
    let file = tempfile::NamedTempFile::new().unwrap();
    let runner = mailer(&test.db, &format!("file:{}", file.path().display()));
    let clock = TestClock::open(test.db.clone(), runner.clone()).await.unwrap();
    let id = queue(&test.db, "zoe@example.com").await;
    clock.advance_by(Duration::from_secs(24 * 3_600)).await.unwrap();
    let failed = row(&test.db, &id).await;
    assert_eq!((failed.state.as_str(), failed.attempts, failed.erased), ("failed", 6, true));
    clock.advance_by(Duration::from_secs(31 * 24 * 3_600)).await.unwrap();
    runner.drain().await.unwrap();
    let left = test.db.get_one::<(String,)>("SELECT id FROM mail_outbox WHERE id = $1", &args![id]).await.unwrap();
    assert_eq!(left, None);
}

async fn files_are_whole_messages(test: TestDb) {
    let folder = tempfile::tempdir().unwrap();
    let runner = mailer(&test.db, &format!("file:{}", folder.path().join("mail").display()));
    let id = queue(&test.db, "zoe@example.com").await;
    runner.drain().await.unwrap();
    let message = std::fs::read_to_string(folder.path().join(format!("mail/{id}.eml"))).unwrap();
    assert!(message.contains("\r\nTo: zoe@example.com\r\n") && message.contains("text/html"), "{message}");
    assert!(message.contains(&format!("Open {LINK}\r\n")), "a link that can be copied: {message}");
    assert_eq!(std::fs::read_dir(folder.path().join("mail")).unwrap().count(), 1, "no half-written file stays");
    for (path, mode) in [("mail".to_owned(), 0o700), (format!("mail/{id}.eml"), 0o600)] {
        let found = folder.path().join(path).metadata().unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "it holds a live link");
    }
    assert_eq!(row(&test.db, &id).await, sent());
}

/// The relay offers AUTH and no STARTTLS. By 0.0.0.0 this machine is reached under an address that is no loopback one.
async fn nothing_is_told_to_a_relay_that_does_not_encrypt(test: TestDb) {
    let (address, mut inbox) = servers::smtp(|_| Reply::Accept).await;
    let url = |rest: &str| format!("smtp://relay-user:relay-Passw0rd@0.0.0.0:{}{rest}", address.port());
    for demanding in [url(""), url("?tls=required")] {
        let id = queue(&test.db, "zoe@example.com").await;
        mailer(&test.db, &demanding).drain().await.unwrap();
        let row = row(&test.db, &id).await;
        assert_eq!((row.state.as_str(), row.erased), ("waiting", false), "{row:?}");
        assert!(inbox.try_recv().is_err(), "neither the password nor the mail was told");
    }
    let id = queue(&test.db, "zoe@example.com").await;
    mailer(&test.db, &url("?tls=opportunistic")).drain().await.unwrap();
    assert_eq!(row(&test.db, &id).await, sent());
    assert!(inbox.recv().await.unwrap().starts_with("AUTH PLAIN"), "who asks for it gets it");
}

/// One recipient's server never answers. Other mail, mail queued later and SMS are sent meanwhile.
async fn a_hanging_recipient_delays_nothing_else(test: TestDb) {
    let (hung, mut hanging) = tokio::sync::mpsc::unbounded_channel();
    let (address, mut inbox) = servers::smtp(move |recipient| {
        if recipient.starts_with("hang") {
            hung.send(()).unwrap();
            return Reply::Silence;
        }
        Reply::Accept
    })
    .await;
    let (gateway, mut phones) = servers::http(&[200]).await;
    let runner = mailer(&test.db, &format!("smtp://{address}"));
    let transport = SmsTransport::from_url(&Secret::new(format!("http://{gateway}/sms"))).unwrap();
    Texter::new(test.db.clone(), keyring(), transport).add_to(&runner);
    queue(&test.db, "hang@example.com").await;
    runner.start();
    soon("the server hangs", hanging.recv()).await;
    for number in 0..20 {
        queue(&test.db, &format!("user{number}@example.com")).await;
    }
    let sms = NewSms { app: None, to: "+491701234567".into(), text: "123456".into() };
    test.db.write(move |tx| queue_sms(tx, &keyring(), &sms)).await.unwrap();
    for _ in 0..20 {
        soon("other mail arrives", inbox.recv()).await;
    }
    soon("the SMS arrives", phones.recv()).await;
    runner.stop(Duration::ZERO).await;
}

async fn two_nodes_send_each_mail_once(test: TestDb) {
    let (address, mut inbox) = servers::smtp(|_| Reply::Accept).await;
    let url = format!("smtp://{address}");
    let (one, other) = (mailer(&test.db, &url), mailer(&test.another_node().await, &url));
    for number in 0..50 {
        queue(&test.db, &format!("user{number}@example.com")).await;
    }
    let (a, b) = tokio::join!(one.drain(), other.drain());
    a.and(b).unwrap();
    let mut received = 0;
    while inbox.try_recv().is_ok() {
        received += 1;
    }
    assert_eq!(received, 50);
}

/// The server was so slow that the lease has ended meanwhile.
async fn what_another_node_took_over_is_left_to_it(test: TestDb) {
    for answer in ["451 later", "550 never"] {
        let db = test.db.clone();
        let (address, _inbox) = servers::smtp(move |_| {
            let taken = db.exec_one("UPDATE mail_outbox SET lease_owner = 'another'", &[]);
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(taken)).unwrap();
            Reply::Refuse(answer)
        })
        .await;
        let id = queue(&test.db, "ada@example.com").await;
        mailer(&test.db, &format!("smtp://{address}")).drain().await.unwrap();
        let row = row(&test.db, &id).await;
        assert_eq!((row.state.as_str(), row.attempts, row.erased), ("waiting", 0, false), "{answer}");
    }
}

async fn headers_cannot_be_smuggled_in(test: TestDb) {
    let smuggled = "x\r\nBcc: everybody@example.com";
    for (field, wrong) in [
        ("to", NewMail { to: format!("a@example.com{smuggled}"), ..mail("") }),
        ("to", mail("not an address")),
        ("fromName", NewMail { from_name: smuggled.into(), ..mail("a@example.com") }),
        ("fromName", NewMail { from_name: "x\0".into(), ..mail("a@example.com") }),
        ("subject", NewMail { subject: smuggled.into(), ..mail("a@example.com") }),
        ("subject", NewMail { subject: "x\rBcc: everybody@example.com".into(), ..mail("a@example.com") }),
        ("replyTo", NewMail { reply_to: Some(smuggled.into()), ..mail("a@example.com") }),
    ] {
        let error = test.db.write(move |tx| queue_mail(tx, &keyring(), &wrong)).await.unwrap_err();
        assert_eq!(error.details()[0].field, field);
    }
}

/// The master key is changed while a mail waits: it is sealed again and can be sent without the old key.
async fn waiting_mail_survives_a_change_of_the_master_key(test: TestDb) {
    let id = queue(&test.db, "zoe@example.com").await;
    let old = MasterKey::generate(&Entropy::seeded_for_tests(1));
    let new = MasterKey::generate(&Entropy::seeded_for_tests(2));
    let changing = Keyring::new(&new, Some(&old), Entropy::os());
    assert_eq!(vault::reseal(&test.db, &changing, spine::TABLES).await.unwrap(), 1);
    assert_eq!(vault::reseal(&test.db, &changing, spine::TABLES).await.unwrap(), 0);
    let folder = tempfile::tempdir().unwrap();
    let url = Secret::new(format!("file:{}", folder.path().display()));
    let (runner, keyring) = (Runner::new(), Keyring::new(&new, None, Entropy::os()));
    let transport = MailTransport::from_url(&url).unwrap();
    Mailer::new(test.db.clone(), keyring, transport, "no-reply@tenantry.example".parse().unwrap()).add_to(&runner);
    runner.drain().await.unwrap();
    assert_eq!(row(&test.db, &id).await, sent());
}

async fn operators_see_what_is_stuck(test: TestDb) {
    let (address, _inbox) = servers::smtp(|recipient| {
        Reply::Refuse(if recipient.starts_with("no") { "550 no such mailbox" } else { "451 later" })
    })
    .await;
    let runner = mailer(&test.db, &format!("smtp://{address}"));
    for recipient in ["nobody@example.com", "a@example.com", "b@example.com"] {
        queue(&test.db, recipient).await;
    }
    runner.drain().await.unwrap();
    let backlog = test.db.read(spine::backlog).await.unwrap();
    assert_eq!((backlog.failed, backlog.retrying), (1, 2));
}

on_both_engines!(
    MIGRATIONS: a_mail_reaches_a_server_and_its_body_is_erased,
    nothing_of_the_content_is_readable_in_the_row,
    a_mail_of_a_transaction_that_rolled_back_is_never_sent,
    a_passing_failure_is_retried_when_the_test_clock_steps,
    a_permanent_failure_is_final_at_once,
    after_six_attempts_a_mail_is_given_up_and_later_forgotten,
    files_are_whole_messages,
    nothing_is_told_to_a_relay_that_does_not_encrypt,
    a_hanging_recipient_delays_nothing_else,
    two_nodes_send_each_mail_once,
    what_another_node_took_over_is_left_to_it,
    headers_cannot_be_smuggled_in,
    waiting_mail_survives_a_change_of_the_master_key,
    operators_see_what_is_stuck,
);
