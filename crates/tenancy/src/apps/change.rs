//! A change of the profile: what `PUT /account/app` may say, what each member must look like, and what becomes of the
//! profile. Read-only members are not here, so they are ignored like unknown ones.

use std::fmt::Display;

use kernel::{Email, Name, Origin, RedirectUri, TenantId, WebUrl, Words};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{Given, Patch, Validate};

use super::{OnboardingFlow, Profile, events::EventType};

/// The body of `PUT /account/app`: a missing member keeps its value, `null` clears it where it may be absent.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProfileChange {
    /// What people read: on pages, in mails.
    pub name: Given<Name>,
    /// An http or https URL.
    pub api_url: Patch<WebUrl>,
    /// Where the app's pages are; their origin may call from a browser.
    pub ui_url: Patch<WebUrl>,
    /// Receives webhook events.
    pub webhook_url: Patch<WebUrl>,
    /// Whether events are sent.
    pub webhook_enabled: Given<bool>,
    /// Event types to send; empty means all.
    pub webhook_events: Patch<Vec<EventType>>,
    /// The URL of a picture for hosted pages and mails.
    pub logo: Patch<WebUrl>,
    /// An http or https URL.
    pub website_url: Patch<WebUrl>,
    /// An http or https URL.
    pub privacy_policy_url: Patch<WebUrl>,
    /// An http or https URL.
    pub terms_of_service_url: Patch<WebUrl>,
    /// Mail leaves under this name; the app's own without one.
    pub email_sender_name: Patch<Name>,
    /// Mail leaves from it once it is verified: setting it mails a link there.
    pub email_sender_email: Patch<Email>,
    /// Whether payments are collected.
    pub payprovider_enabled: Given<bool>,
    /// Whether people are led to the plans after sign-up and when a trial ends.
    pub payments_auto_redirect: Given<bool>,
    /// Whether people may sign in by passkey.
    pub passkeys_enabled: Given<bool>,
    /// Whether people may sign in by a mailed link.
    pub magic_link_enabled: Given<bool>,
    /// Whether everybody needs a second factor.
    pub mfa_enabled: Given<bool>,
    pub social_one_sso_enabled: Given<bool>,
    pub directory_ad_sso_enabled: Given<bool>,
    pub social_two_sso_enabled: Given<bool>,
    pub social_three_sso_enabled: Given<bool>,
    pub social_four_sso_enabled: Given<bool>,
    pub onboarding_flow: Given<OnboardingFlow>,
    /// Whether people see the hosted pages instead of the app's own.
    pub cloud_views: Given<bool>,
    /// Whether people may sign up for new workspaces by themselves.
    pub tenant_self_signup: Given<bool>,
    /// Where a login may lead back to.
    pub redirect_uris: Patch<Vec<RedirectUri>>,
    /// Where a login leads back to when it does not say.
    pub default_callback_uri: Patch<RedirectUri>,
    /// Origins that may call from a browser, beside those of the URLs above.
    pub allowed_origins: Patch<Vec<Origin>>,
    /// Seconds: one minute to 30 days.
    #[serde(rename = "accessTokenTTL")]
    #[schemars(range(min = 60, max = 2_592_000))]
    pub access_token_ttl: Given<u32>,
    /// Seconds: five minutes to 365 days.
    #[serde(rename = "refreshTokenTTL")]
    #[schemars(range(min = 300, max = 31_536_000))]
    pub refresh_token_ttl: Given<u32>,
    /// Privileges that API tokens may carry; `null` means any.
    pub allowed_token_privileges: Patch<Vec<Words>>,
    /// Members of this workspace act for the whole app.
    pub operator_tenant_id: Patch<TenantId>,
    /// Whether a login without PKCE is refused.
    pub require_pkce: Given<bool>,
    /// Whether members may report usage; otherwise keys alone do.
    pub usage_from_users: Given<bool>,
}

impl Validate for ProfileChange {}

impl ProfileChange {
    /// Puts what was given in the place of what was.
    pub(crate) fn apply(self, profile: &mut Profile) {
        let sender = self.email_sender_email.apply(profile.email_sender_email.take());
        let verified = profile.email_sender_verified && sender.is_some();
        *profile = Profile {
            email_sender_email: sender,
            email_sender_verified: verified,
            api_url: self.api_url.apply(profile.api_url.take()),
            ui_url: self.ui_url.apply(profile.ui_url.take()),
            webhook_url: self.webhook_url.apply(profile.webhook_url.take()),
            logo: self.logo.apply(profile.logo.take()),
            website_url: self.website_url.apply(profile.website_url.take()),
            privacy_policy_url: self.privacy_policy_url.apply(profile.privacy_policy_url.take()),
            terms_of_service_url: self.terms_of_service_url.apply(profile.terms_of_service_url.take()),
            email_sender_name: self.email_sender_name.apply(profile.email_sender_name.take()),
            default_callback_uri: self.default_callback_uri.apply(profile.default_callback_uri.take()),
            allowed_token_privileges: texts(&self.allowed_token_privileges)
                .apply(profile.allowed_token_privileges.take()),
            operator_tenant_id: self.operator_tenant_id.apply(profile.operator_tenant_id),
            webhook_events: list(&self.webhook_events, &mut profile.webhook_events),
            redirect_uris: list(&self.redirect_uris, &mut profile.redirect_uris),
            allowed_origins: list(&self.allowed_origins, &mut profile.allowed_origins),
            ..std::mem::take(profile)
        };
        self.name.apply(&mut profile.name);
        self.webhook_enabled.apply(&mut profile.webhook_enabled);
        self.payprovider_enabled.apply(&mut profile.payprovider_enabled);
        self.payments_auto_redirect.apply(&mut profile.payments_auto_redirect);
        self.passkeys_enabled.apply(&mut profile.passkeys_enabled);
        self.magic_link_enabled.apply(&mut profile.magic_link_enabled);
        self.mfa_enabled.apply(&mut profile.mfa_enabled);
        self.social_one_sso_enabled.apply(&mut profile.social_one_sso_enabled);
        self.directory_ad_sso_enabled.apply(&mut profile.directory_ad_sso_enabled);
        self.social_two_sso_enabled.apply(&mut profile.social_two_sso_enabled);
        self.social_three_sso_enabled.apply(&mut profile.social_three_sso_enabled);
        self.social_four_sso_enabled.apply(&mut profile.social_four_sso_enabled);
        self.onboarding_flow.apply(&mut profile.onboarding_flow);
        self.cloud_views.apply(&mut profile.cloud_views);
        self.tenant_self_signup.apply(&mut profile.tenant_self_signup);
        self.access_token_ttl.apply(&mut profile.access_token_ttl);
        self.refresh_token_ttl.apply(&mut profile.refresh_token_ttl);
        self.require_pkce.apply(&mut profile.require_pkce);
        self.usage_from_users.apply(&mut profile.usage_from_users);
    }
}

/// A list is never absent: `null` empties it.
fn list<T: Display>(patch: &Patch<Vec<T>>, current: &mut Vec<String>) -> Vec<String> {
    texts(patch).apply(Some(std::mem::take(current))).unwrap_or_default()
}

fn texts<T: Display>(patch: &Patch<Vec<T>>) -> Patch<Vec<String>> {
    patch.map(|entries| entries.iter().map(T::to_string).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn full() -> Profile {
        Profile {
            name: "Tiny".into(),
            domain: "tiny.example".into(),
            email_sender_email: Some("hello@tiny.example".into()),
            email_sender_verified: true,
            redirect_uris: vec!["https://tiny.example/cb".into()],
            access_token_ttl: 90,
            mfa_enabled: true,
            ..Profile::default()
        }
    }

    fn applied(change: Value) -> Profile {
        let mut profile = full();
        let change: ProfileChange = serde_json::from_value(change).unwrap();
        change.apply(&mut profile);
        profile
    }

    #[test]
    fn an_empty_change_changes_nothing() {
        assert_eq!(applied(json!({})), full());
        assert_eq!(applied(json!({ "domain": "other.example", "emailSenderVerified": false, "id": 3 })), full());
    }

    #[test]
    fn every_member_can_be_changed_and_the_rest_stays() {
        let changed = applied(json!({ "uiUrl": "https://a.example", "redirectUris": null, "mfaEnabled": false }));
        let ui_url = Some("https://a.example".to_owned());
        assert_eq!(changed, Profile { ui_url, redirect_uris: Vec::new(), mfa_enabled: false, ..full() });
    }

    /// The change names every member of the profile that is not read-only.
    #[test]
    fn no_writable_member_is_forgotten() {
        let read_only = ["directoryMarketplaceEnabled", "domain", "emailSenderVerified"];
        let schema = schemars::schema_for!(ProfileChange);
        let change = schema.as_value()["properties"].as_object().unwrap().clone();
        let profile = serde_json::to_value(Profile::default()).unwrap();
        let profile = profile.as_object().unwrap();
        let mut missing: Vec<&str> =
            profile.keys().map(String::as_str).filter(|key| !change.contains_key(*key)).collect();
        missing.sort_unstable();
        assert_eq!(missing, read_only);
        assert!(change.keys().all(|key| profile.contains_key(key)));
    }
}
