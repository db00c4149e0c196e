//! The proofs of the storage layer, each on both engines.

mod backup;
mod child;
mod closures;
mod declared;
mod ingest;
mod limits;
mod migrations;
mod moving;
mod portable_sql;
mod postgres_engine;
mod reads;
mod recorder;
mod schema;
mod under_load;
