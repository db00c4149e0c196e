//! Bodies with many entries, each of which is judged and answered in its place.

use std::marker::PhantomData;

use axum::extract::{FromRequest, Request};
use kernel::{Error, FieldProblem, Result, text::MAX_LIST};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{MediaType, RawBody, Validate, from_json, not_json};
use crate::{Describe, Failure, Operation};

/// The entries of `{ "events": […] }` or of a bare list, not looked at yet. `T` is the whole body as the document
/// describes it.
pub struct Entries<T>(pub Vec<Value>, pub PhantomData<fn() -> T>);

const WRONG_LIST: &str = "must be a list of 1 to 1,000 events";

impl<S: Sync, T> FromRequest<S> for Entries<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        if !matches!(MediaType::of(request.headers()), MediaType::Json) {
            return Err(not_json().into());
        }
        let RawBody(body) = RawBody::from_request(request, state).await?;
        let entries = match from_json::<AnyJson>(&body)?.0 {
            Value::Array(entries) => entries,
            Value::Object(mut members) => match members.remove("events") {
                Some(Value::Array(entries)) => entries,
                _ => return Err(Error::invalid("events", WRONG_LIST).into()),
            },
            _ => return Err(Error::invalid("body", "must be a list of events, or an object with `events`").into()),
        };
        if entries.is_empty() || entries.len() > MAX_LIST {
            return Err(Error::invalid("events", WRONG_LIST).into());
        }
        Ok(Self(entries, PhantomData))
    }
}

impl<T: JsonSchema> Describe for Entries<T> {
    fn describe(operation: &mut Operation) {
        operation.body::<T>();
    }
}

/// Whatever JSON comes.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
struct AnyJson(Value);

impl Validate for AnyJson {}

/// What was wrong with one entry.
#[derive(Serialize, JsonSchema)]
pub struct EntryError {
    error: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<FieldProblem>,
}

impl From<&Error> for EntryError {
    fn from(error: &Error) -> Self {
        Self { error: error.code().as_str(), message: error.public().to_owned(), details: error.details().to_vec() }
    }
}
