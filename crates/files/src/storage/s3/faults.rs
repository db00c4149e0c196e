//! What went wrong at the storage, in words for whoever runs the service.

use std::{fmt, time::Duration};

use kernel::{Code, Error};
use spine::outbound::{Answer, Failure, StatusCode};

const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Longer ones are no codes.
const LONGEST_CODE: usize = 60;

/// Why the storage did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It did not answer, or not in its right mind. That passes.
    Away(String),
    /// It answered that it will not. That stays until somebody changes the configuration, or the storage.
    Refused { status: u16, code: String },
    /// The object is not what it was a moment ago.
    Changed,
}

impl Fault {
    pub(super) fn of(status: StatusCode, body: &[u8]) -> Self {
        let code = code_in(body);
        match status {
            StatusCode::PRECONDITION_FAILED => Self::Changed,
            _ if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
                Self::Away(format!("it answered {} {code}", status.as_u16()).trim_end().to_owned())
            }
            _ => Self::Refused { status: status.as_u16(), code },
        }
    }

    pub(super) fn of_answer(answer: &Answer) -> Self {
        Self::of(answer.status, &answer.body)
    }

    pub(super) fn strange(what: &str) -> Self {
        Self::Away(format!("its answer to {what} cannot be read"))
    }
}

/// `<Error><Code>NoSuchBucket</Code>…`; some storages answer without a body.
fn code_in(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>")).map_or("", |(code, _)| code);
    let is_code = code.len() <= LONGEST_CODE && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_code { code.to_owned() } else { String::new() }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self::Away(failure.to_string())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away(cause) => write!(f, "it cannot be reached: {cause}"),
            Self::Refused { status, code } => {
                write!(f, "it answers {status}")?;
                if !code.is_empty() {
                    write!(f, " {code}")?;
                }
                match (*status, code.as_str()) {
                    (_, "NoSuchBucket") | (404, _) => f.write_str(": there is no such bucket"),
                    (_, "PermanentRedirect" | "AuthorizationHeaderMalformed" | "AuthorizationQueryParametersError")
                    | (301 | 307, _) => f.write_str(": the bucket is in another region, or at another address"),
                    (_, "RequestTimeTooSkewed") => f.write_str(": its clock and this machine's differ"),
                    (401 | 403, _) => f.write_str(
                        ": the key or the secret is wrong, or lacks the right to list the bucket and to read, write and \
                         delete what is in it",
                    ),
                    _ => Ok(()),
                }
            }
            Self::Changed => f.write_str("the object was changed meanwhile"),
        }
    }
}

impl std::error::Error for Fault {}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        if fault == Fault::Changed {
            let message = "The file was posted once more while it was taken over. Finish it again.";
            return Self::new(Code::Conflict, message);
        }
        let message = "The storage of files does not do its work at the moment. Try again later.";
        Self::new(Code::StorageUnavailable, message).with_retry_after(RETRY_AFTER).with_source(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(status: u16, body: &str) -> Fault {
        Fault::of(StatusCode::from_u16(status).expect("a status"), body.as_bytes())
    }

    #[test]
    fn what_stays_wrong_is_told_from_what_passes() {
        let body = "<?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code><Message>x</Message></Error>";
        assert_eq!(fault(404, body).to_string(), "it answers 404 NoSuchBucket: there is no such bucket");
        assert!(fault(403, "<Code>SignatureDoesNotMatch</Code>").to_string().contains("the secret is wrong"));
        assert!(fault(301, "").to_string().contains("another region"));
        assert!(fault(400, "<Code>AuthorizationHeaderMalformed</Code>").to_string().contains("another region"));
        assert_eq!(fault(503, "<Code>SlowDown</Code>"), Fault::Away("it answered 503 SlowDown".into()));
        assert_eq!(fault(500, "<Code>\r\n<script></Code>"), Fault::Away("it answered 500".into()));
        assert_eq!(fault(412, ""), Fault::Changed);
    }

    #[test]
    fn callers_learn_to_wait_and_nothing_else() {
        let error = Error::from(fault(403, "<Code>InvalidAccessKeyId</Code>"));
        assert_eq!((error.code(), error.retry_after()), (Code::StorageUnavailable, Some(RETRY_AFTER)));
        assert!(!error.public().contains("403"));
        assert_eq!(Error::from(Fault::Changed).code(), Code::Conflict);
    }
}
