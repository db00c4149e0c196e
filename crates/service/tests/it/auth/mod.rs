//! `/auth/…`.

mod attacks;
mod authorize;
mod handover;
mod hosted;
mod hosted_attacks;
mod hosted_browser;
mod hosted_mfa;
mod hosted_passkeys;
mod introspect;
mod login;
mod mfa;
mod oidc_client;
mod passkeys;
mod revoke;
mod token;
mod well_known;
