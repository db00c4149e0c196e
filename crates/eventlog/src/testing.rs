//! The tables that folds write, as the service makes them: for tests of their SQL.

use store::Migration;

macro_rules! migration {
    ($file:literal) => {
        include_str!(concat!("../../service/migrations/", $file, ".sql"))
    };
}

const EVENTS: Migration = Migration::shared(1, "events", migration!("0026_eventlog"));
const KEEPING: Migration = Migration::shared(2, "keeping", migration!("0039_event_keeping"));

pub const TABLES: &[Migration] = &[
    EVENTS,
    KEEPING,
    Migration::shared(3, "chain", migration!("0040_event_chain")),
    Migration::per_engine(
        4,
        "counts",
        migration!("sqlite/0046_event_counts"),
        migration!("postgres/0046_event_counts"),
    ),
    Migration::per_engine(
        5,
        "ingest_ids",
        migration!("sqlite/0048_ingest_ids"),
        migration!("postgres/0048_ingest_ids"),
    ),
    Migration::per_engine(6, "keys", migration!("sqlite/0050_event_keys"), migration!("postgres/0050_event_keys")),
];

/// Before counters lay in parts.
pub const EARLIER: &[Migration] = &[EVENTS, KEEPING];
