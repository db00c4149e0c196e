//! A body that is read while it arrives, for routes that are [`streamed`](crate::Routes::streamed).

use axum::{
    body::Body,
    extract::{FromRequest, Request},
};
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use kernel::{Error, Result};

use super::{MediaType, not_json};
use crate::{Describe, Failure, Operation};

/// The pieces of a body, in order. What is wrong with it (too large, too slow) is an error when it is found out.
pub struct BodyStream {
    body: Body,
    headers: HeaderMap,
}

impl BodyStream {
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            match frame.map_err(cause)?.into_data() {
                Ok(piece) => return Ok(Some(piece)),
                Err(_) => continue,
            }
        }
    }

    /// Reads what is left and forgets it, so that a client that is still sending gets to its answer.
    pub async fn drain(&mut self) {
        while let Ok(Some(_)) = self.next().await {}
    }

    /// 415 unless the body says that it is JSON.
    pub fn require_json(&self) -> Result<()> {
        match MediaType::of(&self.headers) {
            MediaType::Json => Ok(()),
            _ => Err(not_json()),
        }
    }

    /// As it was sent.
    pub fn content_type(&self) -> Option<&str> {
        self.headers.get(header::CONTENT_TYPE)?.to_str().ok()
    }
}

fn cause(error: axum::Error) -> Error {
    match error.into_inner().downcast::<Error>() {
        Ok(known) => *known,
        Err(other) => Error::internal(other),
    }
}

impl<S: Sync> FromRequest<S> for BodyStream {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let (parts, body) = request.into_parts();
        Ok(Self { body, headers: parts.headers })
    }
}

impl Describe for BodyStream {
    fn describe(operation: &mut Operation) {
        operation.raw_body("application/octet-stream");
    }
}
