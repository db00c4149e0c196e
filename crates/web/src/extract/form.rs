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
        if MediaType::of(request.headers()) != MediaType::Form {
            let message = "Send the body with `Content-Type: application/x-www-form-urlencoded`.";
            return Err(Error::new(Code::UnsupportedMediaType, message).into());
        }
        let bytes = collect(request).await?;
        let texts = std::str::from_utf8(&bytes)
            .map_err(|_| Error::new(Code::MalformedRequest, "The form is not valid UTF-8."))?;
        Ok(Self(from_texts(texts, Place::Form)?))
    }
}

impl<T: JsonSchema> Describe for Form<T> {
    fn describe(operation: &mut Operation) {
        operation.form::<T>();
    }
}
