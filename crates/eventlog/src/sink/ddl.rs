//! The table that a ClickHouse sink writes into.

use super::rules::DEFAULT_TABLE;

/// Creates the table. `ReplacingMergeTree` is not needed: repeats of a batch are recognised by its token, for as long as
/// the window says.
pub fn ddl(table: Option<&str>) -> String {
    let table = table.unwrap_or(DEFAULT_TABLE);
    format!(
        "CREATE TABLE {table} (\n    \
         app_id LowCardinality(String),\n    \
         event_id String,\n    \
         event_name LowCardinality(String),\n    \
         timestamp DateTime64(6, 'UTC'),\n    \
         ingested_at DateTime64(6, 'UTC'),\n    \
         ingest_source Nullable(String),\n    \
         ingest_id Nullable(String),\n    \
         parameters String\n\
         )\n\
         ENGINE = MergeTree\n\
         PARTITION BY toYYYYMM(timestamp)\n\
         ORDER BY (app_id, event_name, timestamp, event_id)\n\
         SETTINGS non_replicated_deduplication_window = 10000;\n"
    )
}
