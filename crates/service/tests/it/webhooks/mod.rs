//! `/webhooks/…`, and how events are delivered.

mod deliveries;
mod event_types;
mod giving_up;
mod nodes;
mod proof;
mod races;
mod secrets;
mod sending;
mod settings;
mod targets;
mod verifiers;
