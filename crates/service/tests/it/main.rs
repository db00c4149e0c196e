//! The service over HTTP, on both engines. Modules mirror the URLs; what concerns every URL has a module by its topic.

mod account_app;
mod admin_apps;
mod admin_keys;
mod authorization;
mod backup;
mod conventions;
mod cors;
mod deletion;
mod diagnostics;
mod docs;
mod doctor;
mod facts;
mod health;
mod installation;
mod log;
mod messages;
mod nodes;
mod owners;
mod signing_keys;
mod tenant_users;
mod tenants;
mod test_clock;
