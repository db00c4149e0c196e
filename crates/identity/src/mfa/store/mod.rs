//! The SQL of second factors: factors, passkeys, and what a login under way keeps about a code.

pub(super) mod factors;
pub(crate) mod passkeys;
pub(super) mod under_way;
