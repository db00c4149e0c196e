//! The service over HTTP, on both engines. Modules mirror the URLs; what concerns every URL has a module by its topic.

mod account_app;
mod account_app_credentials;
mod admin_apps;
mod admin_apps_webhook;
mod admin_brand_css;
mod admin_keys;
mod authorization;
mod backup;
mod cloud_views_brand;
mod cloud_views_verify_sender;
mod communication_email_template;
mod conventions;
mod cors;
mod diagnostics;
mod docs;
mod doctor;
mod health;
mod installation;
mod log;
mod mails;
mod messages;
mod nodes;
mod signing_keys;
mod test_clock;
