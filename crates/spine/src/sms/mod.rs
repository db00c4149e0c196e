//! SMS: queued in the transaction that calls for it, sent by a job after the commit, like mail.

mod transport;

use std::time::Duration;

use kernel::{AppId, Phone as PhoneNumber, Problems, Result, Words, id_kinds};
use serde::{Deserialize, Serialize};
use store::{Db, Tx};
use vault::Keyring;

use crate::{
    Runner,
    delivery::{self, Channel, Dispatch, Message, SendFailure, Sql, Sweep},
};
pub use transport::SmsTransport;

id_kinds! {
    /// One SMS on its way.
    SmsId(Sms) = "sms";
}

/// A text message to be sent.
#[derive(Clone, Debug)]
pub struct NewSms {
    pub app: Option<AppId>,
    /// In international form: `+491701234567`.
    pub to: String,
    pub text: String,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct SmsContent {
    text: String,
}

/// Queues an SMS that leaves once `tx` has committed.
pub fn queue_sms(tx: &mut Tx<'_>, keyring: &Keyring, sms: &NewSms) -> Result<SmsId> {
    let mut problems = Problems::new();
    problems.add_some("to", PhoneNumber::problem(&sms.to));
    problems.add_some("text", Words::problem(&sms.text));
    problems.finish()?;
    let id: SmsId = tx.new_id();
    let content = SmsContent { text: sms.text.clone() };
    delivery::queue::<Phone>(tx, keyring, &id.to_string(), sms.app, &sms.to, &content)?;
    Ok(id)
}

/// Sends queued SMS.
pub struct Texter(Dispatch<Phone>, Sweep<Phone>);

impl Texter {
    pub fn new(db: Db, keyring: Keyring, transport: SmsTransport) -> Self {
        Self(Dispatch::new(db.clone(), keyring, Phone { transport }), Sweep::new(db))
    }

    pub fn add_to(self, runner: &Runner) {
        runner.add(self.0);
        runner.add(self.1);
    }
}

pub(crate) struct Phone {
    transport: SmsTransport,
}

impl Channel for Phone {
    type Content = SmsContent;

    const NAME: &'static str = "sms";
    const TABLE: &'static str = "sms_outbox";
    const SQL: &'static Sql = delivery::statements!("sms_outbox");
    /// Shorter than for mail: a code that arrives tomorrow helps nobody.
    const PAUSES: &'static [Duration] =
        &[Duration::from_secs(15), Duration::from_secs(60), Duration::from_secs(300), Duration::from_secs(900)];

    async fn send(&self, message: Message<SmsContent>) -> Result<(), SendFailure> {
        let Message { id, recipient, content, .. } = message;
        self.transport.send(&id, &recipient, &content.text).await
    }
}
