//! The service over HTTP, on both engines. Folders and files mirror the URLs; `promises` has what spans them.

mod account;
mod admin;
mod auth;
mod billing;
mod cloud_views;
mod communication;
mod diagnostics;
mod docs;
mod entitlements;
mod event_log;
mod flags;
mod health;
mod ofrep;
mod promises;
mod realtime;
mod scim;
mod usage;
mod webhooks;
