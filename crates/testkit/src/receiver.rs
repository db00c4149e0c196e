//! A real server on a port of its own that keeps what it is sent: for webhooks, gateways and other outside calls.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{Router, body::to_bytes, extract::Request, response::Response};
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

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

#[derive(Default)]
struct Kept {
    received: Vec<Received>,
    answers: VecDeque<StatusCode>,
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
        let state = Arc::new(State { kept: Mutex::default(), count: watch::Sender::new(0) });
        let keeper = Arc::clone(&state);
        let router = Router::new().fallback(move |request: Request| keep(Arc::clone(&keeper), request));
        let serving = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("the receiver serves until it is dropped");
        });
        Self { base: format!("http://{address}"), state, serving }
    }

    /// The address of a path here.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The next requests get these statuses, one each; after that it is 200 again.
    pub fn answer_next(&self, statuses: &[u16]) {
        let statuses = statuses.iter().map(|status| StatusCode::from_u16(*status).expect("a status"));
        self.state.kept().answers.extend(statuses);
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

async fn keep(state: Arc<State>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 64 * 1024 * 1024).await.expect("the request's body arrives").to_vec();
    let path = parts.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    let received = Received { method: parts.method, path, headers: parts.headers, body };
    let status = {
        let mut kept = state.kept();
        kept.received.push(received);
        kept.answers.pop_front().unwrap_or(StatusCode::OK)
    };
    state.count.send_modify(|count| *count += 1);
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}
