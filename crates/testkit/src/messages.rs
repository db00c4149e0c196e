//! Mail and SMS that left, read back from the folders they went to.

use std::{fs, io::ErrorKind, path::Path};

use mail_parser::{Address, MessageParser};
use serde_json::Value;

/// A mail as its recipient sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaughtMail {
    pub id: String,
    pub from: String,
    pub to: String,
    pub reply_to: Option<String>,
    pub subject: String,
    pub text: String,
    /// Empty when the mail has no HTML part.
    pub html: String,
}

impl CaughtMail {
    /// Every link in the text, in order.
    pub fn links(&self) -> Vec<String> {
        let words = self.text.split(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"'));
        let links = words.filter(|word| word.starts_with("http://") || word.starts_with("https://"));
        links.map(|link| link.trim_end_matches(['.', ',', ')', ';']).to_owned()).collect()
    }
}

/// An SMS as it was handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaughtSms {
    pub to: String,
    pub text: String,
}

pub(crate) fn mails(folder: &Path) -> Vec<CaughtMail> {
    files(folder, ".eml").into_iter().map(|(id, bytes)| mail(id, &bytes)).collect()
}

pub(crate) fn sms(folder: &Path) -> Vec<CaughtSms> {
    let read = |(_, bytes): (String, Vec<u8>)| {
        let message: Value = serde_json::from_slice(&bytes).expect("an SMS is written as JSON");
        let text = |member: &str| message[member].as_str().expect("an SMS has a recipient and a text").to_owned();
        CaughtSms { to: text("to"), text: text("text") }
    };
    files(folder, ".json").into_iter().map(read).collect()
}

/// Files are named after the message's id, and ids sort by creation.
fn files(folder: &Path, ending: &str) -> Vec<(String, Vec<u8>)> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => panic!("cannot look into {}: {error}", folder.display()),
    };
    let mut files: Vec<(String, Vec<u8>)> = entries
        .filter_map(|entry| {
            let entry = entry.expect("the folder can be read");
            let name = entry.file_name().into_string().expect("a message's id is text");
            let id = name.strip_suffix(ending).filter(|id| !id.starts_with('.'))?;
            Some((id.to_owned(), fs::read(entry.path()).expect("a message can be read")))
        })
        .collect();
    files.sort_unstable();
    files
}

fn mail(id: String, bytes: &[u8]) -> CaughtMail {
    let message = MessageParser::default().parse(bytes).expect("a mail is an RFC 5322 message");
    let part = |part: Option<std::borrow::Cow<'_, str>>| part.unwrap_or_default().replace("\r\n", "\n");
    CaughtMail {
        id,
        from: address(message.from()).expect("a mail has a sender"),
        to: address(message.to()).expect("a mail has a recipient"),
        reply_to: address(message.reply_to()),
        subject: message.subject().unwrap_or_default().to_owned(),
        text: part(message.body_text(0)),
        html: if message.html_part(0).is_some_and(|part| part.is_text_html()) {
            part(message.body_html(0))
        } else {
            String::new()
        },
    }
}

/// `Name <address>`, or the address alone.
fn address(header: Option<&Address<'_>>) -> Option<String> {
    let first = header?.first()?;
    let address = first.address()?;
    Some(first.name().map_or_else(|| address.to_owned(), |name| format!("{name} <{address}>")))
}
