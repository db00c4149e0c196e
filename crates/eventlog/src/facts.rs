//! What this room tells, and what it reads: everything that any room tells.

use spine::Reader;

use crate::{keeping::ErasureId, sink::SinkKind};

spine::facts! {
    /// How long an app's events are kept has changed.
    EventSettingsChanged = "event_settings.changed" {
        /// `null` keeps them.
        retention_days: Option<u32>,
    }
    /// An entity is to be taken out of the event log.
    EntityErasureBegun = "event_erasure.begun" {
        job_id: ErasureId,
        /// The parameter that it is named by, or its stem.
        entity_type: String,
    }
    /// An app's events are sent elsewhere as well.
    EventSinkSet = "event_sink.set" {
        kind: SinkKind,
        /// Without credentials.
        url: String,
    }
    /// An app's events are not sent elsewhere any more.
    EventSinkRemoved = "event_sink.removed" {}
}

/// Writes every fact into its app's event log.
pub(crate) const CONSUMER: Reader = Reader::of_all("event-log");

/// Who in this room reads facts.
pub fn readers() -> Vec<Reader> {
    vec![CONSUMER]
}
