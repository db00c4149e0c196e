//! What is left of a request: one log line without its secrets, and its count.

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use futures_util::FutureExt;
use http::Method;
use serde_json::Value;
use tracing::instrument::WithSubscriber;

use crate::shop::{own_app, shop};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn subscriber(&self) -> impl tracing::Subscriber + Send + Sync + use<> {
        let lines = self.clone();
        tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || lines.clone()).finish()
    }

    fn read(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[tokio::test]
async fn a_request_leaves_one_line_without_its_secrets() {
    let lines = Lines::default();
    let headers = [("x-api-key", "hunter2"), ("x-request-id", "r1")];
    let call = async { shop().call(Method::DELETE, "/v1/items/1?code=hunter2", &headers).await };
    call.with_subscriber(lines.subscriber()).await;
    let [line] = lines.read().try_into().unwrap();
    assert!(!line.to_string().contains("hunter2"), "{line}");
    for (name, value) in
        [("method", "DELETE"), ("route", "/items/{item_id}"), ("request_id", "r1"), ("target", "request")]
    {
        assert_eq!(line[name], value, "{line}");
    }
    assert_eq!((&line["status"], &line["app"]), (&409.into(), &own_app().to_string().into()));
}

#[tokio::test]
async fn the_cause_of_an_internal_error_is_logged_once() {
    let lines = Lines::default();
    async { shop().get("/fail").await }.with_subscriber(lines.subscriber()).await;
    let causes = lines.read().iter().filter(|line| line.to_string().contains("secret detail")).count();
    assert_eq!(causes, 1);
}

#[tokio::test]
async fn a_client_that_goes_away_is_recorded_too() {
    let lines = Lines::default();
    async {
        let shop = shop();
        let mut call = Box::pin(shop.get("/stuck"));
        assert!(call.as_mut().now_or_never().is_none());
        drop(call);
    }
    .with_subscriber(lines.subscriber())
    .await;
    assert_eq!(lines.read()[0]["status"], 499);
}

#[tokio::test]
async fn requests_are_counted_by_route() {
    let metrics = web::metrics::install().unwrap();
    let shop = shop();
    shop.get("/health").await;
    shop.get("/health?x=1").await;
    shop.get("/made/up").await;
    let text = metrics.render();
    assert!(text.contains(r#"http_requests_total{method="GET",route="/health",status="200"} "#), "{text}");
    assert!(text.contains(r#"http_request_duration_seconds_bucket{method="GET",route="/health",le="#), "{text}");
    assert!(text.contains(r#"route="unmatched""#) && !text.contains("made"), "{text}");
}
