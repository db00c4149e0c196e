//! Server-sent events, read as a browser does.

use std::time::Duration;

use axum::{body::Body, extract::Request};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::{Caller, TestApp};

/// Nothing waits for this time to pass; it ends a test that would hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamEvent {
    pub id: Option<String>,
    pub data: Value,
}

/// An open stream.
pub struct OpenStream {
    body: Body,
    unread: String,
    comments: usize,
}

/// A token that opens streams for a signed-in member.
pub async fn token(user: &Caller) -> String {
    user.post("/realtime/authorize", json!({})).await.expect(200).text("/token")
}

impl OpenStream {
    /// Opens the stream of a token, after the event with an id.
    pub async fn open(app: &TestApp, token: &str, last_event_id: Option<&str>) -> Self {
        Self::at(app, &format!("/v1/realtime/stream?token={token}"), last_event_id, None).await
    }

    /// Opens any stream.
    pub async fn at(app: &TestApp, path: &str, last_event_id: Option<&str>, authorization: Option<&str>) -> Self {
        let mut request = Request::builder().uri(path);
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let request = request.body(Body::empty()).expect("a request");
        let response = app.service().app().oneshot(request).await.unwrap_or_else(|never| match never {});
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut stream = Self { body: response.into_body(), unread: String::new(), comments: 0 };
        stream.wait_for_comments(1).await;
        stream
    }

    async fn piece(&mut self) -> Option<Bytes> {
        let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.expect("the stream goes on or ends");
        frame.map(|frame| frame.expect("the stream is whole").into_data().expect("data"))
    }

    /// The next event; `None` when the stream has ended.
    pub async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            while let Some((block, rest)) = self.unread.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.unread = rest;
                match parse(&block) {
                    Some(event) => return Some(event),
                    None => self.comments += 1,
                }
            }
            let piece = self.piece().await?;
            self.unread.push_str(std::str::from_utf8(&piece).expect("text"));
        }
    }

    /// Waits for so many comments since it was opened.
    pub async fn wait_for_comments(&mut self, count: usize) {
        while self.comments < count {
            let piece = self.piece().await.expect("the stream is open");
            assert_eq!(piece, ":\n\n", "a comment");
            self.comments += 1;
        }
    }

    /// The next event's type and data.
    pub async fn told(&mut self) -> (String, Value) {
        let event = self.next().await.expect("an event");
        (event.data["type"].as_str().expect("a type").to_owned(), event.data["data"].clone())
    }

    /// Fails unless the stream ends without a further event.
    pub async fn ends(&mut self) {
        assert_eq!(self.next().await, None);
    }
}

fn parse(block: &str) -> Option<StreamEvent> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    assert_eq!(field("event"), None, "onmessage hears all");
    let data = field("data")?;
    Some(StreamEvent { id: field("id").map(str::to_owned), data: data.parse().expect("JSON") })
}
