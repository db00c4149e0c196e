//! `/cloud-views/…`.

mod brand;
mod flags;
mod flags_rules;
mod flags_tokens;
mod members_browser;
mod members_page;
mod plan_browser;
mod plan_page;
mod settings_page;
mod verify_sender;
