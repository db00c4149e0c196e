//! What this room tells: logins and their ends, failures, passwords and second factors.

use kernel::{MemberId, TenantId, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::{
    federation::{ConnectionId, Provider},
    logins::LoginId,
};

use crate::proof::Method;

/// Why somebody was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    Password,
    Code,
    /// The answer of an identity provider was refused, or the person may not come in.
    Federation,
}

/// What happened to a person's second factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactorChange {
    SetUp,
    /// Taken away with the backup code.
    Reset,
    /// Taken away by an administrator, passkeys too.
    Cleared,
    PasskeyAdded,
    /// Taken away by the person themselves.
    TurnedOff,
    PasskeyRemoved,
}

spine::facts! {
    /// A new key was published that identity providers encrypt assertions for.
    SamlKeyRotated = "saml_key.rotated" { id: String }
    /// A login led to tokens.
    LoginSucceeded = "login.succeeded" {
        user_id: UserId,
        tenant_user_id: MemberId,
        workspace_id: TenantId,
        email: String,
        /// The `sid` of its tokens.
        session_id: String,
        method: Method,
        /// Whether more than one factor was shown.
        mfa: bool,
        /// The federation connection that they came through.
        #[serde(default)]
        connection_id: Option<ConnectionId>,
        /// The provider of the app that they came through.
        #[serde(default)]
        provider: Option<Provider>,
    }
    /// An OWNER came in by another way than the workspace's identity provider, which everybody else has to use.
    SsoBypassed = "login.bypassed_sso" {
        user_id: UserId,
        tenant_user_id: MemberId,
        workspace_id: TenantId,
        /// Missing where a login that was begun elsewhere switched to the workspace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        method: Option<Method>,
    }
    /// A subject of an identity provider stands for this person from now on.
    IdentityLinked = "identity.linked" {
        user_id: UserId,
        connection_id: Option<ConnectionId>,
        #[serde(default)]
        provider: Option<Provider>,
    }
    /// A person took away a provider's word for them.
    IdentityUnlinked = "identity.unlinked" { user_id: UserId, provider: Provider }
    /// Somebody failed to prove who they are.
    LoginFailed = "login.failed" {
        /// `null` for an account that does not exist, and where an identity provider's word is not believed.
        user_id: Option<UserId>,
        reason: FailureReason,
        /// The federation connection that it came through.
        #[serde(default)]
        connection_id: Option<ConnectionId>,
        /// The provider of the app that it came through.
        #[serde(default)]
        provider: Option<Provider>,
        /// The step that refused an identity provider's answer.
        #[serde(default)]
        step: Option<String>,
        #[serde(default)]
        cause: Option<String>,
    }
    /// A browser's sign-in to the hosted pages was ended, with the logins that came from it.
    SignedOut = "browser.signed_out" { user_id: UserId }
    /// A refresh token was used again after its time: somebody else may have it. Its login was ended.
    RefreshReused = "refresh.reused" {
        /// The `sid` of its tokens.
        session_id: LoginId,
        /// `null` when the token's record is gone.
        tenant_user_id: Option<MemberId>,
    }
    /// A person chose a password.
    PasswordChanged = "password.changed" { user_id: UserId }
    /// A person gave themselves another email address, and confirmed it.
    AddressChanged = "address.changed" { user_id: UserId }
    /// A person's second factor or one of their passkeys came or went.
    FactorChanged = "factor.changed" { user_id: UserId, change: FactorChange }
}
