//! The body of a request, read before the request takes a place among those in work: a client that sends slowly keeps
//! nobody else waiting. It has to arrive at a pace, and what is not read is drained or ends the connection.

use std::time::Duration;

use axum::{
    body::{Body, HttpBody},
    extract::Request,
    response::{IntoResponse, Response},
};
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Version, header};
use http_body_util::BodyExt;
use kernel::{Code, Error, Result, Tick, Ticker};
use tokio::time::timeout;

use crate::{Failure, limits::limited, shares::Share};

/// How slowly a body may arrive.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// For the first piece, and whenever the client is behind.
    pub grace: Duration,
    /// From then on.
    pub bytes_per_second: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { grace: Duration::from_secs(10), bytes_per_second: 4 * 1024 }
    }
}

impl Pace {
    /// How long so much may have taken.
    fn allows(self, arrived: usize) -> Duration {
        self.grace + Duration::from_secs((arrived / self.bytes_per_second.max(1) as usize) as u64)
    }
}

/// The request with all of its body, which weighs on the client's share while the share lives.
pub(crate) async fn whole(request: Request, limit: usize, pace: Pace, share: &mut Share) -> Result<Request> {
    if request.body().is_end_stream() {
        return Ok(request);
    }
    let (head, body) = request.into_parts();
    let expected = body.size_hint().exact().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
    let bytes = collect(body, limit, expected.min(limit), pace, share).await?;
    Ok(Request::from_parts(head, Body::from(bytes)))
}

async fn collect(mut body: Body, limit: usize, expected: usize, pace: Pace, share: &mut Share) -> Result<Bytes> {
    let began = Ticker.now();
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let mut arrived = 0;
    loop {
        let left = pace.allows(arrived).saturating_sub(Ticker.since(began));
        let Some(frame) = timeout(left, body.frame()).await.map_err(|_| too_slow())? else { break };
        let frame = frame.map_err(|error| unreadable().with_source(error))?;
        let Ok(piece) = frame.into_data() else { continue };
        arrived += piece.len();
        if arrived > limit {
            return Err(too_large());
        }
        if !share.grow(piece.len()) {
            return Err(at_once());
        }
        // Most bodies are one piece, which need not be copied.
        if first.is_empty() && all.is_empty() {
            first = piece;
        } else {
            if all.is_empty() {
                all.reserve(expected.max(arrived));
                all.extend_from_slice(&first);
            }
            all.extend_from_slice(&piece);
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// The body as a handler reads it piece by piece, at the same pace and within the same limit.
pub(crate) fn streamed(body: Body, limit: usize, pace: Pace) -> Body {
    let arriving = Arriving { body, began: Ticker.now(), arrived: 0 };
    let pieces = futures_util::stream::try_unfold(arriving, move |mut arriving| async move {
        loop {
            let left = pace.allows(arriving.arrived).saturating_sub(Ticker.since(arriving.began));
            let frame = timeout(left, arriving.body.frame()).await.map_err(|_| too_slow())?;
            let Some(frame) = frame else { return Ok::<_, Error>(None) };
            let Ok(piece) = frame.map_err(|error| unreadable().with_source(error))?.into_data() else { continue };
            arriving.arrived += piece.len();
            if arriving.arrived > limit {
                return Err(too_large());
            }
            return Ok(Some((piece, arriving)));
        }
    });
    Body::from_stream(pieces)
}

struct Arriving {
    body: Body,
    began: Tick,
    arrived: usize,
}

pub(crate) fn too_large() -> Error {
    Error::new(Code::BodyTooLarge, "The request body is larger than this operation accepts.")
}

fn unreadable() -> Error {
    Error::new(Code::MalformedRequest, "The body could not be read.")
}

fn too_slow() -> Error {
    Error::new(Code::MalformedRequest, "The body did not arrive in time.")
}

/// The client has its share.
pub(crate) fn at_once() -> Error {
    let message = "Too many requests at the same time from this address. Wait for answers first.";
    limited("at_once", message, Duration::from_secs(1))
}

/// A body of at most this size is read although nobody wants it, so that the connection can be used again.
const DRAINED: u64 = 64 * 1024;
const DRAINED_WITHIN: Duration = Duration::from_secs(1);

/// A larger one is read on beside the answer, up to so much and for so long: most clients look at an answer only once they have
/// sent everything, and a connection that is cut off meanwhile takes the answer away from them.
const LINGERED: usize = 80 * 1024 * 1024;
const LINGERED_FOR: Duration = Duration::from_secs(10);

/// A failure that is answered without the body. The connection stays usable, or the answer says that it ends.
pub(crate) async fn refuse(request: Request, error: Error) -> Response {
    let is_http2 = request.version() >= Version::HTTP_2;
    let drained = is_http2 || drain(request.into_body()).await;
    let mut response = Failure::from(error).into_response();
    if !drained {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn drain(mut body: Body) -> bool {
    if body.is_end_stream() {
        return true;
    }
    if body.size_hint().exact().is_none_or(|length| length > DRAINED) {
        tokio::spawn(timeout(LINGERED_FOR, read_away(body, LINGERED)));
        return false;
    }
    let all = async { while let Some(Ok(_)) = body.frame().await {} };
    timeout(DRAINED_WITHIN, all).await.is_ok()
}

/// Reads a body that nobody wants, up to a limit.
async fn read_away(mut body: Body, most: usize) {
    let mut read = 0;
    while read < most {
        let Some(Ok(frame)) = body.frame().await else { return };
        read += frame.data_ref().map_or(0, Bytes::len);
    }
}
