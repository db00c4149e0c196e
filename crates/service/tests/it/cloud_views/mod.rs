//! `/cloud-views/…`.

mod brand;
mod flags;
mod flags_rules;
mod flags_tokens;
mod verify_sender;
