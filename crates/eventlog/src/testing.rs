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
    Migration::per_engine(
        3,
        "counts",
        migration!("sqlite/0046_event_counts"),
        migration!("postgres/0046_event_counts"),
    ),
];

/// Before counters lay in parts.
pub const EARLIER: &[Migration] = &[EVENTS, KEEPING];
