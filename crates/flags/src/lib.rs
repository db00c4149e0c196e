//! Feature flags.

pub mod model;
pub mod rules;
