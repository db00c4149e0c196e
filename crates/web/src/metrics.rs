//! Prometheus metrics without a listener of their own: `/metrics` renders them. The recorder is the process's, so that
//! every crate can count with the `metrics` macros; handles of routes are kept, so that a request costs two additions.

use std::{sync::OnceLock, time::Duration};

use http::{Method, StatusCode};
use kernel::{Error, Result};
use metrics::{Counter, Histogram};
pub use metrics_exporter_prometheus::PrometheusHandle as Handle;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

const DURATION: &str = "http_request_duration_seconds";
const REQUESTS: &str = "http_requests_total";
const BUCKETS: &[f64] = &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Installs the recorder, once per process. Call it before the first request, else the requests before are not counted.
pub fn install() -> Result<PrometheusHandle> {
    static HANDLE: OnceLock<Result<PrometheusHandle, String>> = OnceLock::new();
    HANDLE.get_or_init(set_up).clone().map_err(Error::internal)
}

fn set_up() -> Result<PrometheusHandle, String> {
    let builder = PrometheusBuilder::new().set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), BUCKETS);
    let recorder = builder.map_err(|error| error.to_string())?.build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(|error| error.to_string())?;
    metrics::describe_counter!(REQUESTS, "Requests by method, route and status");
    metrics::describe_histogram!(DURATION, metrics::Unit::Seconds, "Time from request to answer by method and route");
    Ok(handle)
}

/// Keeps the histograms small between renderings; without it they hold every sample until `/metrics` is read.
pub(crate) async fn upkeep() {
    let Ok(handle) = install() else { return };
    let mut interval = tokio::time::interval(Duration::from_secs(5));
    loop {
        interval.tick().await;
        handle.run_upkeep();
    }
}

/// The statuses that routes answer, each with a counter kept; others are looked up.
const USUAL: [u16; 20] =
    [200, 201, 202, 204, 302, 303, 304, 400, 401, 403, 404, 405, 409, 413, 415, 429, 499, 500, 502, 503];

pub(crate) struct RouteMetrics {
    method: &'static str,
    route: &'static str,
    duration: OnceLock<Histogram>,
    counters: [OnceLock<Counter>; USUAL.len()],
}

impl RouteMetrics {
    pub(crate) fn new(method: &Method, route: &'static str) -> Self {
        Self { method: known(method), route, duration: OnceLock::new(), counters: Default::default() }
    }

    pub(crate) fn record(&self, status: StatusCode, elapsed: Duration) {
        let status = status.as_u16();
        match USUAL.iter().position(|usual| *usual == status) {
            Some(place) => self.counters[place].get_or_init(|| self.counter(status)).increment(1),
            None => self.counter(status).increment(1),
        }
        self.duration.get_or_init(|| histogram(self.method, self.route)).record(elapsed);
    }

    fn counter(&self, status: u16) -> Counter {
        counter(self.method, self.route, status)
    }
}

/// A request that no route matched. The path is the client's to choose, so it is not a label.
pub(crate) fn record_unmatched(method: &Method, status: StatusCode, elapsed: Duration) {
    counter(known(method), "unmatched", status.as_u16()).increment(1);
    histogram(known(method), "unmatched").record(elapsed);
}

fn counter(method: &'static str, route: &'static str, status: u16) -> Counter {
    metrics::counter!(REQUESTS, "method" => method, "route" => route, "status" => status.to_string())
}

fn histogram(method: &'static str, route: &'static str) -> Histogram {
    metrics::histogram!(DURATION, "method" => method, "route" => route)
}

/// Methods are the client's to choose too; only the usual ones become labels.
fn known(method: &Method) -> &'static str {
    const KNOWN: [Method; 7] =
        [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::HEAD, Method::OPTIONS];
    const NAMES: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"];
    KNOWN.iter().position(|known| known == method).map_or("OTHER", |place| NAMES[place])
}
