//! Whoever is paid: nobody; the sandbox, a payment provider inside this service with which everything can be tried offline; or
//! a Stripe-compatible provider.
//! Where nobody is paid, plans are assigned directly.

pub mod callbacks;
pub mod checkout;
mod desk;
pub mod http;
mod money;
pub mod sandbox;
pub mod signature;
mod store;
pub mod stripe;

pub use desk::ProviderSubscription;
pub use stripe::leaving::{Settled, is_settled};

use ::store::Tx;
use kernel::{Result, Secret};
use tenancy::{
    App, Tenancy,
    credentials::{self, Credential},
};

/// Who is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    None,
    Sandbox,
    /// A Stripe-compatible provider.
    Stripe,
}

/// The secret keys of the sandbox begin with this.
const SANDBOX: &str = "sandbox_";

pub(crate) fn is_sandbox(key: &Secret<String>) -> bool {
    key.expose().starts_with(SANDBOX)
}

/// Who is paid for plans of this app.
pub(crate) fn of(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App) -> Result<Provider> {
    if !app.profile.payprovider_enabled {
        return Ok(Provider::None);
    }
    let key = credentials::find(tx, tenancy, app.id, Credential::PayproviderSecretKey)?;
    Ok(match key {
        None => Provider::None,
        Some(key) if is_sandbox(&key) => Provider::Sandbox,
        Some(_) => Provider::Stripe,
    })
}
