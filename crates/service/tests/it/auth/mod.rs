//! `/auth/…`.

mod attacks;
pub(crate) mod authorize;
mod handover;
pub(crate) mod hosted;
mod hosted_attacks;
mod hosted_browser;
mod hosted_mfa;
mod hosted_passkeys;
mod introspect;
pub(crate) mod login;
pub(crate) mod mfa;
mod oidc_client;
pub(crate) mod passkeys;
mod revoke;
pub(crate) mod token;
mod well_known;
