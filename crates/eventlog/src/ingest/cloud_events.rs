//! CloudEvents 1.0: structured ones as a body or an entry of a batch, binary ones by their headers.

use http::HeaderMap;
use kernel::{Label, Result, Timestamp, text_types};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use web::{Validate, from_value};

use super::http::NewEvent;
use crate::parameters::Parameters;

text_types! {
    /// An event's id within its source.
    CloudEventId {
        "minLength": 1,
        "maxLength": 256,
        "pattern": r"^[^\x00-\x1f\x7f-\x9f]*$",
        "x-message": "must not contain control characters",
    }

    /// Where an event comes from: a URI reference.
    CloudEventSource {
        "minLength": 1,
        "maxLength": 2_048,
        "pattern": "^[!-~]*$",
        "x-message": "must be a URI reference",
        "not": { "enum": ["tenantry"] },
    }
}

/// An event in the standard's JSON format.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct CloudEvent {
    #[expect(dead_code, reason = "only judged")]
    specversion: SpecVersion,
    id: CloudEventId,
    source: CloudEventSource,
    r#type: Label,
    /// Now unless given.
    time: Option<Timestamp>,
    data: Option<Parameters>,
}

impl Validate for CloudEvent {}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
enum SpecVersion {
    #[serde(rename = "1.0")]
    One,
}

/// Whether JSON is a CloudEvent rather than an event of our own form.
pub fn is_cloud_event(value: &Value) -> bool {
    value.get("specversion").is_some() && value.get("eventName").is_none()
}

/// Reads a structured one; the app is the key's.
pub fn read(value: &Value, app: String, now: Timestamp) -> Result<NewEvent> {
    let event: CloudEvent = from_value(value)?;
    Ok(NewEvent {
        app_id: app,
        event_name: event.r#type.into(),
        timestamp: event.time.unwrap_or(now),
        parameters: event.data.unwrap_or_default(),
        // A source has no spaces, so that no two pairs look alike.
        ingest_id: Some(format!("{} {}", event.source, event.id)),
        ingest_source: Some(event.source.into()),
    })
}

/// The attributes that a binary one has in its headers, with the body as its data.
pub fn from_headers(headers: &HeaderMap, data: Value) -> Value {
    let mut event = Map::new();
    for name in ["specversion", "id", "source", "type", "time"] {
        let sent = headers.get(format!("ce-{name}")).and_then(|value| value.to_str().ok());
        if let Some(text) = sent {
            event.insert(name.to_owned(), Value::from(text));
        }
    }
    event.insert("data".to_owned(), data);
    Value::Object(event)
}

/// Whether a request is a binary CloudEvent.
pub fn is_binary(headers: &HeaderMap) -> bool {
    headers.contains_key("ce-specversion")
}
