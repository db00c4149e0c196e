//! The audit trail: a view of the events that name somebody or something. The service's own entries are events like others,
//! written from the facts that its rooms tell, with their author.

mod http;
mod own;
mod trail;

pub(crate) use http::routes;
pub(crate) use own::consume;
