//! The one log line and the metrics of a request, written when it ends: also when the client went away before the
//! answer, which counts as status 499. Query strings, headers and bodies never appear.

use std::sync::Arc;

use axum::{body::HttpBody, extract::Request, response::Response};
use http::{Method, StatusCode, Uri, header};
use kernel::{Tick, Ticker};
use tracing::Span;

use crate::{Scope, metrics};

/// Paths that no route matched are shown no longer than this.
const MAX_PATH: usize = 200;

pub(crate) struct RequestRecord {
    ticker: Ticker,
    began: Tick,
    method: Method,
    uri: Uri,
    scope: Arc<Scope>,
    ended: bool,
}

impl RequestRecord {
    pub(crate) fn begin(ticker: Ticker, request: &Request, scope: &Arc<Scope>) -> Self {
        Self {
            ticker,
            began: ticker.now(),
            method: request.method().clone(),
            uri: request.uri().clone(),
            scope: Arc::clone(scope),
            ended: false,
        }
    }

    pub(crate) fn end(mut self, response: &Response, span: &Span) {
        self.ended = true;
        let status = response.status();
        if !span.is_disabled() {
            span.record("http.route", self.route());
            span.record("http.response.status_code", status.as_u16());
        }
        self.write(status, length(response));
    }

    fn route(&self) -> &str {
        self.scope.route().map_or_else(
            || {
                let path = self.uri.path();
                &path[..path.floor_char_boundary(MAX_PATH)]
            },
            |route| route.path,
        )
    }

    fn write(&self, status: StatusCode, bytes: Option<u64>) {
        let elapsed = self.ticker.since(self.began);
        match self.scope.route() {
            Some(route) => route.metrics.record(status, elapsed),
            None => metrics::record_unmatched(&self.method, status, elapsed),
        }
        // The level of an event is part of its callsite, so there are two.
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: "request",
                    method = %self.method,
                    route = self.route(),
                    status = status.as_u16(),
                    ms = elapsed.as_micros() as f64 / 1000.0,
                    request_id = self.scope.request_id(),
                    client = %self.scope.client(),
                    app = self.scope.app().map(tracing::field::display),
                    tenant = self.scope.tenant().map(tracing::field::display),
                    user = self.scope.user().map(tracing::field::display),
                    bytes,
                )
            };
        }
        if status.is_server_error() { line!(error) } else { line!(info) }
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        if !self.ended {
            self.write(StatusCode::from_u16(499).expect("499 is a three-digit status"), None);
        }
    }
}

/// Streams have no length that is known when the answer starts.
fn length(response: &Response) -> Option<u64> {
    let stated = response.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    stated.or_else(|| response.body().size_hint().exact())
}
