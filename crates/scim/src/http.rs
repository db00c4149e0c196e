//! What requests and answers of SCIM look like: bodies by the names of any case, `ETag` and `If-Match`, and media types.

use std::{borrow::Cow, convert::Infallible};

use ::http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use axum::{
    body::Body,
    extract::{FromRequest, FromRequestParts, Request},
    response::{IntoResponse, Response},
};
use kernel::{Code, Error, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};
use web::{Describe, Failure, MediaType, Operation, RawBody, not_json, read_json, scim::MEDIA_TYPE};

use crate::resource::Written;

/// Bodies have at most so many bytes.
pub(crate) const LARGEST: usize = 1024 * 1024;

/// Any resource, or a request about some; the schemas say more.
pub(crate) enum ScimObject {}

impl JsonSchema for ScimObject {
    fn schema_name() -> Cow<'static, str> {
        "ScimObject".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "description": "See RFC 7643 and /scim/v2/Schemas." })
    }
}

/// A JSON object.
pub(crate) struct ScimBody(pub(crate) Value);

impl<S: Send + Sync> FromRequest<S> for ScimBody {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        if MediaType::of(request.headers()) != MediaType::Json {
            return Err(not_json().into());
        }
        let RawBody(bytes) = RawBody::from_request(request, state).await?;
        let body = read_json(&bytes)?;
        if !body.is_object() {
            return Err(Error::new(Code::MalformedJson, "The body must be a JSON object.").into());
        }
        Ok(Self(body))
    }
}

impl Describe for ScimBody {
    fn describe(operation: &mut Operation) {
        operation.body_as::<ScimObject>(MEDIA_TYPE);
    }
}

/// Which versions a request is about.
#[derive(Clone, Debug)]
pub(crate) struct Versions {
    must_match: Option<Vec<String>>,
    known: Vec<String>,
}

impl Versions {
    pub(crate) fn any() -> Self {
        Self { must_match: None, known: Vec::new() }
    }

    fn of(headers: &HeaderMap) -> Self {
        let listed = |name| {
            let sent = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
            sent.flat_map(|value| value.split(',')).map(|tag| opaque(tag.trim()).to_owned()).collect::<Vec<_>>()
        };
        let must_match = headers.contains_key(header::IF_MATCH).then(|| listed(header::IF_MATCH));
        Self { must_match, known: listed(header::IF_NONE_MATCH) }
    }

    /// 412 when the resource has another version than the request is for.
    pub(crate) fn allow(&self, written: &Written) -> Result<()> {
        match &self.must_match {
            Some(tags) if !names(tags, &written.version) => {
                Err(Error::new(Code::VersionMismatch, "The resource has changed since the version in If-Match."))
            }
            _ => Ok(()),
        }
    }

    fn knows(&self, version: &str) -> bool {
        names(&self.known, version)
    }
}

/// All versions are weak: directories compare content, not bytes.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

fn names(tags: &[String], version: &str) -> bool {
    tags.iter().any(|tag| tag == "*" || tag == opaque(version))
}

impl<S: Sync> FromRequestParts<S> for Versions {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

impl Describe for Versions {
    fn describe(operation: &mut Operation) {
        operation.failure(412, "The resource has changed since the version in If-Match");
    }
}

fn answer(status: StatusCode, body: Option<&Value>) -> Response {
    let mut response = Response::new(body.map_or_else(Body::empty, |body| Body::from(body.to_string())));
    *response.status_mut() = status;
    if body.is_some() {
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    }
    response
}

fn tag(response: &mut Response, version: &str) {
    if let Ok(version) = HeaderValue::from_str(version) {
        response.headers_mut().insert(header::ETAG, version);
    }
}

/// 200 with a resource, or a bare 304 for a caller who knows this version.
pub(crate) struct ShownResource {
    version: String,
    body: Option<Value>,
}

impl ShownResource {
    pub(crate) fn new(
        written: Written,
        versions: &Versions,
        selected: impl FnOnce(Map<String, Value>) -> Value,
    ) -> Self {
        let body = (!versions.knows(&written.version)).then(|| selected(written.body));
        Self { version: written.version, body }
    }

    /// The resource as a change left it.
    pub(crate) fn changed(written: Written, selected: impl FnOnce(Map<String, Value>) -> Value) -> Self {
        Self { version: written.version, body: Some(selected(written.body)) }
    }
}

impl IntoResponse for ShownResource {
    fn into_response(self) -> Response {
        let status = if self.body.is_some() { StatusCode::OK } else { StatusCode::NOT_MODIFIED };
        let mut response = answer(status, self.body.as_ref());
        tag(&mut response, &self.version);
        response
    }
}

impl Describe for ShownResource {
    fn describe(operation: &mut Operation) {
        operation.answer_as::<ScimObject>(StatusCode::OK, MEDIA_TYPE);
        operation.failure(304, "Nothing changed since the answer named in If-None-Match");
    }
}

/// 201 with a new resource.
pub(crate) struct MadeResource {
    pub(crate) written: Written,
    pub(crate) body: Value,
}

impl IntoResponse for MadeResource {
    fn into_response(self) -> Response {
        let mut response = answer(StatusCode::CREATED, Some(&self.body));
        tag(&mut response, &self.written.version);
        if let Ok(location) = HeaderValue::from_str(&self.written.location) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        response
    }
}

impl Describe for MadeResource {
    fn describe(operation: &mut Operation) {
        operation.answer_as::<ScimObject>(StatusCode::CREATED, MEDIA_TYPE);
    }
}

/// 204: done, with the version of what is there now, if anything is.
pub(crate) struct NoContent(pub(crate) Option<String>);

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        let mut response = answer(StatusCode::NO_CONTENT, None);
        if let Some(version) = &self.0 {
            tag(&mut response, version);
        }
        response
    }
}

impl Describe for NoContent {
    fn describe(operation: &mut Operation) {
        operation.empty_answer(StatusCode::NO_CONTENT);
    }
}

/// 200 with a list or a document about the service.
pub(crate) struct ScimDocument(pub(crate) Value);

impl IntoResponse for ScimDocument {
    fn into_response(self) -> Response {
        answer(StatusCode::OK, Some(&self.0))
    }
}

impl Describe for ScimDocument {
    fn describe(operation: &mut Operation) {
        operation.answer_as::<ScimObject>(StatusCode::OK, MEDIA_TYPE);
    }
}
