//! `/account/…`.

pub(crate) mod api_token;
pub(crate) mod api_token_checks;
mod api_token_me;
mod app;
mod app_credentials;
pub(crate) mod federation;
pub(crate) mod payments_plan;
mod payments_tax;
pub(crate) mod role;
mod role_privilege;
mod subscription_plans;
mod tenant;
mod tenant_payment_details;
mod tenant_user;
