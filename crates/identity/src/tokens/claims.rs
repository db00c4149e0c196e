//! The claims of the three tokens. Which of the ID token's are there depends on the granted OIDC scopes. Pure.

use kernel::{AppId, TenantId, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tenancy::{
    apps::parameters::{self, ParameterDefinition},
    logins::LoginId,
    people::full_name,
    standing::Standing,
};

use super::Granted;

/// Of an access token (RFC 9068).
#[derive(Clone, Debug, Serialize)]
pub struct AccessToken<'a> {
    pub iss: &'a str,
    pub aud: AppId,
    pub sub: UserId,
    pub aid: AppId,
    pub tid: TenantId,
    pub jti: String,
    pub sid: LoginId,
    pub iat: i64,
    pub exp: i64,
    pub auth_time: i64,
    pub scope: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub scope_narrowed: bool,
    pub oidc_scope: String,
    pub role: &'a str,
    pub plan: Option<&'a str>,
    pub trial: bool,
    #[serde(rename = "shouldSelectPlan")]
    pub should_select_plan: bool,
    #[serde(rename = "shouldSetupPayments")]
    pub should_setup_payments: bool,
    pub email: &'a str,
}

/// Of a refresh token: where its record is. What it is good for stands there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RefreshToken {
    pub iss: String,
    pub aud: AppId,
    pub sub: UserId,
    pub jti: super::RefreshId,
    pub sid: LoginId,
    pub iat: i64,
    pub exp: i64,
}

/// What an ID token and `userinfo` tell about the person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct About {
    pub sub: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferred_username: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email_verified: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone_number: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub onboarded: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<TenantId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_locale: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_logo: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_onboarded: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multi_tenant: Option<bool>,
    /// Of the user's parameters, those that the app shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Map<String, Value>>,
}

/// Every claim that [`About`] can hold, for the discovery document.
pub const ABOUT_CLAIMS: [&str; 17] = [
    "sub",
    "name",
    "family_name",
    "given_name",
    "preferred_username",
    "locale",
    "email",
    "email_verified",
    "phone_number",
    "onboarded",
    "tenant_id",
    "tenant_name",
    "tenant_locale",
    "tenant_logo",
    "tenant_onboarded",
    "multi_tenant",
    "parameters",
];

impl About {
    pub fn new(standing: &Standing, granted: &Granted, defined: &[ParameterDefinition]) -> Self {
        let mut about = Self { sub: standing.user.to_string(), ..Self::default() };
        if granted.has("profile") {
            about.name = Some(full_name(&standing.first_name, &standing.last_name));
            about.family_name = Some(standing.last_name.clone());
            about.given_name = Some(standing.first_name.clone());
            about.preferred_username = Some(standing.email.clone());
            about.locale = Some(standing.tenant_locale.clone());
            about.parameters = parameters::claims(defined, &standing.parameters);
        }
        if granted.has("email") {
            about.email = Some(standing.email.clone());
            about.email_verified = Some(standing.email_verified);
        }
        if granted.has("phone") {
            about.phone_number.clone_from(&standing.phone_number);
        }
        if granted.has("onboarding") {
            about.onboarded = Some(standing.onboarded);
        }
        if granted.has("tenant") {
            about.tenant_id = Some(standing.tenant);
            about.tenant_name = Some(standing.tenant_name.clone());
            about.tenant_locale = Some(standing.tenant_locale.clone());
            about.tenant_logo.clone_from(&standing.tenant_logo);
            about.tenant_onboarded = Some(standing.tenant_onboarded);
            about.multi_tenant = Some(standing.multi_tenant);
        }
        about
    }
}

/// Of an ID token; also the `user_profile` of answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "UserProfile")]
pub struct IdToken {
    #[serde(flatten)]
    pub about: About,
    pub iss: String,
    pub aud: AppId,
    pub iat: i64,
    pub exp: i64,
    /// When the person last proved who they are; Unix seconds.
    pub auth_time: i64,
    pub sid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
}
