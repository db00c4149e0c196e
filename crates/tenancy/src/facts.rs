//! What this room tells: facts about apps and their keys, roles, workspaces and people.
//!
//! `tenant.*` and `tenant_user.*` are what a webhook of that type sends as its `data`.

use kernel::{KeyId, MemberId, TenantId, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spine::{FactKind as _, Reader};

use crate::{
    api_tokens::{ApiTokenId, SecretId},
    federation::ConnectionId,
    logins::LoginId,
    mails::TemplateName,
    roles::{PrivilegeId, RoleId},
    scim_tokens::ScimTokenId,
};

/// What happened to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Created,
    Updated,
    Deleted,
}

/// An app as facts name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppData {
    pub name: String,
    pub domain: String,
}

/// What an archive holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppMoved {
    pub name: String,
    pub domain: String,
    pub rows: u64,
    pub files: u64,
}

/// A workspace as facts and webhooks name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceData {
    pub id: TenantId,
    pub name: String,
    /// The key of the plan it is on.
    pub plan: Option<String>,
}

/// A member as facts and webhooks name them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberData {
    pub workspace_id: TenantId,
    pub tenant_user_id: MemberId,
    pub user_id: UserId,
    pub email: String,
    /// The role's key.
    pub role: String,
    pub enabled: bool,
}

/// An invitation as facts name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvitationData {
    pub workspace_id: TenantId,
    /// The id of the membership that it becomes.
    pub tenant_user_id: MemberId,
    pub email: String,
    /// The role's key.
    pub role: String,
}

/// An API token as facts name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiTokenData {
    pub token_id: ApiTokenId,
    pub name: String,
    pub privileges: Vec<String>,
}

spine::facts! {
    /// An app was made.
    AppCreated = "app.created" (AppData)
    /// Settings of an app's profile changed.
    AppChanged = "app.changed" {
        /// The names of the settings that changed.
        settings: Vec<String>,
    }
    /// An app is gone with all access to it. What it leaves behind is purged.
    AppDeleted = "app.deleted" (AppData)
    /// An app was written into an archive, with everything in it.
    AppExported = "app.exported" (AppMoved)
    /// An app came out of an archive, with everything in it.
    AppImported = "app.imported" (AppMoved)
    /// An app's webhook changed. These are its values from here on.
    AppWebhookChanged = "app.webhook_changed" {
        url: Option<String>,
        enabled: bool,
        /// Event types to send; empty means all.
        events: Vec<String>,
    }
    /// Credentials with third parties were set or cleared.
    AppCredentialsChanged = "app.credentials_changed" {
        /// The credentials' names.
        names: Vec<String>,
    }
    /// A new secret signs an app's API tokens.
    AppSecretRotated = "app_secret.rotated" { secret_id: SecretId }
    /// A secret of API tokens was retired; the tokens that it signed are refused, and deleted afterwards.
    AppSecretRetired = "app_secret.retired" { secret_id: SecretId }
    /// A mail template was replaced, or is the default again.
    TemplateChanged = "branding.template_changed" {
        template: TemplateName,
        /// Whether the app has one of its own now.
        custom: bool,
    }
    /// The style of the hosted pages was replaced, or is the default again.
    StyleChanged = "branding.style_changed" {
        /// Whether the app has one of its own now.
        custom: bool,
    }
    /// The translations of hosted pages and mails were replaced.
    TranslationsChanged = "branding.translations_changed" {}
    /// An API key was made.
    KeyCreated = "key.created" { key_id: KeyId, name: String, privileges: Vec<String> }
    /// An API key was revoked.
    KeyRevoked = "key.revoked" { key_id: KeyId }
    /// An API token was made.
    ApiTokenCreated = "api_token.created" (ApiTokenData)
    /// An API token was revoked.
    ApiTokenRevoked = "api_token.revoked" (ApiTokenData)
    /// A SCIM token was made.
    ScimTokenCreated = "scim_token.created" { token_id: ScimTokenId, name: String }
    /// A SCIM token was revoked.
    ScimTokenRevoked = "scim_token.revoked" { token_id: ScimTokenId, name: String }
    /// A role was made, changed or deleted.
    RoleChanged = "role.changed" {
        role_id: RoleId,
        key: String,
        /// Its key before, where that changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        former_key: Option<String>,
        change: Change,
    }
    /// A privilege was made, changed or deleted.
    PrivilegeChanged = "privilege.changed" { privilege_id: PrivilegeId, key: String, change: Change }
    /// A federation connection was made, changed or deleted.
    ConnectionChanged = "federation_connection.changed" { connection_id: ConnectionId, name: String, change: Change }
    /// A workspace was made.
    TenantCreated = "tenant.created" (WorkspaceData)
    /// A workspace's own settings changed; billing tells of its changes itself.
    TenantUpdated = "tenant.updated" (WorkspaceData)
    /// A workspace is gone with all access to it, its members and tokens. What it leaves behind is purged.
    TenantDeleted = "tenant.deleted" (WorkspaceData)
    /// Somebody became a member of a workspace.
    TenantUserCreated = "tenant_user.created" (MemberData)
    /// A member, or the person behind, changed.
    TenantUserUpdated = "tenant_user.updated" (MemberData)
    /// A member left a workspace that goes on.
    TenantUserDeleted = "tenant_user.deleted" (MemberData)
    /// Somebody was invited to a workspace.
    InvitationCreated = "invitation.created" (InvitationData)
    /// What an invitation says changed.
    InvitationUpdated = "invitation.updated" (InvitationData)
    /// An invitation was taken back or declined.
    InvitationDeleted = "invitation.deleted" {
        invitation: InvitationData,
        /// Whether the person said no; else the workspace took it back.
        declined: bool,
    }
    /// A person left their last workspace and is gone.
    PersonRemoved = "person.removed" { user_id: UserId }
    /// All of a person's sessions were ended.
    SessionsEnded = "user.sessions_ended" { user_id: UserId }
    /// One login was ended: a sign-out, or a token that was revoked.
    LoginEnded = "login.ended" {
        user_id: UserId,
        /// The `sid` of its tokens.
        session_id: LoginId,
    }
    /// A link that sets a new password was made for a member.
    PasswordLinkCreated = "password_link.created" {
        tenant_user_id: MemberId,
        user_id: UserId,
        /// Whether it went to the person by mail; else to whoever asked for it.
        mailed: bool,
    }
}

/// What keeps this node's memory of apps, keys and tokens true.
pub(crate) const FOLLOWER: Reader = Reader::of(
    "tenancy",
    &[
        AppCreated::KIND,
        AppChanged::KIND,
        AppDeleted::KIND,
        AppImported::KIND,
        KeyRevoked::KIND,
        ApiTokenRevoked::KIND,
        AppSecretRetired::KIND,
    ],
);

/// Who in this room reads facts.
pub fn readers() -> Vec<Reader> {
    vec![FOLLOWER]
}
