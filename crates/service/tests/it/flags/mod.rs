//! `/flags/…`.

mod telemetry;
