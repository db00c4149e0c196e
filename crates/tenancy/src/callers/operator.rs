//! The operator of this installation: `Authorization: Bearer <operator key>`, or a command on the server's own machine.

use axum::extract::FromRequestParts;
use http::{header::AUTHORIZATION, request::Parts};
use kernel::{Actor, Author, Authored, Code, Error, Result};
use web::{Access, AtHand, Describe, Failure, Operation, Scope};

use crate::OperatorKey;

/// Proof that the request carried the operator key, or came from somebody who holds the store itself.
pub struct Operator(Author);

impl Authored for Operator {
    fn author(&self) -> Author {
        self.0.clone()
    }
}

/// Who is at work with the operator key, by their own word.
const NAME: &str = "x-actor";
const LONGEST_NAME: usize = 200;

fn name(parts: &Parts) -> Result<Option<String>> {
    let Some(value) = parts.headers.get(NAME) else { return Ok(None) };
    let Ok(name) = std::str::from_utf8(value.as_bytes()) else {
        return Err(Error::new(Code::MalformedRequest, format!("The header {NAME} must be in UTF-8.")));
    };
    let name: String = name.trim().chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
    Ok(Some(name).filter(|name| !name.is_empty()))
}

impl<S: AsRef<OperatorKey> + Send + Sync> FromRequestParts<S> for Operator {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> std::result::Result<Self, Failure> {
        let scope = Scope::of(&parts.extensions);
        if parts.extensions.get::<AtHand>().is_some() {
            return Ok(Self(scope.author(Actor::operator_key(name(parts)?))));
        }
        let Some(presented) = bearer(parts) else {
            let message = "Send the operator key as Authorization: Bearer <key>.";
            return Err(Error::new(Code::Unauthenticated, message).into());
        };
        if !state.as_ref().accepts(presented).await? {
            scope.key_refused()?;
            return Err(Error::credential("The operator key is not valid.").into());
        }
        Ok(Self(scope.author(Actor::operator_key(name(parts)?))))
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
