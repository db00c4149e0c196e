//! What handlers answer with. Each type is one status and one shape, so that a handler's signature states both.

use std::marker::PhantomData;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use kernel::Error;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Describe, Failure, IfNoneMatch, Operation};

macro_rules! json_answers {
    ($($(#[$doc:meta])* $name:ident = $status:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<T>(pub T);

        impl<T: Serialize> IntoResponse for $name<T> {
            fn into_response(self) -> Response {
                json(StatusCode::$status, &self.0)
            }
        }

        impl<T: JsonSchema> Describe for $name<T> {
            fn describe(operation: &mut Operation) {
                operation.answer::<T>(StatusCode::$status);
            }
        }
    )* };
}

json_answers! {
    /// 200 with a JSON body.
    Json = OK;
    /// 201 with a JSON body.
    Created = CREATED;
    /// 202 with a JSON body: taken on, not done yet.
    Accepted = ACCEPTED;
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => plain(status, "application/json", Body::from(bytes)),
        Err(error) => Failure::from(Error::internal(error)).into_response(),
    }
}

fn plain(status: StatusCode, media_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// 200 of zero length.
#[derive(Clone, Copy, Debug)]
pub struct Empty;

impl IntoResponse for Empty {
    fn into_response(self) -> Response {
        Response::new(Body::empty())
    }
}

impl Describe for Empty {
    fn describe(operation: &mut Operation) {
        operation.empty_answer(StatusCode::OK);
    }
}

/// 201 of zero length.
#[derive(Clone, Copy, Debug)]
pub struct CreatedEmpty;

impl IntoResponse for CreatedEmpty {
    fn into_response(self) -> Response {
        StatusCode::CREATED.into_response()
    }
}

impl Describe for CreatedEmpty {
    fn describe(operation: &mut Operation) {
        operation.empty_answer(StatusCode::CREATED);
    }
}

/// 200 `{ "success": true }`: a deletion or reset that has nothing else to say.
#[derive(Clone, Copy, Debug)]
pub struct Success;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Success")]
struct SuccessBody {
    success: bool,
}

impl IntoResponse for Success {
    fn into_response(self) -> Response {
        json(StatusCode::OK, &SuccessBody { success: true })
    }
}

impl Describe for Success {
    fn describe(operation: &mut Operation) {
        operation.answer::<SuccessBody>(StatusCode::OK);
    }
}

/// 200 with a page. The default policy lets it load nothing; a page with a style sheet brings a policy of its own
/// through [`WithHeaders`].
#[derive(Clone, Debug)]
pub struct Html(pub String);

impl IntoResponse for Html {
    fn into_response(self) -> Response {
        plain(StatusCode::OK, "text/html; charset=utf-8", Body::from(self.0))
    }
}

impl Describe for Html {
    fn describe(operation: &mut Operation) {
        operation.raw_answer(StatusCode::OK, "text/html");
    }
}

/// 200 with plain text.
#[derive(Clone, Debug)]
pub struct Text(pub String);

impl IntoResponse for Text {
    fn into_response(self) -> Response {
        plain(StatusCode::OK, "text/plain; charset=utf-8", Body::from(self.0))
    }
}

impl Describe for Text {
    fn describe(operation: &mut Operation) {
        operation.raw_answer(StatusCode::OK, "text/plain");
    }
}

/// 200 with a style sheet.
#[derive(Clone, Debug)]
pub struct Css(pub String);

impl IntoResponse for Css {
    fn into_response(self) -> Response {
        plain(StatusCode::OK, "text/css; charset=utf-8", Body::from(self.0))
    }
}

impl Describe for Css {
    fn describe(operation: &mut Operation) {
        operation.raw_answer(StatusCode::OK, "text/css");
    }
}

/// 200 with a script.
#[derive(Clone, Copy, Debug)]
pub struct Script(pub &'static str);

impl IntoResponse for Script {
    fn into_response(self) -> Response {
        plain(StatusCode::OK, "text/javascript; charset=utf-8", Body::from(self.0))
    }
}

impl Describe for Script {
    fn describe(operation: &mut Operation) {
        operation.raw_answer(StatusCode::OK, "text/javascript");
    }
}

/// 200 with JSON that is already written, in the shape of `T`.
#[derive(Clone, Debug)]
pub struct Prewritten<T>(Bytes, PhantomData<fn() -> T>);

impl<T> Prewritten<T> {
    pub fn new(json: impl Into<Bytes>) -> Self {
        Self(json.into(), PhantomData)
    }
}

impl<T> IntoResponse for Prewritten<T> {
    fn into_response(self) -> Response {
        plain(StatusCode::OK, "application/json", Body::from(self.0))
    }
}

impl<T: JsonSchema> Describe for Prewritten<T> {
    fn describe(operation: &mut Operation) {
        operation.answer::<T>(StatusCode::OK);
    }
}

/// 307 to another address.
#[derive(Clone, Debug)]
pub struct Redirect(pub String);

impl IntoResponse for Redirect {
    fn into_response(self) -> Response {
        match HeaderValue::from_str(&self.0) {
            Ok(location) => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, location)]).into_response(),
            Err(error) => Failure::from(Error::internal(error)).into_response(),
        }
    }
}

impl Describe for Redirect {
    fn describe(operation: &mut Operation) {
        operation.empty_answer(StatusCode::TEMPORARY_REDIRECT);
    }
}

/// An answer with the `ETag` of what it shows, or a bare 304 for a caller who has it already.
#[derive(Clone, Debug)]
pub struct Tagged<R> {
    etag: String,
    /// Absent when nothing changed.
    answer: Option<R>,
}

impl<R> Tagged<R> {
    /// `etag` is quoted, as in the header.
    pub fn new(etag: String, known: &IfNoneMatch, answer: impl FnOnce() -> R) -> Self {
        let answer = (!known.names(&etag)).then(answer);
        Self { etag, answer }
    }
}

impl<R: IntoResponse> IntoResponse for Tagged<R> {
    fn into_response(self) -> Response {
        let etag = match HeaderValue::from_str(&self.etag) {
            Ok(etag) => etag,
            Err(error) => return Failure::from(Error::internal(error)).into_response(),
        };
        let mut response = self.answer.map_or_else(|| StatusCode::NOT_MODIFIED.into_response(), R::into_response);
        response.headers_mut().insert(header::ETAG, etag);
        response
    }
}

impl<R: Describe> Describe for Tagged<R> {
    fn describe(operation: &mut Operation) {
        R::describe(operation);
        operation.failure(304, "Nothing changed since the answer named in If-None-Match");
    }
}

/// An answer with headers of its own, which replace those it would have had.
#[derive(Clone, Debug)]
pub struct WithHeaders<R>(pub HeaderMap, pub R);

impl<R> WithHeaders<R> {
    pub fn new(answer: R) -> Self {
        Self(HeaderMap::new(), answer)
    }

    #[must_use]
    pub fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.0.insert(name, HeaderValue::from_static(value));
        self
    }
}

impl<R: IntoResponse> IntoResponse for WithHeaders<R> {
    fn into_response(self) -> Response {
        let mut response = self.1.into_response();
        response.headers_mut().extend(self.0);
        response
    }
}

impl<R: Describe> Describe for WithHeaders<R> {
    fn describe(operation: &mut Operation) {
        R::describe(operation);
    }
}
