//! The pure heart of the room: what may be saved, what it compiles to, and what it evaluates to for whom.
//!
//! No I/O, no clock, no randomness: [`evaluate`] depends on its arguments alone, never panics on any context, and
//! allocates nothing but what a lenient version number needs.

mod check;
mod compile;
mod condition;
mod context;
mod evaluate;
mod explain;
mod json;
mod rollout;

pub use check::{check, check_branches, check_key};
pub use compile::{Attribute, Attributes, Flag, FlagResult, Groups};
pub use context::{Context, Live, Root, SentContext};
pub use evaluate::{FlagVerdict, OnDemand, Reason, Resolved, evaluate};
pub use explain::{BranchTrace, ConditionTrace, Explanation, RolloutTrace, explain};
pub use json::Json;
pub use rollout::{BUCKETS, bucket};

#[cfg(test)]
mod properties;
