//! `/admin/…`.

mod apps;
mod apps_billing;
mod apps_flags;
mod apps_import;
mod apps_keys;
mod apps_secrets;
mod apps_webhook;
mod brand_css;
mod doctor;
mod operator_key;
mod signing_keys;
mod test_clock;
