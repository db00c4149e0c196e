//! How a failure leaves: one status per kind of error and one body shape, written in one place.
//!
//! A [`Failure`] travels inside the response until the outermost layer, which knows the request id, writes the body.
//! The cause of an internal error goes to the log and never into the answer.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use kernel::{Code, Error, FieldProblem, Kind};
use serde::Serialize;

use crate::{Scope, pages, scim};

/// In which form the failures of a route leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureForm {
    Json,
    /// For routes whose answers a browser shows.
    Page,
    /// RFC 7644 §3.12.
    Scim,
}

/// A `kernel::Error` on its way out; the rejection of every extractor.
#[derive(Debug)]
pub struct Failure(Error);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<Infallible> for Failure {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl Failure {
    pub fn error(&self) -> &Error {
        &self.0
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status_of(self.0.kind());
        response.extensions_mut().insert(Unwritten(Arc::new(self.0)));
        response
    }
}

/// An error whose body is still to be written.
#[derive(Clone)]
struct Unwritten(Arc<Error>);

/// The body of every answer that is not a success.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Error")]
pub(crate) struct ErrorBody<'a> {
    status_code: u16,
    /// A stable code, one per cause.
    error: &'a str,
    /// For a person.
    message: &'a str,
    request_id: &'a str,
    /// The wrong members, on validation errors.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    details: &'a [FieldProblem],
}

pub const fn status_of(kind: Kind) -> StatusCode {
    match kind {
        Kind::Invalid => StatusCode::BAD_REQUEST,
        Kind::Unauthenticated => StatusCode::UNAUTHORIZED,
        Kind::Forbidden => StatusCode::FORBIDDEN,
        Kind::NotFound => StatusCode::NOT_FOUND,
        Kind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Kind::Conflict => StatusCode::CONFLICT,
        Kind::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        Kind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Kind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        Kind::Upstream => StatusCode::BAD_GATEWAY,
        Kind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Kind::NotOffered => StatusCode::NOT_IMPLEMENTED,
        Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Writes the body of a failure that is still unwritten, and logs what the caller must not see.
pub(crate) fn write(response: &mut Response, scope: &Scope) {
    let Some(Unwritten(error)) = response.extensions_mut().remove() else { return };
    log(&error, scope.request_id());
    let status = status_of(error.kind());
    // Where no route matched, axum has noted the length of the body that was still empty.
    response.headers_mut().remove(header::CONTENT_LENGTH);
    let beside = response.extensions_mut().remove::<FailureForm>();
    let form = scope.route().map(|route| route.failures).or(beside).unwrap_or(FailureForm::Json);
    match form {
        FailureForm::Page => pages::failure(scope.page(), status, &error, scope.request_id()).write_to(response),
        FailureForm::Json => put(response, json(&error, status, scope.request_id()), "application/json"),
        FailureForm::Scim => put(response, scim::failure(&error, status), scim::MEDIA_TYPE),
    }
    let headers = response.headers_mut();
    if let Some(seconds) = retry_after(&error) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if status == StatusCode::UNAUTHORIZED && form != FailureForm::Page {
        headers.entry(header::WWW_AUTHENTICATE).or_insert(HeaderValue::from_static("Bearer"));
    }
}

fn put(response: &mut Response, body: Vec<u8>, media_type: &'static str) {
    *response.body_mut() = Body::from(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
}

fn json(error: &Error, status: StatusCode, request_id: &str) -> Vec<u8> {
    let body = ErrorBody {
        status_code: status.as_u16(),
        error: error.code().as_str(),
        message: error.public(),
        request_id,
        details: error.details(),
    };
    serde_json::to_vec(&body).expect("a struct of texts and numbers can be written as JSON")
}

/// Whole seconds, at least one; every 429 and 503 says when to come back.
pub(crate) fn retry_after(error: &Error) -> Option<u64> {
    let waits = matches!(error.kind(), Kind::RateLimited | Kind::Unavailable);
    let after = error.retry_after().or(waits.then_some(Duration::from_secs(1)))?;
    Some(u64::try_from(after.as_millis().div_ceil(1000)).unwrap_or(u64::MAX).max(1))
}

fn log(error: &Error, request_id: &str) {
    match error.kind() {
        Kind::Internal => tracing::error!(request_id, ?error, "a request failed inside"),
        Kind::Upstream | Kind::Unavailable if error.code() != Code::Overloaded => {
            tracing::warn!(request_id, ?error, "a request could not be served");
        }
        _ => {}
    }
}
