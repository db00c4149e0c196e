//! Routes about the service itself: is it up, what does it count, move its clock, back it up, what is wrong with it.

pub mod backup;
pub mod diagnostics;
pub mod doctor;
pub(crate) mod download;
pub mod health;
mod metrics;
pub mod operator_key;
pub mod signing_keys;
pub mod test_clock;
