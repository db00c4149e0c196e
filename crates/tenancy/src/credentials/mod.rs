//! An app's credentials with third parties: written, never read back over the wire, and sealed at rest.

pub mod http;
mod provider_client;
mod store;

use ::store::{Tx, text_enum};
use kernel::{AppId, Error, Result, Secret};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spine::emit;
use vault::Place;
use web::{Patch, Validate};

pub use provider_client::{ProviderClient, provider_client};

use crate::{Authority, Tenancy, apps, facts::AppCredentialsChanged};

text_enum! {
    /// The credentials by their names on the wire and in the store.
    #[derive(Hash)]
    pub enum Credential {
        PayproviderSecretKey = "payproviderSecretKey",
        PayproviderPublicKey = "payproviderPublicKey",
        PayproviderWebhookSecret = "payproviderWebhookSecret",
        SocialOneClientId = "socialOneClientId",
        SocialOneClientSecret = "socialOneClientSecret",
        SocialTwoClientId = "socialTwoClientId",
        SocialTwoClientSecret = "socialTwoClientSecret",
        SocialThreeClientId = "socialThreeClientId",
        SocialThreeClientSecret = "socialThreeClientSecret",
        SocialFourClientId = "socialFourClientId",
        SocialFourClientSecret = "socialFourClientSecret",
        DirectoryAdClientId = "directoryAdClientId",
        DirectoryAdClientSecret = "directoryAdClientSecret",
        DirectoryAdTenantId = "directoryAdTenantId",
        DirectoryMarketplaceClientId = "directoryMarketplaceClientId",
        DirectoryMarketplaceClientSecret = "directoryMarketplaceClientSecret",
        DirectoryMarketplaceTenantId = "directoryMarketplaceTenantId",
    }
}

impl Credential {
    const fn place(self, app: AppId) -> Place<'static> {
        Place { table: "app_credentials", column: "sealed", row: self.as_str(), app: Some(app) }
    }
}

/// The body of `PUT /account/app/credentials`. A missing member keeps its value; an empty text or `null` clears it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "AppCredentials")]
pub struct CredentialChange {
    payprovider_secret_key: Patch<Secret<String>>,
    payprovider_public_key: Patch<Secret<String>>,
    /// Signs what the payment provider sends.
    payprovider_webhook_secret: Patch<Secret<String>>,
    social_one_client_id: Patch<Secret<String>>,
    social_one_client_secret: Patch<Secret<String>>,
    social_two_client_id: Patch<Secret<String>>,
    social_two_client_secret: Patch<Secret<String>>,
    social_three_client_id: Patch<Secret<String>>,
    social_three_client_secret: Patch<Secret<String>>,
    social_four_client_id: Patch<Secret<String>>,
    social_four_client_secret: Patch<Secret<String>>,
    directory_ad_client_id: Patch<Secret<String>>,
    directory_ad_client_secret: Patch<Secret<String>>,
    directory_ad_tenant_id: Patch<Secret<String>>,
    directory_marketplace_client_id: Patch<Secret<String>>,
    directory_marketplace_client_secret: Patch<Secret<String>>,
    directory_marketplace_tenant_id: Patch<Secret<String>>,
}

impl CredentialChange {
    fn members(&self) -> [(Credential, &Patch<Secret<String>>); 17] {
        [
            (Credential::PayproviderSecretKey, &self.payprovider_secret_key),
            (Credential::PayproviderPublicKey, &self.payprovider_public_key),
            (Credential::PayproviderWebhookSecret, &self.payprovider_webhook_secret),
            (Credential::SocialOneClientId, &self.social_one_client_id),
            (Credential::SocialOneClientSecret, &self.social_one_client_secret),
            (Credential::SocialTwoClientId, &self.social_two_client_id),
            (Credential::SocialTwoClientSecret, &self.social_two_client_secret),
            (Credential::SocialThreeClientId, &self.social_three_client_id),
            (Credential::SocialThreeClientSecret, &self.social_three_client_secret),
            (Credential::SocialFourClientId, &self.social_four_client_id),
            (Credential::SocialFourClientSecret, &self.social_four_client_secret),
            (Credential::DirectoryAdClientId, &self.directory_ad_client_id),
            (Credential::DirectoryAdClientSecret, &self.directory_ad_client_secret),
            (Credential::DirectoryAdTenantId, &self.directory_ad_tenant_id),
            (Credential::DirectoryMarketplaceClientId, &self.directory_marketplace_client_id),
            (Credential::DirectoryMarketplaceClientSecret, &self.directory_marketplace_client_secret),
            (Credential::DirectoryMarketplaceTenantId, &self.directory_marketplace_tenant_id),
        ]
    }
}

impl Validate for CredentialChange {}

/// Which credentials an app has; never their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialsState {
    /// The secret key is set.
    payprovider_credentials_added: bool,
    /// The marketplace's client id, client secret and tenant id are set.
    directory_marketplace_credentials_added: bool,
    /// The client's id and secret are set.
    directory_ad_sso_credentials_added: bool,
    /// The client's id and secret are set.
    social_one_sso_credentials_added: bool,
    /// The client's id and secret are set.
    social_two_sso_credentials_added: bool,
    /// The client's id and secret are set.
    social_three_sso_credentials_added: bool,
    /// The client's id and secret are set.
    social_four_sso_credentials_added: bool,
}

pub fn state(tx: &mut Tx<'_>, app: AppId) -> Result<CredentialsState> {
    let names = store::names(tx, app)?;
    let has = |wanted: Credential| names.iter().any(|name| name == wanted.as_str());
    let has_all = |wanted: &[Credential]| wanted.iter().all(|wanted| has(*wanted));
    Ok(CredentialsState {
        payprovider_credentials_added: has(Credential::PayproviderSecretKey),
        directory_marketplace_credentials_added: has_all(&[
            Credential::DirectoryMarketplaceClientId,
            Credential::DirectoryMarketplaceClientSecret,
            Credential::DirectoryMarketplaceTenantId,
        ]),
        directory_ad_sso_credentials_added: has_all(&[
            Credential::DirectoryAdClientId,
            Credential::DirectoryAdClientSecret,
        ]),
        social_one_sso_credentials_added: has_all(&[Credential::SocialOneClientId, Credential::SocialOneClientSecret]),
        social_two_sso_credentials_added: has_all(&[Credential::SocialTwoClientId, Credential::SocialTwoClientSecret]),
        social_three_sso_credentials_added: has_all(&[
            Credential::SocialThreeClientId,
            Credential::SocialThreeClientSecret,
        ]),
        social_four_sso_credentials_added: has_all(&[
            Credential::SocialFourClientId,
            Credential::SocialFourClientSecret,
        ]),
    })
}

/// Sets and clears what the change names.
pub fn change(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    app: AppId,
    authority: &Authority,
    change: &CredentialChange,
) -> Result<CredentialsState> {
    if let Some((name, _)) = change.members().iter().find(|(_, member)| !matches!(member, Patch::Missing)) {
        authority.may_move_power(name.as_str())?;
    }
    apps::locked(tx, app)?;
    let mut changed = Vec::new();
    for (name, member) in change.members() {
        match member {
            Patch::Missing => continue,
            // Spaces and line breaks come along when a key is copied, and are never part of one.
            Patch::Value(value) if !value.expose().trim().is_empty() => set(tx, tenancy, app, name, value)?,
            Patch::Null | Patch::Value(_) => store::delete(tx, app, name)?,
        }
        changed.push(name.as_str().to_owned());
    }
    if !changed.is_empty() {
        emit(tx, app, &AppCredentialsChanged { names: changed })?;
    }
    state(tx, app)
}

/// Seals and keeps one credential; for rooms that obtain one themselves.
pub fn set(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, name: Credential, value: &Secret<String>) -> Result<()> {
    let sealed = tenancy.keyring.seal(&name.place(app), value.expose().trim().as_bytes());
    store::put(tx, app, name, &sealed)
}

/// Whether the app has a payment provider now: it is switched on and has its secret key.
pub fn has_payprovider(tx: &mut Tx<'_>, app: AppId) -> Result<bool> {
    let found = store::profile_with(tx, app, Credential::PayproviderSecretKey)?;
    Ok(found.is_some_and(|profile| profile.payprovider_enabled))
}

/// Whether an app has this credential.
pub fn is_set(tx: &mut Tx<'_>, app: AppId, name: Credential) -> Result<bool> {
    Ok(store::find(tx, app, name)?.is_some())
}

/// The credential itself, for calls to the third party.
pub fn find(tx: &mut Tx<'_>, tenancy: &Tenancy, app: AppId, name: Credential) -> Result<Option<Secret<String>>> {
    let Some(sealed) = store::find(tx, app, name)? else { return Ok(None) };
    let opened = tenancy.keyring.open(&name.place(app), &sealed)?;
    let text = String::from_utf8(opened.into_exposed()).map_err(|_| Error::internal("a credential is not text"))?;
    Ok(Some(Secret::new(text)))
}

/// Removes what belonged to an app that is gone.
pub(crate) fn purge(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    store::purge(tx, app)
}
