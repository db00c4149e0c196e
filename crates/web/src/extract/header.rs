//! Headers as texts, with the API's error when one is missing or cannot be read.

use http::HeaderMap;
use kernel::{Code, Error, Result};

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
