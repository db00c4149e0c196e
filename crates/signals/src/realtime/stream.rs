//! The body of an answer that does not end: what was missed, then what comes, and a comment from time to time.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderName, HeaderValue, StatusCode, header};
use tokio::{sync::mpsc, time::Interval};
use web::{Describe, Operation};

use super::hub::Place;

const HEARTBEAT: Bytes = Bytes::from_static(b":\n\n");

/// 200 with server-sent events.
pub(crate) struct EventStream {
    /// Sent first. Begins with a comment, so that the client knows at once that it is connected.
    first: VecDeque<Bytes>,
    frames: mpsc::Receiver<Bytes>,
    heartbeat: Interval,
    _place: Option<Place>,
}

impl EventStream {
    pub(crate) fn new(
        missed: Vec<Bytes>,
        frames: mpsc::Receiver<Bytes>,
        every: Duration,
        place: Option<Place>,
    ) -> Self {
        let mut first = VecDeque::from(missed);
        first.push_front(HEARTBEAT);
        let mut heartbeat = tokio::time::interval(every);
        heartbeat.reset();
        Self { first, frames, heartbeat, _place: place }
    }
}

impl Stream for EventStream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(frame) = self.first.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        match self.frames.poll_recv(context) {
            Poll::Ready(frame) => Poll::Ready(frame.map(Ok)),
            Poll::Pending => self.heartbeat.poll_tick(context).map(|_| Some(Ok(HEARTBEAT))),
        }
    }
}

impl IntoResponse for EventStream {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from_stream(self));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // nginx would hold back what is not much.
        headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
        response
    }
}

impl Describe for EventStream {
    fn describe(operation: &mut Operation) {
        operation.raw_answer(StatusCode::OK, "text/event-stream");
    }
}
