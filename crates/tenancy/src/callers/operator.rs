//! The operator of this installation: `Authorization: Bearer <operator key>`.

use axum::extract::FromRequestParts;
use http::{header::AUTHORIZATION, request::Parts};
use kernel::{Code, Error};
use web::{Access, Describe, Failure, Operation, Scope};

use crate::OperatorKey;

/// Proof that the request carried the operator key.
pub struct Operator(());

impl<S: AsRef<OperatorKey> + Send + Sync> FromRequestParts<S> for Operator {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let Some(presented) = bearer(parts) else {
            let message = "Send the operator key as Authorization: Bearer <key>.";
            return Err(Error::new(Code::Unauthenticated, message).into());
        };
        if !state.as_ref().matches(presented) {
            Scope::of(&parts.extensions).credential_failed()?;
            return Err(Error::new(Code::InvalidCredential, "The operator key is not valid.").into());
        }
        Ok(Self(()))
    }
}

impl Describe for Operator {
    fn describe(operation: &mut Operation) {
        operation.access(Access::Operator);
    }
}

/// The token of an `Authorization: Bearer` header; the scheme's name is compared without case (RFC 9110 §11.1).
pub(crate) fn bearer(parts: &Parts) -> Option<&str> {
    let (scheme, token) = parts.headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
