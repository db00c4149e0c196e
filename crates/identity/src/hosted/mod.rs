//! The hosted login: pages under `/auth/login…` on which people of an app sign in, and what becomes of it.
//!
//! A login is a walk from page to page. What the app asked for travels sealed in the addresses; who is signing in stands
//! in a cookie of the app's own; the next page always follows from the two (`next`). Nothing is changed by a GET,
//! and every form carries a value that only this browser knows.

mod address;
mod authorize;
mod begin;
pub mod cookies;
mod demo;
mod done;
mod end_session;
mod finish;
pub mod flash;
mod forgot;
mod guest;
mod identifier;
mod invitation;
mod known_browser;
mod magic_link;
mod mailed;
mod mfa;
mod mfa_setup;
mod new_address;
mod once;
mod passkey_setup;
mod passkeys;
pub(crate) mod reply;
mod set_password;
mod sign_up;
#[cfg(test)]
mod texts;
pub(crate) mod visit;
mod wait;
mod ways;
mod workspace;

use schemars::JsonSchema;
use serde::Deserialize;
use web::Routes;

pub(crate) use begin::{begin, sign_out, sign_out_to};
pub(crate) use finish::go_on;
pub(crate) use guest::Guest;
pub use once::{Once, Sent};
pub use reply::Reply;
pub use set_password::SetPasswordPage;
use tenancy::paths;
pub(crate) use visit::Visit;

use crate::Identity;
pub use crate::browser::Request;

pub fn routes() -> Routes<Identity> {
    authorize::routes()
        .merge(end_session::routes())
        .merge(identifier::routes())
        .merge(workspace::routes())
        .merge(mfa::routes())
        .merge(mfa_setup::routes())
        .merge(passkeys::routes())
        .merge(passkey_setup::routes())
        .merge(magic_link::routes())
        .merge(forgot::routes())
        .merge(sign_up::routes())
        .merge(set_password::routes())
        .merge(done::routes())
        .merge(wait::routes())
        .merge(demo::routes())
        .merge(invitation::routes())
        .merge(ways::routes())
        .merge(new_address::routes())
}

/// The query of a page: the login request that it belongs to.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct PageQuery {
    pub(crate) r: String,
}

/// A form without fields of its own.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct ButtonForm {
    pub(crate) r: String,
    #[serde(default)]
    pub(crate) csrf: String,
}
