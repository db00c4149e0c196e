//! The body of an evaluation, kept as it came so that the context can borrow from it.

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::{HeaderMap, header};
use kernel::Result;
use schemars::JsonSchema;
use serde_json::{Map, Value};
use web::{Describe, Failure, MediaType, Operation, RawBody, not_json};

use crate::rules::SentContext;

/// A context, or `{ context, accessToken }`, or nothing at all.
pub struct ContextBody(pub(crate) Bytes);

impl ContextBody {
    pub(crate) fn read(&self) -> Result<SentContext<'_>> {
        SentContext::read(&self.0)
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
    let json = match MediaType::of(headers) {
        MediaType::Json => true,
        MediaType::Form | MediaType::Other => false,
        MediaType::Missing => {
            let length = headers.get(header::CONTENT_LENGTH).map(http::HeaderValue::as_bytes);
            !headers.contains_key(header::TRANSFER_ENCODING) && length.is_none_or(|length| length == b"0")
        }
    };
    if json { Ok(()) } else { Err(not_json()) }
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
