//! The audit trail: a view of the events that name somebody or something. The service's own entries are events like others,
//! written from the facts that its rooms tell, with their author.

mod chain;
mod download;
mod http;
mod own;
mod trail;

pub(crate) use chain::{Verifications, erase as erase_from_chain, positions, sweep as sweep_chain};
pub(crate) use http::routes;
pub(crate) use own::consume;
