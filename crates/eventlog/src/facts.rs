//! What this room reads: everything that any room tells.

use spine::Reader;

/// Writes every fact into its app's event log.
pub(crate) const CONSUMER: Reader = Reader::of_all("event-log");

/// Who in this room reads facts.
pub fn readers() -> Vec<Reader> {
    vec![CONSUMER]
}
