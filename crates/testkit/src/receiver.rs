//! A real server on a port of its own that keeps what it is sent: for webhooks, gateways and other outside calls.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::body::{Body, to_bytes};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Method, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
};

/// Nothing waits for this time to pass; it ends a test that would hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Received {
    pub method: Method,
    /// Path and query.
    pub path: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Received {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the request's body is JSON")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// What a receiver does with a request.
#[derive(Clone, Debug)]
pub enum Reply {
    Status(u16),
    Redirect(String),
    /// Never answers.
    Hang,
    /// Closes the connection instead of answering.
    Reset,
    /// Begins to answer 200 and breaks off.
    Half,
    /// 200 with this `Content-Type` and this body.
    Body(&'static str, String),
    /// 200 with this `Content-Type`, and this piece of a body again and again.
    Endless(&'static str, &'static str),
}

/// A server that answers 200, or what it was told to. Gone when it is dropped.
pub struct Receiver {
    base: String,
    state: Arc<State>,
    serving: JoinHandle<()>,
}

struct State {
    kept: Mutex<Kept>,
    count: watch::Sender<usize>,
}

struct Kept {
    received: Vec<Received>,
    /// One for each of the next requests.
    next: VecDeque<Reply>,
    /// For all others.
    always: Reply,
}

impl State {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("the listener has an address");
        let kept = Kept { received: Vec::new(), next: VecDeque::new(), always: Reply::Status(200) };
        let state = Arc::new(State { kept: Mutex::new(kept), count: watch::Sender::new(0) });
        let serving = tokio::spawn(serve(listener, Arc::clone(&state)));
        Self { base: format!("http://{address}"), state, serving }
    }

    /// The address of a path here.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The next requests get these statuses, one each.
    pub fn answer_next(&self, statuses: &[u16]) {
        self.reply_next(statuses.iter().map(|status| Reply::Status(*status)));
    }

    /// The next requests are treated like this, one each.
    pub fn reply_next(&self, replies: impl IntoIterator<Item = Reply>) {
        self.state.kept().next.extend(replies);
    }

    /// What happens to all others: 200 unless something else is said here.
    pub fn reply_always(&self, reply: Reply) {
        self.state.kept().always = reply;
    }

    /// What came so far.
    pub fn received(&self) -> Vec<Received> {
        self.state.kept().received.clone()
    }

    /// Waits until so many requests came, and gives them.
    pub async fn wait_for(&self, count: usize) -> Vec<Received> {
        let mut counted = self.state.count.subscribe();
        let arrived = tokio::time::timeout(PATIENCE, counted.wait_for(|seen| *seen >= count)).await;
        assert!(arrived.is_ok(), "{count} requests were expected, and {} came", self.received().len());
        self.received()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Until it is aborted, which ends the connections too.
async fn serve(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.expect("the receiver accepts until it is dropped");
        let state = Arc::clone(&state);
        connections.spawn(async move {
            let service = service_fn(move |request| keep(Arc::clone(&state), request));
            // An error here is what the test asked for, or the caller's end.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn keep(state: Arc<State>, request: http::Request<Incoming>) -> io::Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(Body::new(body), 64 * 1024 * 1024).await.map_err(io::Error::other)?.to_vec();
    let path = parts.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    let received = Received { method: parts.method, path, headers: parts.headers, body };
    let reply = {
        let mut kept = state.kept();
        kept.received.push(received);
        kept.next.pop_front().unwrap_or_else(|| kept.always.clone())
    };
    state.count.send_modify(|count| *count += 1);
    let mut response = Response::default();
    match reply {
        Reply::Status(status) => *response.status_mut() = StatusCode::from_u16(status).expect("a status"),
        Reply::Redirect(location) => {
            *response.status_mut() = StatusCode::FOUND;
            response.headers_mut().insert(header::LOCATION, location.parse().expect("a header's value"));
        }
        Reply::Hang => std::future::pending().await,
        Reply::Reset => return Err(io::Error::other("reset")),
        Reply::Half => {
            let parts = [Ok(Bytes::from_static(b"half ")), Err(io::Error::other("broken off"))];
            response.headers_mut().insert(header::CONTENT_LENGTH, 1_000.into());
            *response.body_mut() = Body::from_stream(stream::iter(parts));
        }
        Reply::Body(content_type, body) => {
            response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
            *response.body_mut() = body.into();
        }
        Reply::Endless(content_type, piece) => {
            response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
            let piece = Bytes::from(piece.repeat(10_000));
            *response.body_mut() = Body::from_stream(stream::repeat_with(move || Ok::<_, io::Error>(piece.clone())));
        }
    }
    Ok(response)
}
