//! Ways for mail to leave, chosen by a URL.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use kernel::Secret;
use lettre::{
    AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor,
    transport::smtp::{
        authentication::Credentials,
        client::{Tls, TlsParameters},
    },
};
use url::Url;

use crate::delivery::{self, SendFailure};

/// Where mail goes.
pub enum MailTransport {
    /// `smtp://user:password@host:port`, encrypted by STARTTLS before anything is told, or `smtps://…`, from the first
    /// byte on.
    Smtp(AsyncSmtpTransport<Tokio1Executor>),
    /// `file:DIR`: one `.eml` file per message.
    File(PathBuf),
    /// `log:`: the text goes to the log, links included. For development only.
    Log,
}

/// Between two answers of the server.
const SERVER_TIMEOUT: Duration = Duration::from_secs(15);

impl MailTransport {
    /// The error says what is wrong with the URL without repeating it: it may hold a password.
    pub fn from_url(url: &Secret<String>) -> Result<Self, String> {
        let text = url.expose().as_str();
        if text == "log:" {
            return Ok(Self::Log);
        }
        if let Some(folder) = text.strip_prefix("file:") {
            return delivery::file::folder(folder).map(Self::File);
        }
        let url = Url::parse(text).map_err(|error| format!("is not a URL: {error}"))?;
        match url.scheme() {
            "smtp" | "smtps" => smtp(&url).map(Self::Smtp),
            _ => Err("must be smtp://user:password@host:port, smtps://…, file:DIR or log:".into()),
        }
    }

    /// `id` names the file.
    pub(super) async fn send(&self, id: &str, letter: Message) -> Result<(), SendFailure> {
        match self {
            Self::Smtp(server) => match server.send(letter).await {
                Ok(_) => Ok(()),
                Err(error) if error.is_permanent() => Err(SendFailure::permanent(error)),
                Err(error) => Err(SendFailure::passing(error)),
            },
            Self::File(folder) => delivery::file::write(folder, &format!("{id}.eml"), &letter.formatted()).await,
            Self::Log => Ok(()),
        }
    }
}

fn smtp(url: &Url) -> Result<AsyncSmtpTransport<Tokio1Executor>, String> {
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or("has no host")?.to_owned();
    let parameters = TlsParameters::new(host.clone()).map_err(|error| format!("cannot use TLS: {error}"))?;
    let (tls, default_port) = match (url.scheme(), encryption(url, &host)?) {
        ("smtps", Encryption::Required) => (Tls::Wrapper(parameters), 465),
        ("smtps", _) => return Err("must not have tls: smtps is always encrypted".into()),
        (_, Encryption::Required) => (Tls::Required(parameters), 587),
        (_, Encryption::Opportunistic) => (Tls::Opportunistic(parameters), 587),
        (_, Encryption::None) => (Tls::None, 587),
    };
    let mut server = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
        .port(url.port().unwrap_or(default_port))
        .tls(tls)
        .timeout(Some(SERVER_TIMEOUT));
    if !url.username().is_empty() {
        let password = url.password().unwrap_or_default();
        server = server.credentials(Credentials::new(decoded(url.username())?, decoded(password)?));
    }
    Ok(server.build())
}

enum Encryption {
    None,
    /// When the server offers it: whoever stands in between can keep the offer back.
    Opportunistic,
    Required,
}

/// As `?tls=` says. Without it encryption is demanded, except on this machine, where nobody stands in between.
fn encryption(url: &Url, host: &str) -> Result<Encryption, String> {
    let mut wish = None;
    for (name, value) in url.query_pairs() {
        match (&*name, &*value) {
            ("tls", "none") => wish = Some(Encryption::None),
            ("tls", "opportunistic") => wish = Some(Encryption::Opportunistic),
            ("tls", "required") => wish = Some(Encryption::Required),
            ("tls", _) => return Err("has a tls other than none, opportunistic and required".into()),
            (name, _) => return Err(format!("has the parameter {name}, which is unknown; only tls is known")),
        }
    }
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let local = host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback());
    let default = if local && url.scheme() == "smtp" { Encryption::Opportunistic } else { Encryption::Required };
    Ok(wish.unwrap_or(default))
}

/// A user name or password with `@`, `:` or `/` in it is percent-encoded in a URL.
fn decoded(part: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2).ok_or("has a broken percent-encoding")?;
        let digits = digits.iter().try_fold(0, |value, &digit| Some(value * 16 + char::from(digit).to_digit(16)?));
        let byte = digits.and_then(|value| u8::try_from(value).ok()).ok_or("has a broken percent-encoding")?;
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| "has a user name or password that is not UTF-8".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<MailTransport, String> {
        MailTransport::from_url(&Secret::new(url.to_owned()))
    }

    #[test]
    fn every_documented_url_is_understood() {
        assert!(matches!(parse("smtp://me:s3cr%40t@mail.example:2525"), Ok(MailTransport::Smtp(_))));
        assert!(matches!(parse("smtps://mail.example"), Ok(MailTransport::Smtp(_))));
        assert!(matches!(parse("smtp://mail.example?tls=opportunistic"), Ok(MailTransport::Smtp(_))));
        assert!(matches!(parse("file:./mail"), Ok(MailTransport::File(_))));
        assert!(matches!(parse("log:"), Ok(MailTransport::Log)));
    }

    #[test]
    fn a_wrong_url_is_refused_without_repeating_it() {
        for wrong in [
            "",
            "mail.example",
            "smtp://",
            "imap://me:s3cret@host",
            "file:",
            "smtp://me:s3cret%zz@host",
            "smtp://host?tls=maybe",
            "smtp://host?starttls=1",
            "smtps://host?tls=none",
        ] {
            let message = parse(wrong).err().expect(wrong);
            assert!(!message.contains("s3cret"), "{message}");
        }
    }

    #[test]
    fn percent_encoding_is_undone() {
        assert_eq!(decoded("a%40b%3A%c3%a9"), Ok("a@b:é".to_owned()));
        assert!(decoded("%4").is_err() && decoded("%+1").is_err() && decoded("%ff").is_err());
    }
}
