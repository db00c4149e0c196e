//! Headers of the operator's flag API: the version a change is based on, and who makes it.

use axum::extract::FromRequestParts;
use http::{HeaderMap, HeaderValue, header, request::Parts};
use kernel::{Code, Error, Result};
use web::{Describe, Failure, Operation, WithHeaders, optional_header};

/// `If-Match`: the versions on which the caller bases the change. Without it the last writer wins.
pub(super) struct IfMatch(Option<String>);

impl IfMatch {
    /// 412 when the present version is none of them.
    pub(super) fn check(&self, version: i64) -> Result<()> {
        let Some(wanted) = &self.0 else { return Ok(()) };
        let mut tags = wanted.split(',').map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"'));
        if tags.any(|tag| tag == "*" || tag == version.to_string()) {
            return Ok(());
        }
        let message =
            format!("It has been changed in the meantime and is now at version {version}. Fetch it again first.");
        Err(Error::new(Code::VersionMismatch, message))
    }
}

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        Ok(Self(optional_header(&parts.headers, "if-match")?.map(str::to_owned)))
    }
}

impl Describe for IfMatch {
    fn describe(operation: &mut Operation) {
        operation
            .header("if-match", false, "The `ETag` that the change is based on; 412 when it is no longer current")
            .failure(412, "It has been changed in the meantime");
    }
}

/// `x-actor`: the person or tool that acts with the operator key, for the history.
pub(super) struct Actor(pub(super) String);

impl<S: Sync> FromRequestParts<S> for Actor {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let actor = optional_header(&parts.headers, "x-actor")?.unwrap_or("operator");
        Ok(Self(actor.chars().take(200).collect()))
    }
}

impl Describe for Actor {
    fn describe(operation: &mut Operation) {
        operation.header("x-actor", false, "Who acts with the operator key, for the history; `operator` unless given");
    }
}

/// An answer with its version as `ETag`.
pub(super) fn tagged<R>(version: i64, answer: R) -> WithHeaders<R> {
    let mut headers = HeaderMap::new();
    if let Ok(tag) = HeaderValue::try_from(format!("\"{version}\"")) {
        headers.insert(header::ETAG, tag);
    }
    WithHeaders(headers, answer)
}
