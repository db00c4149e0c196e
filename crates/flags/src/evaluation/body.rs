//! The body of an evaluation, kept as it came so that the context can borrow from it.

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::{HeaderMap, header};
use kernel::{Code, Error, Result};
use schemars::JsonSchema;
use serde_json::{Map, Value};
use web::{Describe, Failure, Operation, RawBody};

use crate::rules::Sent;

/// A context, or `{ context, accessToken }`, or nothing at all.
pub struct ContextBody(pub(crate) Bytes);

impl ContextBody {
    pub(crate) fn read(&self) -> Result<Sent<'_>> {
        Sent::read(&self.0)
    }
}

impl<S: Sync> FromRequest<S> for ContextBody {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        require_json(request.headers())?;
        let RawBody(body) = RawBody::from_request(request, state).await?;
        Ok(Self(body))
    }
}

impl Describe for ContextBody {
    fn describe(operation: &mut Operation) {
        operation.body::<EvaluationContext>();
    }
}

/// 415 for a body that says it is something else than JSON, or says nothing. No body needs no type.
pub(crate) fn require_json(headers: &HeaderMap) -> Result<()> {
    let json = match headers.get(header::CONTENT_TYPE).map(http::HeaderValue::as_bytes) {
        Some(b"application/json") => true,
        Some(media_type) => {
            let essence = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
            let essence = essence.to_ascii_lowercase();
            essence.strip_prefix(b"application/").is_some_and(|kind| kind == b"json" || kind.ends_with(b"+json"))
        }
        None => {
            let length = headers.get(header::CONTENT_LENGTH).map(http::HeaderValue::as_bytes);
            !headers.contains_key(header::TRANSFER_ENCODING) && length.is_none_or(|length| length == b"0")
        }
    };
    if json {
        return Ok(());
    }
    Err(Error::new(Code::UnsupportedMediaType, "Send the body as JSON with `Content-Type: application/json`."))
}

/// What rules look at, all of it optional; for the documentation.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "names the members in the schema")]
struct EvaluationContext {
    /// `id`, `email`, `role`, `name`, `key` and whatever else rules look at. `id` is the bucketing identity.
    user: Option<Map<String, Value>>,
    /// `id`, `plan`, `name`, `key` and whatever else. `id` is the identity when there is no user's.
    tenant: Option<Map<String, Value>>,
    /// Another name for `tenant`.
    org: Option<Map<String, Value>>,
    /// `key` and whatever else.
    device: Option<Map<String, Value>>,
    custom: Option<Map<String, Value>>,
    /// The context may also be wrapped in this member.
    context: Option<Map<String, Value>>,
    /// User and workspace attributes are taken from it and win over those sent.
    access_token: Option<String>,
}
