//! What came back, with the assertions that tests make on it.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use kernel::{Id, IdKind};
use serde_json::Value;

/// An answer, read whole.
#[derive(Clone)]
pub struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    pub(crate) fn new(status: StatusCode, headers: HeaderMap, body: Bytes) -> Self {
        Self { status, headers, body }
    }

    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Every value of a header that may be sent several times.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.get_all(name).iter().filter_map(|value| value.to_str().ok())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// The body as text.
    pub fn body(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is text")
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }

    /// What stands at a JSON pointer; `null` when there is nothing.
    #[track_caller]
    pub fn at(&self, pointer: &str) -> Value {
        self.json().pointer(pointer).cloned().unwrap_or_default()
    }

    /// The text at a JSON pointer.
    #[track_caller]
    pub fn text(&self, pointer: &str) -> String {
        let value = self.at(pointer);
        value.as_str().unwrap_or_else(|| panic!("no text at {pointer}: {self:?}")).to_owned()
    }

    /// The id at a JSON pointer, checked for its form.
    #[track_caller]
    pub fn id<K: IdKind>(&self, pointer: &str) -> Id<K> {
        self.text(pointer).parse().unwrap_or_else(|error| panic!("no id at {pointer} ({error:?}): {self:?}"))
    }

    /// The status must be this one.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status(), status, "{self:?}");
        self
    }

    /// The answer must be this failure, in the shape that every failure has.
    #[track_caller]
    pub fn error(self, status: u16, code: &str) -> Self {
        assert_eq!(self.status(), status, "{self:?}");
        let body = self.json();
        assert_eq!(body["error"], code, "{self:?}");
        assert_eq!(body["statusCode"], status, "{self:?}");
        assert_eq!(body["requestId"].as_str(), self.header("x-request-id"), "{self:?}");
        assert!(body["message"].as_str().is_some_and(|message| !message.is_empty()), "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        self
    }

    /// The answer must be a validation error of exactly these fields.
    #[track_caller]
    pub fn refuses(self, fields: &[&str]) -> Self {
        let answer = self.error(400, "VALIDATION_FAILED");
        assert_eq!(answer.field_errors(), fields, "{answer:?}");
        answer
    }

    /// The names of the fields that were wrong, in the answer's order.
    #[track_caller]
    pub fn field_errors(&self) -> Vec<String> {
        let details = self.at("/details");
        let details = details.as_array().unwrap_or_else(|| panic!("no details: {self:?}"));
        let field = |detail: &Value| {
            assert!(detail["message"].as_str().is_some_and(|message| !message.is_empty()), "{self:?}");
            detail["field"].as_str().unwrap_or_else(|| panic!("a detail without a field: {self:?}")).to_owned()
        };
        details.iter().map(field).collect()
    }
}

/// For the message of a failed assertion.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status, String::from_utf8_lossy(&self.body))
    }
}
