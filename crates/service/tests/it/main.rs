//! The service over HTTP, on both engines. Modules mirror the URLs; what concerns every URL has a module by its topic.

mod account_app;
mod account_federation;
mod account_payments_plan;
mod account_payments_tax;
mod account_role;
mod account_role_privilege;
mod account_tenant_payment_details;
mod admin_apps;
mod admin_keys;
mod authorization;
mod backup;
mod conventions;
mod cors;
mod diagnostics;
mod docs;
mod doctor;
mod health;
mod installation;
mod log;
mod messages;
mod nodes;
mod role_invariants;
mod signing_keys;
mod test_clock;
