//! Failures as SCIM has them (RFC 7644 §3.12), for the routes that speak SCIM.

use http::StatusCode;
use kernel::{Code, Error};
use serde::Serialize;

/// RFC 7644 §8.1.
pub const MEDIA_TYPE: &str = "application/scim+json";
const ERROR: &str = "urn:ietf:params:scim:api:messages:2.0:Error";

/// Whether a path without an operation lies among those of SCIM, so that its failure has SCIM's form too.
pub(crate) fn is_beside(path: &str) -> bool {
    path.starts_with("/scim/v2/")
}

/// The body of every answer of a SCIM route that is not a success.
#[derive(Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ScimError")]
pub(crate) struct ScimFailure<'a> {
    schemas: [&'a str; 1],
    /// The HTTP status, as a text.
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    scim_type: Option<&'a str>,
    /// For a person.
    detail: &'a str,
}

pub(crate) fn failure(error: &Error, status: StatusCode) -> Vec<u8> {
    let body = ScimFailure {
        schemas: [ERROR],
        status: status.as_str().to_owned(),
        scim_type: scim_type(error.code()),
        detail: error.public(),
    };
    serde_json::to_vec(&body).expect("a struct of texts can be written as JSON")
}

/// The keyword that RFC 7644 has for the cause, if any.
const fn scim_type(code: Code) -> Option<&'static str> {
    match code {
        Code::InvalidFilter => Some("invalidFilter"),
        Code::InvalidPath => Some("invalidPath"),
        Code::NoTarget => Some("noTarget"),
        Code::ReadOnly => Some("mutability"),
        Code::MalformedJson => Some("invalidSyntax"),
        Code::ValidationFailed => Some("invalidValue"),
        Code::MemberExists | Code::GroupExists => Some("uniqueness"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_its_status_as_text_and_a_keyword_where_there_is_one() {
        let written = |error: &Error, status| String::from_utf8(failure(error, status)).expect("text");
        assert_eq!(
            written(&Error::new(Code::InvalidFilter, "No."), StatusCode::BAD_REQUEST),
            r#"{"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"status":"400","scimType":"invalidFilter","detail":"No."}"#
        );
        let unknown = written(&Error::not_found("user"), StatusCode::NOT_FOUND);
        assert!(!unknown.contains("scimType") && unknown.contains(r#""status":"404""#), "{unknown}");
    }
}
