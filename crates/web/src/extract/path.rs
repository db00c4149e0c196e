//! The path's parameters. A malformed id and an unknown one are alike to a caller, so both are 404.

use axum::extract::FromRequestParts;
use http::request::Parts;
use kernel::{Code, Error, Result};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{Describe, Failure, Operation};

/// One value, a tuple in the path's order, or a struct by name.
#[derive(Clone, Copy, Debug)]
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let nothing_here =
            || Failure::from(Error::new(Code::NotFound, "Nothing was found for the id or name in this path."));
        // PostgreSQL cannot even be asked for a text with NUL, which can only be written like this in a path.
        if parts.uri.path().contains("%00") {
            return Err(nothing_here());
        }
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|axum::extract::Path(value)| Self(value)).map_err(|_| nothing_here())
    }
}

impl<T: JsonSchema> Describe for Path<T> {
    fn describe(operation: &mut Operation) {
        operation.path::<T>();
    }
}
