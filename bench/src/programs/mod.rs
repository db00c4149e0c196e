//! One folder per benchmark. They are one program, so that a change is linked and optimised once.

mod billing;
mod events;
mod federation;
mod flags;
mod http;
mod login;
mod moving;
mod signals;
mod store;

use bench::Result;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum Program {
    /// Usage and entitlements, beside a service written by hand; first `npm ci` in bench/peers/by-hand.
    Billing(billing::Options),
    /// The event log, beside a service written by hand; first `npm ci` in bench/peers/by-hand.
    Events(events::Options),
    /// Sign-in through identity providers, and provisioning.
    Federation(federation::Options),
    /// The evaluation of feature flags, over loopback HTTP and in process.
    Flags(flags::Options),
    /// The tenantry server, which it builds, over loopback HTTP.
    Http(http::Options),
    /// Signing in: tokens, calls with them, reads beside logins.
    Login(login::Options),
    /// Imports and archives of very many people.
    Moving(moving::Options),
    /// Webhooks and realtime streams.
    Signals(signals::Options),
    /// `Db`, in this process.
    Store(store::Options),
}

impl Program {
    pub fn start(&self) -> Result<()> {
        match self {
            Self::Billing(options) => billing::start(options),
            Self::Events(options) => events::start(options),
            Self::Federation(options) => federation::start(options),
            Self::Flags(options) => flags::start(options),
            Self::Http(options) => http::start(options),
            Self::Login(options) => login::start(options),
            Self::Moving(options) => moving::start(options),
            Self::Signals(options) => signals::start(options),
            Self::Store(options) => store::start(options),
        }
    }
}
