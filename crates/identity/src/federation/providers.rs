//! Where the social and directory providers are: the operator's settings, and which of them an app can offer.

use std::{collections::HashMap, sync::Arc};

use ::store::Tx;
use kernel::Result;
use tenancy::{
    App, Tenancy,
    credentials::{self, ProviderClient},
    federation::Provider,
};

/// How the answer of a provider comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseMode {
    #[default]
    Query,
    FormPost,
}

/// One provider's settings.
#[derive(Clone, Debug, Default)]
pub struct ProviderSettings {
    /// As people know it.
    pub name: String,
    /// May hold `{tenantId}`.
    pub issuer: Option<String>,
    pub scopes: String,
    /// The claim that calls the address verified.
    pub verified_claim: String,
    pub response_mode: ResponseMode,
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: Option<String>,
    pub userinfo_endpoint: Option<String>,
    /// A list of the person's addresses, where the provider keeps them apart.
    pub emails_endpoint: Option<String>,
    pub jwks_uri: Option<String>,
}

const TENANT_ID: &str = "{tenantId}";

impl ProviderSettings {
    /// The issuer with the directory's tenant in its place; `None` when there is no issuer, or no such tenant.
    pub(super) fn issuer_for(&self, client: &ProviderClient) -> Option<String> {
        let issuer = self.issuer.as_deref()?;
        if !issuer.contains(TENANT_ID) {
            return Some(issuer.to_owned());
        }
        // The app's own text within an address: a word, so that it cannot lead elsewhere.
        let tenant = client.tenant_id.as_deref()?;
        let is_word = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
        (!tenant.is_empty() && is_word(tenant) && !tenant.contains("..")).then(|| issuer.replace(TENANT_ID, tenant))
    }

    fn can_be_asked(&self, client: &ProviderClient) -> bool {
        self.authorization_endpoint.is_some() || self.issuer_for(client).is_some()
    }
}

/// The settings of all providers that the operator has set up. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Providers(Arc<HashMap<Provider, ProviderSettings>>);

impl Providers {
    pub fn new(settings: impl IntoIterator<Item = (Provider, ProviderSettings)>) -> Self {
        Self(Arc::new(settings.into_iter().collect()))
    }

    pub(super) fn get(&self, provider: Provider) -> Option<&ProviderSettings> {
        self.0.get(&provider)
    }

    /// The app's client with a provider that it has turned on and that is set up; `None` otherwise.
    pub(crate) fn client(
        &self,
        tx: &mut Tx<'_>,
        tenancy: &Tenancy,
        app: &App,
        provider: Provider,
    ) -> Result<Option<ProviderClient>> {
        let Some(settings) = self.get(provider).filter(|_| provider.is_on(&app.profile)) else { return Ok(None) };
        let client = credentials::provider_client(tx, tenancy, app.id, provider)?;
        Ok(client.filter(|client| settings.can_be_asked(client)))
    }

    /// What an app's login page offers, with the names that people know.
    pub(crate) fn offered(&self, tx: &mut Tx<'_>, tenancy: &Tenancy, app: &App) -> Result<Vec<(Provider, String)>> {
        let mut offered = Vec::new();
        for provider in Provider::ALL {
            if self.client(tx, tenancy, app, provider)?.is_some()
                && let Some(settings) = self.get(provider)
            {
                offered.push((provider, settings.name.clone()));
            }
        }
        Ok(offered)
    }
}

#[cfg(test)]
mod tests {
    use kernel::Secret;

    use super::*;

    fn issuer(tenant: Option<&str>) -> Option<String> {
        let settings =
            ProviderSettings { issuer: Some("https://login.example/{tenantId}/v2.0".into()), ..Default::default() };
        let tenant_id = tenant.map(str::to_owned);
        settings.issuer_for(&ProviderClient { id: "id".into(), secret: Secret::new("s".into()), tenant_id })
    }

    #[test]
    fn a_directorys_tenant_is_a_word_in_the_issuer() {
        assert_eq!(issuer(Some("acme.example")).as_deref(), Some("https://login.example/acme.example/v2.0"));
        for wrong in [None, Some(""), Some("a/b"), Some(".."), Some("a?b"), Some("a#b"), Some("a@b"), Some("%2e%2e")] {
            assert_eq!(issuer(wrong), None, "{wrong:?}");
        }
    }
}
