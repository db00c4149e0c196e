//! The way of events into the log. A batch is one commit: new names, digests of `ingestId`s, and one row for many
//! events. That is all that an answer waits for; what they feed follows by the fold.

mod batch;
mod cloud_events;
pub(crate) mod http;
mod store;

pub(crate) use store::{EventIngest, IngestRow, Outcome, forget, keep};

use kernel::{TenantId, id_kinds};
use serde::{Deserialize, Serialize};
use spine::LoggedEventId;

id_kinds! {
    /// Events that were stored together.
    ArrivalId(EventArrival) = "arrival";
}

/// The service's own events name this as their `ingestSource`, and nobody else's.
pub const OWN_SOURCE: &str = "tenantry";

/// An event as it waits to be folded.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArrivedEvent {
    pub id: LoggedEventId,
    pub name: String,
    /// Microseconds.
    pub at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingest_id: Option<String>,
    /// Of the service's own events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    /// JSON, as a text in the arrival's own: it is read by itself, however deep it is.
    pub parameters: String,
}
