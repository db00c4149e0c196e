//! What a hosted page's form sends: `application/x-www-form-urlencoded`, read by the same rules as a query string.

use axum::extract::{FromRequest, Request};
use kernel::{Code, Error, Result};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::{
    MediaType,
    body::collect,
    params::{Place, from_texts},
};
use crate::{Describe, Failure, Operation};

/// The fields of a form: the members of `T`, by name. Unknown ones are ignored.
#[derive(Clone, Copy, Debug)]
pub struct Form<T>(pub T);

impl<S: Sync, T: DeserializeOwned + JsonSchema + 'static> FromRequest<S> for Form<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        Ok(Self(from_texts(&text_of(request).await?, Place::Form)?))
    }
}

async fn text_of(request: Request) -> Result<String> {
    if MediaType::of(request.headers()) != MediaType::Form {
        let message = "Send the body with `Content-Type: application/x-www-form-urlencoded`.";
        return Err(Error::new(Code::UnsupportedMediaType, message));
    }
    let text = String::from_utf8(collect(request).await?.into());
    text.map_err(|_| Error::new(Code::MalformedRequest, "The form is not valid UTF-8."))
}

/// A form, read like [`Form`], beside its text: for a handler that answers a malformed one in a way of its own.
pub struct LenientForm<T> {
    pub read: Result<T>,
    pub text: String,
}

impl<S: Sync, T: DeserializeOwned + JsonSchema + 'static> FromRequest<S> for LenientForm<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let text = text_of(request).await?;
        Ok(Self { read: from_texts(&text, Place::Form), text })
    }
}

impl<T: JsonSchema> Describe for LenientForm<T> {
    fn describe(operation: &mut Operation) {
        Form::<T>::describe(operation);
    }
}

impl<T: JsonSchema> Describe for Form<T> {
    fn describe(operation: &mut Operation) {
        operation.form::<T>();
    }
}
