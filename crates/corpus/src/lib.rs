//! What the parsers of outside input are tested with: checked-in inputs, replayed on every run and the seed of the
//! fuzzers, and changes of good inputs, byte by byte or member by member. Only tests depend on this crate.

mod edits;
mod json;
mod made;
mod replay;

pub use edits::{Edit, edited, edits, nasty_text};
pub use json::{any_json, nested, warped, warps};
pub use made::{Made, check_made, write_made};
pub use replay::{replay, seeds};
