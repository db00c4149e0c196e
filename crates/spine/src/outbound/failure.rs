//! Why a call brought no answer, in words that may be told to whoever named the target.

use std::{error::Error as StdError, fmt, io};

/// Why there is no answer. The text names neither the URL, which may hold a password, nor an address that was looked up,
/// which may be nobody's business.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The target is not on the public internet, or not HTTP. Nothing was sent.
    Refused,
    /// There is no such name, or nobody accepts connections there.
    Unreachable(String),
    TimedOut,
    /// The answer is longer than the limit.
    TooLarge,
    /// The other side's certificate or its TLS is wrong.
    Tls(String),
    /// The connection broke, or what came over it was not HTTP.
    Broken(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("the target is not a public HTTP address"),
            Self::Unreachable(cause) => write!(f, "could not connect: {cause}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::TooLarge => f.write_str("the answer is too large"),
            Self::Tls(cause) => write!(f, "TLS failed: {cause}"),
            Self::Broken(cause) => write!(f, "the answer could not be read: {cause}"),
        }
    }
}

impl StdError for Failure {}

/// The resolver's word that a name has no address that may be called.
#[derive(Debug)]
pub(super) struct RefusedName;

impl fmt::Display for RefusedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Failure::Refused.fmt(f)
    }
}

impl StdError for RefusedName {}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        if causes(&error).any(|cause| cause.is::<RefusedName>()) {
            return Self::Refused;
        }
        if error.is_timeout() {
            return Self::TimedOut;
        }
        let root = causes(&error).last().map_or_else(|| error.to_string(), ToString::to_string);
        if causes(&error).any(|cause| cause.is::<rustls::Error>()) {
            Self::Tls(root)
        } else if error.is_connect() {
            Self::Unreachable(root)
        } else {
            Self::Broken(root)
        }
    }
}

/// The causes below an error, those included that `io::Error` wraps and does not count as its source.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error: &&'a (dyn StdError + 'static)| {
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map(|wrapped| wrapped as &(dyn StdError + 'static)).or_else(|| error.source())
    })
}
