//! An app's client with a social or directory provider.

use ::store::Tx;
use kernel::{AppId, Result, Secret};

use super::{Credential, find};
use crate::{Tenancy, federation::Provider};

/// What the provider gave out to the app.
#[derive(Clone, Debug)]
pub struct ProviderClient {
    pub id: String,
    pub secret: Secret<String>,
    /// The directory's tenant; of directories alone.
    pub tenant_id: Option<String>,
}

/// The names of a client's id and secret.
const fn names(provider: Provider) -> (Credential, Credential) {
    match provider {
        Provider::SocialOne => (Credential::SocialOneClientId, Credential::SocialOneClientSecret),
        Provider::SocialTwo => (Credential::SocialTwoClientId, Credential::SocialTwoClientSecret),
        Provider::SocialThree => (Credential::SocialThreeClientId, Credential::SocialThreeClientSecret),
        Provider::SocialFour => (Credential::SocialFourClientId, Credential::SocialFourClientSecret),
        Provider::DirectoryAd => (Credential::DirectoryAdClientId, Credential::DirectoryAdClientSecret),
    }
}

/// `None` unless the app has set both its id and its secret.
pub fn provider_client(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: AppId,
    provider: Provider,
) -> Result<Option<ProviderClient>> {
    let (id, secret) = names(provider);
    let Some(id) = find(tx, tenancy, app, id)? else { return Ok(None) };
    let Some(secret) = find(tx, tenancy, app, secret)? else { return Ok(None) };
    let tenant_id = match provider {
        Provider::DirectoryAd => find(tx, tenancy, app, Credential::DirectoryAdTenantId)?,
        _ => None,
    };
    let tenant_id = tenant_id.map(Secret::into_exposed);
    Ok(Some(ProviderClient { id: id.into_exposed(), secret, tenant_id }))
}
