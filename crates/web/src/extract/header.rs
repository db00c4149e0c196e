//! Headers as texts, with the API's error when one is missing or cannot be read.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::{HeaderMap, header, request::Parts};
use kernel::{Code, Error, Result};

use crate::{Describe, Operation};

/// Which answers the caller has already, by their `ETag`s.
#[derive(Clone, Debug, Default)]
pub struct IfNoneMatch(Vec<String>);

impl IfNoneMatch {
    pub fn of(headers: &HeaderMap) -> Self {
        let sent = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        Self(sent.flat_map(|value| value.split(',')).map(|tag| tag.trim().to_owned()).collect())
    }

    /// RFC 9110 §13.1.2: weak validators count here, and so does a star.
    pub fn names(&self, etag: &str) -> bool {
        self.0.iter().any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == etag)
    }
}

impl<S: Sync> FromRequestParts<S> for IfNoneMatch {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

impl Describe for IfNoneMatch {
    fn describe(_: &mut Operation) {}
}

/// The header's text; `None` when it was not sent or is empty.
pub fn optional_header<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Error::new(Code::MalformedRequest, format!("The header {name} must not be sent more than once.")));
    }
    match value.to_str().map(str::trim) {
        Ok("") => Ok(None),
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(Error::new(Code::MalformedRequest, format!("The header {name} must be plain ASCII."))),
    }
}

/// The header's text, or 400 `MISSING_HEADER`.
pub fn required_header<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<&'a str> {
    optional_header(headers, name)?
        .ok_or_else(|| Error::new(Code::MissingHeader, format!("The header {name} is required.")))
}
