//! A payment provider that speaks the wire form of a Stripe-compatible API over HTTP, is as strict as the real one about what it
//! gets, and can fail, hang, answer late and lose its answers. What happens there makes events, which a test sends in any order.

mod api;
mod forms;
mod kept;
mod stage;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{StatusCode, header::CONTENT_TYPE};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use api::Refusal;
use kept::Kept;
pub use stage::{Stage, WEBHOOK_SECRET, enable, signature, tell};

pub const SECRET_KEY: &str = "sk_test_of_the_tests";

/// A provider on a port of its own. Gone when it is dropped.
pub struct PaymentProvider {
    base: String,
    state: Arc<Mutex<Kept>>,
    serving: JoinHandle<()>,
}

/// What goes wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It fails and nothing was done.
    Fails,
    /// It is refused.
    Refuses,
    /// It is done, and the answer is lost.
    LosesTheAnswer,
    /// It is done, and nobody is ever answered.
    Hangs,
    /// It is not done, and nobody is ever answered.
    Ignores,
    /// It is done, and answered after this time.
    Late(Duration),
}

impl Drop for PaymentProvider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl PaymentProvider {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let base = format!("http://{}", listener.local_addr().expect("a port"));
        let state: Arc<Mutex<Kept>> = Arc::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&state));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        Self { base, state, serving }
    }

    /// Without `/v1`.
    pub fn url(&self) -> &str {
        &self.base
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        locked(&self.state)
    }

    /// What goes wrong with the next calls, one for each.
    pub fn trouble(&self, trouble: impl IntoIterator<Item = Trouble>) {
        self.kept().trouble.extend(trouble);
    }

    /// Waits until somebody waits for an answer in vain.
    pub async fn hung(&self) {
        let hung = Arc::clone(&self.kept().hung);
        hung.notified().await;
    }

    /// From now on each call meets this trouble with a chance of one in so many, chosen by a fixed seed.
    pub fn trouble_sometimes(&self, one_in: u64, kinds: &[Trouble]) {
        self.kept().sometimes = Some((one_in, kinds.to_vec()));
    }

    pub fn no_trouble(&self) {
        let mut kept = self.kept();
        kept.sometimes = None;
        kept.trouble.clear();
    }

    /// Its clock, in seconds.
    pub fn set_time(&self, now: i64) {
        self.kept().now = now;
    }

    /// `METHOD path` of all calls that were done, in order; a repetition with the same key is the same call.
    pub fn calls(&self) -> Vec<String> {
        self.kept().calls.clone()
    }

    /// How many objects there are of a kind, by the start of their ids.
    pub fn count(&self, prefix: &str) -> usize {
        self.all(prefix).len()
    }

    /// The objects of a kind, oldest first.
    pub fn all(&self, prefix: &str) -> Vec<Value> {
        let of_kind = |(id, _): &(&String, &Value)| id.starts_with(&format!("{prefix}_"));
        self.kept().objects.iter().filter(of_kind).map(|(_, object)| object.clone()).collect()
    }

    pub fn object(&self, id: &str) -> Value {
        self.kept().objects.get(id).cloned().unwrap_or_default()
    }

    /// From now on its totals are wrong by so much.
    pub fn drift_by(&self, off: i64) {
        self.kept().off_by = off;
    }

    /// The newest total of a metric for a customer.
    pub fn total(&self, customer: &str, metric: &str) -> Option<i64> {
        self.kept().newest_total(customer, metric)
    }

    /// The customer pays for a checkout: its subscription, which begins.
    pub fn pay(&self, session: &str) -> String {
        self.kept().pay(session)
    }

    /// The period ends and is paid for, or not; `attempt` counts what was tried for this invoice.
    pub fn renew(&self, subscription: &str, paid: bool, attempt: u32) {
        self.kept().renew(subscription, paid, attempt);
    }

    /// Something happens to a subscription there: the customer uses the portal, dunning gives up, its end comes.
    pub fn change(&self, subscription: &str, members: &Value) {
        self.kept().change(subscription, members);
    }

    /// What happened since the last time, as events, in order.
    pub fn take_events(&self) -> Vec<Value> {
        std::mem::take(&mut self.kept().events)
    }
}

fn locked(state: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(State(state): State<Arc<Mutex<Kept>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if let Some(session) = parts.uri.path().strip_prefix("/c/") {
        // Somebody on the page of a checkout pays.
        locked(&state).pay(session);
        return StatusCode::OK.into_response();
    }
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
    let (trouble, done) = {
        let mut kept = locked(&state);
        let trouble = kept.next_trouble();
        let done = match trouble {
            Some(Trouble::Fails | Trouble::Ignores) => {
                Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "api_error", "out of order"))
            }
            Some(Trouble::Refuses) => Err(Refusal::new(StatusCode::PAYMENT_REQUIRED, "card_error", "not this one")),
            _ => api::act(&mut kept, &parts, &body),
        };
        (trouble, done)
    };
    match trouble {
        Some(Trouble::Hangs | Trouble::Ignores) => {
            locked(&state).hung.notify_one();
            std::future::pending::<()>().await;
        }
        Some(Trouble::Late(time)) => tokio::time::sleep(time).await,
        Some(Trouble::LosesTheAnswer) => {
            return told(Refusal::new(StatusCode::BAD_GATEWAY, "api_error", "the answer was lost"));
        }
        _ => {}
    }
    match done {
        Ok(object) => written(StatusCode::OK, &object),
        Err(refusal) => told(refusal),
    }
}

fn told(refusal: Refusal) -> Response {
    let Refusal { status, kind, message, param } = refusal;
    let code = if status == StatusCode::NOT_FOUND { json!("resource_missing") } else { Value::Null };
    let error = json!({ "type": kind, "message": message, "param": param, "code": code });
    written(status, &json!({ "error": error }))
}

fn written(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
