//! `/account/…`.

mod api_token;
mod api_token_checks;
mod api_token_me;
mod app;
mod app_credentials;
pub(crate) mod federation;
mod import;
mod import_file;
mod import_passwords;
mod payments_dry_run;
mod payments_plan;
mod payments_tax;
mod payprovider;
mod role;
mod role_privilege;
mod subscription;
mod subscription_checkout;
mod subscription_history;
mod subscription_plans;
mod subscription_portal;
mod tenant;
mod tenant_files;
mod tenant_payment_details;
mod tenant_translate;
mod tenant_user;
mod user_parameters;
