//! A queued mail as an RFC 5322 message.

use std::time::{Duration, SystemTime};

use lettre::{
    Address,
    message::{Mailbox, MultiPart, SinglePart},
};

use super::Content;
use crate::delivery::Message;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// `from` is the service's own address; the app's name and, if it has one, address are put in its place.
pub(super) fn write(from: &Mailbox, message: &Message<Content>) -> Result<lettre::Message, Failed> {
    let Content { from_name, from_address, reply_to, subject, text, html } = &message.content;
    let name = if from_name.is_empty() { from.name.clone() } else { Some(from_name.clone()) };
    let address: Address = match from_address {
        Some(address) => address.parse::<Mailbox>()?.email,
        None => from.email.clone(),
    };
    let mut letter = lettre::Message::builder()
        .message_id(Some(format!("<{}@{}>", message.id, from.email.domain())))
        .date(date(message.queued_at))
        .from(Mailbox::new(name, address))
        .to(message.recipient.parse()?)
        .subject(subject.clone());
    if let Some(reply_to) = reply_to {
        letter = letter.reply_to(reply_to.parse()?);
    }
    let letter = if html.is_empty() {
        letter.singlepart(SinglePart::plain(text.clone()))
    } else {
        letter.multipart(MultiPart::alternative_plain_html(text.clone(), html.clone()))
    };
    Ok(letter?)
}

fn date(at: kernel::Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(at.as_seconds()).unwrap_or(0))
}
