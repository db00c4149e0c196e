//! Whoever is paid.

use kernel::Result;
use store::Tx;
use tenancy::{
    App,
    credentials::{self, Credential},
};

/// Whether the app has a payment provider: it is switched on and has its secret key.
pub(crate) fn is_enabled(tx: &mut Tx<'_>, app: &App) -> Result<bool> {
    Ok(app.profile.payprovider_enabled && credentials::is_set(tx, app.id, Credential::PayproviderSecretKey)?)
}
