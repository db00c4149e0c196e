//! One attempt: a signed request to an address that somebody else named, and what came back.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use kernel::{Ticker, Timestamp};
use spine::outbound::{BodyLimit, Limits, Method, Outbound, Request, Url};

use crate::secrets::{SigningSecret, headers};

/// For the whole exchange.
const LIMITS: Limits =
    Limits { total: Duration::from_secs(10), connect: Duration::from_secs(10), body: BodyLimit::Beginning(64 * 1024) };
/// Characters of an answer that are shown to the operator.
const LONGEST_SAID: usize = 500;

/// What is sent.
pub(crate) struct Parcel {
    pub(crate) event_id: String,
    pub(crate) event_type: String,
    pub(crate) url: String,
    pub(crate) body: String,
    /// Newest first.
    pub(crate) secrets: Arc<[SigningSecret]>,
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) response_code: Option<i64>,
    /// `None` when it was acknowledged.
    pub(crate) error: Option<String>,
    pub(crate) latency_ms: i64,
    /// The beginning of the answer's body, where it was not acknowledged.
    pub(crate) said: String,
}

/// Signs and sends. A target that may not be called is a failure like any other, and nothing is sent to it.
pub(crate) async fn send(outbound: &Outbound, at: Timestamp, parcel: Parcel) -> Answered {
    let started = Ticker.now();
    let (response_code, error, said) = match exchange(outbound, at, parcel).await {
        Ok((status, _)) if (200..300).contains(&status) => (Some(status), None, String::new()),
        Ok((status, said)) => (Some(status), Some(format!("The receiver answered {status}.")), said),
        Err(error) => (None, Some(error), String::new()),
    };
    let latency_ms = i64::try_from(Ticker.since(started).as_millis()).unwrap_or(i64::MAX);
    Answered { response_code, error, latency_ms, said }
}

async fn exchange(outbound: &Outbound, at: Timestamp, parcel: Parcel) -> Result<(i64, String), String> {
    let Parcel { event_id, event_type, url, body, secrets } = parcel;
    let url = Url::parse(&url).map_err(|_| "The URL cannot be read.".to_owned())?;
    let headers = headers(&event_id, &event_type, &body, at, &secrets)
        .map_err(|_| "The delivery could not be signed.".to_owned())?;
    let request = Request { method: Method::POST, url, headers, body: Bytes::from(body) };
    match outbound.send(request, &LIMITS).await {
        Ok(answer) => {
            let said = String::from_utf8_lossy(&answer.body);
            let said = said.chars().filter(|c| !c.is_control() || *c == '\n').take(LONGEST_SAID).collect();
            Ok((answer.status.as_u16().into(), said))
        }
        Err(failure) => Err(sentence(&failure.to_string())),
    }
}

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}
