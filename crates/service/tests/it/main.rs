//! The service over HTTP, on both engines. Modules mirror the URLs; what concerns every URL has a module by its topic.

mod account_app;
mod admin_apps;
mod admin_flags;
mod admin_keys;
mod authorization;
mod backup;
mod conventions;
mod cors;
mod diagnostics;
mod docs;
mod doctor;
mod flag_evaluation;
mod flag_telemetry;
mod flag_tokens;
mod health;
mod installation;
mod log;
mod messages;
mod nodes;
mod ofrep;
mod ofrep_sdk;
mod signing_keys;
mod test_clock;
