//! How verdicts and failures are written in this protocol. A failure has the members of every failure of this API and
//! those of the protocol.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use kernel::Error;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use web::{IfNoneMatch, Tagged};

use crate::rules::{Flag, FlagVerdict, Reason};

/// Writes one flag's result: a success, or an error when the flag cannot be evaluated.
pub(super) fn write(flag: &Flag, verdict: FlagVerdict<'_>, token_ignored: bool, text: &mut Vec<u8>) {
    // Keys need no escaping.
    text.extend_from_slice(br#"{"key":""#);
    text.extend_from_slice(flag.key.as_bytes());
    text.push(b'"');
    match verdict.outcome.value() {
        Some(value) => {
            let variant = match verdict.reason {
                Reason::Off => "off".to_owned(),
                Reason::On => "on".to_owned(),
                Reason::Matched { .. } => format!("branch-{}", verdict.outcome.variant),
                Reason::Otherwise | Reason::OutsideRollout | Reason::Broken => "otherwise".to_owned(),
            };
            text.extend_from_slice(br#","value":"#);
            text.extend_from_slice(value);
            let (reason, index) = (reason(verdict.reason), verdict.outcome.variant);
            let enabled = verdict.outcome.enabled;
            let ignored = if token_ignored { r#","errorCode":"INVALID_TOKEN""# } else { "" };
            let rest = format!(
                r#","reason":"{reason}","variant":"{variant}","metadata":{{"variantIndex":{index},"enabled":{enabled}{ignored}}}}}"#
            );
            text.extend_from_slice(rest.as_bytes());
        }
        None => text.extend_from_slice(br#","errorCode":"GENERAL","errorDetails":"The flag cannot be evaluated."}"#),
    }
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Off => "DISABLED",
        Reason::On => "STATIC",
        Reason::Matched { split: false } => "TARGETING_MATCH",
        Reason::Matched { split: true } => "SPLIT",
        Reason::Otherwise | Reason::OutsideRollout => "DEFAULT",
        Reason::Broken => "ERROR",
    }
}

pub(super) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The bulk answer, or 304 when the client has it already.
pub(super) fn tagged(body: Vec<u8>, known: &IfNoneMatch) -> Response {
    let digest = Sha256::digest(&body);
    let tag: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    Tagged::new(format!("\"{tag}\""), known, || json(StatusCode::OK, Bytes::from(body))).into_response()
}

/// What the protocol calls the causes it knows.
#[derive(Clone, Copy)]
pub(super) enum Problem {
    FlagNotFound,
    ParseError,
    InvalidContext,
    General,
}

impl Problem {
    pub(super) fn of(error: &Error) -> Self {
        match error.code() {
            kernel::Code::MalformedJson => Self::ParseError,
            _ => Self::InvalidContext,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::FlagNotFound => "FLAG_NOT_FOUND",
            Self::ParseError => "PARSE_ERROR",
            Self::InvalidContext => "INVALID_CONTEXT",
            Self::General => "GENERAL",
        }
    }
}

pub(super) fn failure(problem: Problem, error: &Error, key: Option<&str>, request_id: &str) -> Response {
    let status = web::status_of(error.kind());
    let mut body = json!({
        "statusCode": status.as_u16(), "error": error.code().as_str(), "message": error.public(),
        "requestId": request_id, "errorCode": problem.name(), "errorDetails": error.public(),
    });
    if let Some(key) = key {
        body["key"] = key.into();
    }
    json(status, body.to_string())
}
