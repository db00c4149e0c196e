//! HTTP conventions, free of business: how a route is registered, what a request may look like, how an answer or a
//! failure leaves, and the server underneath.
//!
//! Routes are registered only through [`Routes`], so that the router, the OpenAPI document and the route table cannot
//! disagree. [`Conventions`] wraps the router with what every route shares: request ids, `/v1`, limits, CORS, security
//! headers, the log line and metrics.

mod answers;
mod arrival;
mod components;
mod conventions;
mod cors;
mod dispatch;
mod docs;
mod extract;
mod failure;
mod handler;
mod html;
mod limits;
pub mod logging;
pub mod metrics;
mod openapi;
mod operation;
#[cfg(feature = "otel")]
mod otel;
pub mod pages;
mod patch;
pub mod process;
mod proxies;
mod record;
mod routes;
mod schemas;
pub mod scim;
mod scope;
pub mod server;
mod shares;
mod table;

pub use answers::{
    Accepted, Created, CreatedEmpty, Css, Empty, Html, Json, Prewritten, Redirect, Script, Success, Tagged, Text,
    WithHeaders,
};
pub use arrival::Pace;
pub use conventions::{App, AtHand, Conventions, Peer, Settings};
pub use cors::Origins;
pub use docs::docs_routes;
pub use extract::{
    BodyStream, Entries, EntryError, Form, IfNoneMatch, LenientForm, LenientParams, MediaType, Page, Params, Path,
    RawBody, Valid, ValidOrNone, Validate, form_fields, from_json, from_value, not_json, optional_header, parse_json,
    read_json, required_header,
};
pub use failure::{Failure, status_of};
pub use handler::Handler;
pub use html::Escaped;
pub use limits::{LimitClass, Quota, RateLimits, Subject, limited};
pub use openapi::Info;
pub use operation::{Access, Describe, Operation};
pub use patch::{Given, Patch};
pub use proxies::TrustedProxies;
pub use routes::Routes;
pub use scope::{Anyone, ClientAddress, RequestId, Scope};
pub use table::{RouteEntry, errors_markdown, routes_markdown};

/// An address range, for trusted proxies.
pub use ipnet::IpNet;

/// The state of the service, or a part of it, in a handler's arguments.
pub use axum::extract::State;
/// What handlers return: an answer, or an error that becomes a response in one place.
pub use kernel::Result;
