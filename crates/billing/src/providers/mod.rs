//! Whoever is paid: nobody, or the sandbox, a payment provider inside this service with which everything can be tried offline.
//! Where nobody is paid, plans are assigned directly.

pub mod callbacks;
pub mod checkout;
mod desk;
pub mod http;
mod money;
pub mod sandbox;
pub mod signature;
mod store;

use ::store::Tx;
use kernel::{Code, Error, Result};
use tenancy::{
    App, Tenancy,
    credentials::{self, Credential},
};

/// Who is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    None,
    Sandbox,
}

/// The secret keys of the sandbox begin with this.
const SANDBOX: &str = "sandbox_";

/// Whether the app has a payment provider: it is switched on and has its secret key.
pub(crate) fn is_enabled(tx: &mut Tx<'_>, app: &App) -> Result<bool> {
    Ok(app.profile.payprovider_enabled && credentials::is_set(tx, app.id, Credential::PayproviderSecretKey)?)
}

/// Who is paid for plans of this app.
pub(crate) fn of(tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App) -> Result<Provider> {
    if !app.profile.payprovider_enabled {
        return Ok(Provider::None);
    }
    match credentials::find(tx, tenancy, app.id, Credential::PayproviderSecretKey)? {
        None => Ok(Provider::None),
        Some(key) if key.expose().starts_with(SANDBOX) => Ok(Provider::Sandbox),
        Some(_) => {
            let message = "This installation can only be paid through the sandbox: set a payproviderSecretKey that starts \
                           with sandbox_.";
            Err(Error::new(Code::ProviderFailed, message))
        }
    }
}
