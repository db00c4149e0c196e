//! `/usage/…`.

mod batch;
mod gauge;
mod ingest;
mod snapshot;
