//! The app profile: every setting of an app, as it goes over the wire and as it is stored.

use kernel::{AppId, TenantId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parameters::ParameterDefinition;

/// An app: its identity, and the profile that its owner may change.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct App {
    pub id: AppId,
    #[serde(flatten)]
    pub profile: Profile,
    pub created_at: Timestamp,
    /// Grows with every change, so that an older state never replaces a newer one in memory.
    #[serde(skip)]
    pub version: i64,
}

/// How new customers are led in: `B2C` skips the step in which a workspace gets its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnboardingFlow {
    #[default]
    B2B,
    B2C,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Profile {
    pub name: String,
    /// Unique among the apps of this installation; never changes.
    pub domain: String,
    pub api_url: Option<String>,
    pub ui_url: Option<String>,
    /// Receives webhook events.
    pub webhook_url: Option<String>,
    pub webhook_enabled: bool,
    /// Event types to send; empty means all.
    pub webhook_events: Vec<String>,
    pub logo: Option<String>,
    pub website_url: Option<String>,
    pub privacy_policy_url: Option<String>,
    pub terms_of_service_url: Option<String>,
    pub email_sender_name: Option<String>,
    /// Used once it is verified.
    pub email_sender_email: Option<String>,
    /// Whether a mailed link proved that the sender's address may be used.
    pub email_sender_verified: bool,
    pub payprovider_enabled: bool,
    pub payments_auto_redirect: bool,
    pub passkeys_enabled: bool,
    pub magic_link_enabled: bool,
    pub mfa_enabled: bool,
    pub social_one_sso_enabled: bool,
    pub directory_ad_sso_enabled: bool,
    pub social_two_sso_enabled: bool,
    pub social_three_sso_enabled: bool,
    pub social_four_sso_enabled: bool,
    pub directory_marketplace_enabled: bool,
    pub onboarding_flow: OnboardingFlow,
    /// Whether people see the hosted pages instead of the app's own.
    pub cloud_views: bool,
    /// Whether people may sign up for new workspaces by themselves.
    pub tenant_self_signup: bool,
    pub redirect_uris: Vec<String>,
    pub default_callback_uri: Option<String>,
    /// Origins that may call from a browser, beside those of the URLs above.
    pub allowed_origins: Vec<String>,
    /// Seconds.
    #[serde(rename = "accessTokenTTL")]
    pub access_token_ttl: u32,
    /// Seconds.
    #[serde(rename = "refreshTokenTTL")]
    pub refresh_token_ttl: u32,
    /// Privileges that API tokens may carry; `null` means any.
    pub allowed_token_privileges: Option<Vec<String>>,
    /// Members of this workspace act for the whole app.
    pub operator_tenant_id: Option<TenantId>,
    pub require_pkce: bool,
    /// Whether members may report usage; otherwise keys alone do.
    pub usage_from_users: bool,
    /// What the app keeps about members beside what everybody has; set at `/account/app/userParameters`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub user_parameters: Vec<ParameterDefinition>,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            name: String::new(),
            domain: String::new(),
            api_url: None,
            ui_url: None,
            webhook_url: None,
            webhook_enabled: true,
            webhook_events: Vec::new(),
            logo: None,
            website_url: None,
            privacy_policy_url: None,
            terms_of_service_url: None,
            email_sender_name: None,
            email_sender_email: None,
            email_sender_verified: false,
            payprovider_enabled: false,
            payments_auto_redirect: false,
            passkeys_enabled: true,
            magic_link_enabled: true,
            mfa_enabled: false,
            social_one_sso_enabled: false,
            directory_ad_sso_enabled: false,
            social_two_sso_enabled: false,
            social_three_sso_enabled: false,
            social_four_sso_enabled: false,
            directory_marketplace_enabled: false,
            onboarding_flow: OnboardingFlow::B2B,
            cloud_views: true,
            tenant_self_signup: true,
            redirect_uris: Vec::new(),
            default_callback_uri: None,
            allowed_origins: Vec::new(),
            access_token_ttl: 3_600,
            refresh_token_ttl: 604_800,
            allowed_token_privileges: None,
            operator_tenant_id: None,
            require_pkce: false,
            usage_from_users: true,
            user_parameters: Vec::new(),
        }
    }
}

impl Profile {
    /// The address that mail may leave from; the service's own without one.
    pub fn verified_sender(&self) -> Option<&str> {
        self.email_sender_email.as_deref().filter(|_| self.email_sender_verified)
    }

    /// The origins that may call for this app from a browser: those of its own pages and callbacks, and the listed ones.
    pub fn origins(&self) -> Vec<String> {
        let pages = self.ui_url.iter().chain(&self.redirect_uris).chain(&self.default_callback_uri);
        let mut origins: Vec<String> = pages.chain(&self.allowed_origins).filter_map(|url| origin_of(url)).collect();
        origins.sort_unstable();
        origins.dedup();
        origins
    }
}

/// The origin as a browser writes it in the `Origin` header; native schemes have none.
pub(super) fn origin_of(url: &str) -> Option<String> {
    let url = url::Url::parse(url).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_come_from_pages_callbacks_and_the_list() {
        let profile = Profile {
            ui_url: Some("https://App.Example:443/start".into()),
            redirect_uris: vec!["http://localhost:3000/callback".into(), "com.example.app:/done".into()],
            default_callback_uri: Some("https://app.example/callback".into()),
            allowed_origins: vec!["https://embed.example".into()],
            ..Profile::default()
        };
        assert_eq!(profile.origins(), ["http://localhost:3000", "https://app.example", "https://embed.example"]);
    }
}
