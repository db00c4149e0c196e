//! Mail: queued in the transaction that calls for it, sent by a job after the commit.
//!
//! Subject and body are sealed in the row and erased once sent. A repetition carries the same `Message-ID`, so that
//! mailboxes show it once.

mod letter;
mod transport;

use std::{str::FromStr, time::Duration};

use kernel::{AppId, Problems, Result, id_kinds};
use lettre::message::Mailbox;
use serde::{Deserialize, Serialize};
use store::{Db, Tx};
use vault::Keyring;

use crate::{
    Runner,
    delivery::{self, Channel, Dispatch, Message, SendFailure, Sql, Sweep},
};
use letter::Wrapping;
pub use transport::MailTransport;

id_kinds! {
    /// One mail on its way.
    MailId(Mail) = "mail";
}

/// A mail to be sent.
#[derive(Clone, Debug)]
pub struct NewMail {
    pub app: Option<AppId>,
    /// An address, with or without a name.
    pub to: String,
    pub from_name: String,
    /// A verified address of the app's own; the service's address without one.
    pub from_address: Option<String>,
    pub reply_to: Option<String>,
    pub subject: String,
    pub text: String,
    pub html: String,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct MailContent {
    from_name: String,
    from_address: Option<String>,
    reply_to: Option<String>,
    subject: String,
    text: String,
    html: String,
}

/// Queues a mail that leaves once `tx` has committed. What could not be sent is refused here, with the field's name.
pub fn queue_mail(tx: &mut Tx<'_>, keyring: &Keyring, mail: &NewMail) -> Result<MailId> {
    check(mail)?;
    let id: MailId = tx.new_id();
    let content = MailContent {
        from_name: mail.from_name.clone(),
        from_address: mail.from_address.clone(),
        reply_to: mail.reply_to.clone(),
        subject: mail.subject.clone(),
        text: mail.text.clone(),
        html: mail.html.clone(),
    };
    delivery::queue::<Post>(tx, keyring, &id.to_string(), mail.app, &mail.to, &content)?;
    Ok(id)
}

fn check(mail: &NewMail) -> Result<()> {
    let mut problems = Problems::new();
    let addresses =
        [("to", Some(&mail.to)), ("fromAddress", mail.from_address.as_ref()), ("replyTo", mail.reply_to.as_ref())];
    for (field, address) in addresses {
        let Some(address) = address else { continue };
        if spans_lines(address) || address.parse::<Mailbox>().is_err() {
            problems.add(field, "must be an email address");
        }
    }
    for (field, text) in [("fromName", &mail.from_name), ("subject", &mail.subject)] {
        if spans_lines(text) {
            problems.add(field, "must not contain a line break");
        }
    }
    problems.finish()
}

/// A line break in a header would let whoever chose the text add headers and recipients of their own.
fn spans_lines(text: &str) -> bool {
    text.contains(['\r', '\n', '\0'])
}

/// The service's own address, such as `Shop <no-reply@example.com>`.
#[derive(Clone, Debug)]
pub struct Sender(Mailbox);

impl FromStr for Sender {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        text.parse().map(Self).map_err(|_| "must be an email address".to_owned())
    }
}

/// Sends queued mail.
pub struct Mailer(Dispatch<Post>, Sweep<Post>);

impl Mailer {
    pub fn new(db: Db, keyring: Keyring, transport: MailTransport, from: Sender) -> Self {
        let post = Post { transport, from: from.0 };
        Self(Dispatch::new(db.clone(), keyring, post), Sweep::new(db))
    }

    pub fn add_to(self, runner: &Runner) {
        runner.add(self.0);
        runner.add(self.1);
    }
}

pub(crate) struct Post {
    transport: MailTransport,
    /// The service's own address.
    from: Mailbox,
}

const MINUTE: u64 = 60;

impl Channel for Post {
    type Content = MailContent;

    const NAME: &'static str = "mail";
    const TABLE: &'static str = "mail_outbox";
    const SQL: &'static Sql = delivery::statements!("mail_outbox");
    const PAUSES: &'static [Duration] = &[
        Duration::from_secs(MINUTE),
        Duration::from_secs(5 * MINUTE),
        Duration::from_secs(30 * MINUTE),
        Duration::from_secs(120 * MINUTE),
        Duration::from_secs(720 * MINUTE),
    ];

    async fn send(&self, message: Message<MailContent>) -> Result<(), SendFailure> {
        let wrapping = match self.transport {
            MailTransport::File(_) => Wrapping::None,
            MailTransport::Smtp(_) | MailTransport::Log => Wrapping::Safe,
        };
        let letter = letter::write(&self.from, &message, wrapping).map_err(SendFailure::permanent)?;
        let Message { id, recipient, content, .. } = message;
        match &self.transport {
            MailTransport::Log => {
                // What a developer without a mail server needs is the link in the text.
                tracing::info!(to = recipient, subject = content.subject, "mail, not sent:\n{}", content.text);
                Ok(())
            }
            transport => transport.send(&id, letter).await,
        }
    }
}
