//! A queued mail as an RFC 5322 message.

use std::time::{Duration, SystemTime};

use lettre::{
    Address,
    message::{
        Body, Mailbox, MultiPart, SinglePart,
        header::{ContentTransferEncoding, ContentType},
    },
};

use super::MailContent;
use crate::delivery::Message;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// `from` is the service's own address; the app's name and, if it has one, address are put in its place.
pub(super) fn write(
    from: &Mailbox,
    message: &Message<MailContent>,
    wrapping: Wrapping,
) -> Result<lettre::Message, Failed> {
    let MailContent { from_name, from_address, reply_to, subject, text, html } = &message.content;
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
    let (plain, html) = match wrapping {
        Wrapping::Safe => (SinglePart::plain(text.clone()), SinglePart::html(html.clone())),
        Wrapping::None => (as_it_is(ContentType::TEXT_PLAIN, text), as_it_is(ContentType::TEXT_HTML, html)),
    };
    let letter = if message.content.html.is_empty() {
        letter.singlepart(plain)
    } else {
        letter.multipart(MultiPart::alternative().singlepart(plain).singlepart(html))
    };
    Ok(letter?)
}

/// How the text is written into the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrapping {
    /// For servers, which may refuse long lines and anything but ASCII.
    Safe,
    /// For files that people open: a link stays in one piece.
    None,
}

fn as_it_is(kind: ContentType, text: &str) -> SinglePart {
    let lines = text.replace("\r\n", "\n").replace('\n', "\r\n");
    let body = Body::dangerous_pre_encoded(lines.into_bytes(), ContentTransferEncoding::EightBit);
    SinglePart::builder().header(kind).body(body)
}

fn date(at: kernel::Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(at.as_seconds()).unwrap_or(0))
}
