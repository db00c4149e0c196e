//! What a request says its body is.

use http::{HeaderMap, header};

/// A body's `Content-Type`, without its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType {
    /// `application/json` and its kin (`application/scim+json`).
    Json,
    /// `application/x-www-form-urlencoded`.
    Form,
    Other,
    Missing,
}

impl MediaType {
    pub fn of(headers: &HeaderMap) -> Self {
        headers.get(header::CONTENT_TYPE).map_or(Self::Missing, |value| Self::parse(value.as_bytes()))
    }

    /// From the header's value.
    pub fn parse(value: &[u8]) -> Self {
        // What nearly everybody sends is on the way of every evaluation.
        if value == b"application/json" {
            return Self::Json;
        }
        let essence = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
        match essence.strip_prefix(b"application/") {
            Some(b"x-www-form-urlencoded") => Self::Form,
            Some(kind) if kind == b"json" || kind.ends_with(b"+json") => Self::Json,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MediaType;

    #[test]
    fn parameters_and_case_do_not_count() {
        for (value, expected) in [
            ("application/json", MediaType::Json),
            ("Application/JSON ; charset=utf-8", MediaType::Json),
            ("application/scim+json", MediaType::Json),
            ("application/x-www-form-urlencoded;charset=UTF-8", MediaType::Form),
            ("text/json", MediaType::Other),
            ("application/jsonp", MediaType::Other),
            ("", MediaType::Other),
        ] {
            assert_eq!(MediaType::parse(value.as_bytes()), expected, "{value}");
        }
    }
}
