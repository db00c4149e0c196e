//! A change of the profile: what `PUT /account/app` may say, what each member must look like, and what becomes of the
//! profile. Read-only members are not here, so they are ignored like unknown ones.

use kernel::{Problems, TenantId};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{Given, Patch, Validate};

use super::{
    OnboardingFlow, Profile,
    rules::{self, ORIGIN, REDIRECT_URI, WEB_URL},
    webhook,
};
use crate::mails;

/// Seconds: one minute to 30 days.
const ACCESS_TOKEN_TTL: std::ops::RangeInclusive<u32> = 60..=2_592_000;
/// Seconds: five minutes to 365 days.
const REFRESH_TOKEN_TTL: std::ops::RangeInclusive<u32> = 300..=31_536_000;
const LONGEST_SENDER_NAME: usize = 200;

/// The body of `PUT /account/app`: a missing member keeps its value, `null` clears it where it may be absent.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProfileChange {
    /// What people read: on pages, in mails.
    #[schemars(length(min = 1), regex(pattern = "\\S"))]
    pub name: Given<String>,
    /// An http or https URL.
    #[schemars(length(max = 2048), regex(pattern = WEB_URL))]
    pub api_url: Patch<String>,
    /// Where the app's pages are; their origin may call from a browser.
    #[schemars(length(max = 2048), regex(pattern = WEB_URL))]
    pub ui_url: Patch<String>,
    /// Receives webhook events.
    #[schemars(length(max = 2048), regex(pattern = WEB_URL))]
    pub webhook_url: Patch<String>,
    /// Whether events are sent.
    pub webhook_enabled: Given<bool>,
    /// Event types to send; empty means all.
    #[schemars(with = "Patch<Vec<webhook::EventType>>", length(max = 1000))]
    pub webhook_events: Patch<Vec<String>>,
    /// The URL of a picture for hosted pages and mails.
    #[schemars(length(max = 2048), regex(pattern = WEB_URL))]
    pub logo: Patch<String>,
    /// An http or https URL.
    #[schemars(length(max = 2048), regex(pattern = WEB_URL))]
    pub website_url: Patch<String>,
    /// An http or https URL.
    #[schemars(length(max = 2048), regex(pattern = WEB_URL))]
    pub privacy_policy_url: Patch<String>,
    /// An http or https URL.
    #[schemars(length(max = 2048), regex(pattern = WEB_URL))]
    pub terms_of_service_url: Patch<String>,
    /// Mail leaves under this name; the app's own without one.
    #[schemars(length(max = 200), regex(pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*\\S[^\\x00-\\x1f\\x7f-\\x9f]*$"))]
    pub email_sender_name: Patch<String>,
    /// Mail leaves from it once it is verified: setting it mails a link there.
    #[schemars(regex(pattern = mails::ADDRESS))]
    pub email_sender_email: Patch<String>,
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
    #[schemars(length(max = 1000), inner(regex(pattern = REDIRECT_URI)))]
    pub redirect_uris: Patch<Vec<String>>,
    /// Where a login leads back to when it does not say.
    #[schemars(length(max = 2048), regex(pattern = REDIRECT_URI))]
    pub default_callback_uri: Patch<String>,
    /// Origins that may call from a browser, beside those of the URLs above.
    #[schemars(length(max = 1000), inner(regex(pattern = ORIGIN)))]
    pub allowed_origins: Patch<Vec<String>>,
    /// Seconds.
    #[serde(rename = "accessTokenTTL")]
    #[schemars(range(min = 60, max = 2_592_000))]
    pub access_token_ttl: Given<u32>,
    /// Seconds.
    #[serde(rename = "refreshTokenTTL")]
    #[schemars(range(min = 300, max = 31_536_000))]
    pub refresh_token_ttl: Given<u32>,
    /// Privileges that API tokens may carry; `null` means any.
    #[schemars(length(max = 1000), inner(length(min = 1), regex(pattern = "\\S")))]
    pub allowed_token_privileges: Patch<Vec<String>>,
    /// Members of this workspace act for the whole app.
    pub operator_tenant_id: Patch<TenantId>,
    /// Whether a login without PKCE is refused.
    pub require_pkce: Given<bool>,
}

impl Validate for ProfileChange {
    fn validate(&self, problems: &mut Problems) {
        if let Some(name) = &self.name.0 {
            problems.text("name", name);
        }
        self.validate_urls(problems);
        self.validate_sender(problems);
        self.validate_lists(problems);
        let within =
            |ttl: Given<u32>, range: &std::ops::RangeInclusive<u32>| ttl.0.is_none_or(|ttl| range.contains(&ttl));
        let fits = within(self.access_token_ttl, &ACCESS_TOKEN_TTL);
        problems.check("accessTokenTTL", fits, "must be between 60 seconds and 30 days");
        let fits = within(self.refresh_token_ttl, &REFRESH_TOKEN_TTL);
        problems.check("refreshTokenTTL", fits, "must be between 300 seconds and 365 days");
    }
}

impl ProfileChange {
    fn validate_urls(&self, problems: &mut Problems) {
        for (field, url) in [
            ("apiUrl", &self.api_url),
            ("uiUrl", &self.ui_url),
            ("webhookUrl", &self.webhook_url),
            ("logo", &self.logo),
            ("websiteUrl", &self.website_url),
            ("privacyPolicyUrl", &self.privacy_policy_url),
            ("termsOfServiceUrl", &self.terms_of_service_url),
        ] {
            if let Some(url) = url.value() {
                problems.check(field, rules::is_web_url(url), "must be an absolute http or https URL");
            }
        }
        if let Some(uri) = self.default_callback_uri.value() {
            problems.check("defaultCallbackUri", rules::is_redirect_uri(uri), rules::NO_REDIRECT_URI);
        }
    }

    fn validate_sender(&self, problems: &mut Problems) {
        if let Some(name) = self.email_sender_name.value() {
            problems.check("emailSenderName", !name.trim().is_empty(), "must not be empty; null clears it");
            problems.check("emailSenderName", !name.contains(char::is_control), "must be one line");
            let fits = name.chars().count() <= LONGEST_SENDER_NAME;
            problems.check("emailSenderName", fits, "must not be longer than 200 characters");
        }
        if let Some(address) = self.email_sender_email.value() {
            problems.check("emailSenderEmail", mails::is_address(address), "must be an email address");
        }
    }

    fn validate_lists(&self, problems: &mut Problems) {
        each(problems, "redirectUris", &self.redirect_uris, rules::is_redirect_uri, rules::NO_REDIRECT_URI);
        each(
            problems,
            "allowedOrigins",
            &self.allowed_origins,
            rules::is_origin,
            "must be an origin such as https://app.example",
        );
        each(problems, "webhookEvents", &self.webhook_events, webhook::is_event, "is not an event type");
        let named = |key: &str| !key.trim().is_empty();
        each(problems, "allowedTokenPrivileges", &self.allowed_token_privileges, named, "must not be empty");
    }

    /// Puts what was given in the place of what was.
    pub(super) fn apply(self, profile: &mut Profile) {
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
            allowed_token_privileges: self.allowed_token_privileges.apply(profile.allowed_token_privileges.take()),
            operator_tenant_id: self.operator_tenant_id.apply(profile.operator_tenant_id),
            webhook_events: list(self.webhook_events, &mut profile.webhook_events),
            redirect_uris: list(self.redirect_uris, &mut profile.redirect_uris),
            allowed_origins: list(self.allowed_origins, &mut profile.allowed_origins),
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
    }
}

/// A list is never absent: `null` empties it.
fn list(patch: Patch<Vec<String>>, current: &mut Vec<String>) -> Vec<String> {
    patch.apply(Some(std::mem::take(current))).unwrap_or_default()
}

fn each(problems: &mut Problems, field: &str, list: &Patch<Vec<String>>, holds: impl Fn(&str) -> bool, message: &str) {
    let Some(entries) = list.value() else { return };
    problems.list(field, entries);
    for (index, entry) in entries.iter().enumerate() {
        problems.check(&format!("{field}[{index}]"), holds(entry), message);
    }
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
