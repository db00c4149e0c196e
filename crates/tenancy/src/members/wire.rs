//! People of a workspace as they go over the wire.

use std::sync::Arc;

use ::store::text_enum;
use kernel::{MemberId, TenantId, Timestamp, UserId};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Listed, Member};
use crate::{apps::parameters::Parameters, people, workspaces::Tenant};

text_enum! {
    /// Whether somebody belongs to the workspace, or has yet to agree.
    #[schemars(rename = "TenantUserStatus")]
    wire pub enum Status {
        Active = "active",
        Invited = "invited",
    }
}

/// Somebody in a workspace, with the workspace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantUser {
    pub id: MemberId,
    /// The person, the same in all their workspaces; missing until they accept the invitation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    pub status: Status,
    /// The role's key.
    pub role: String,
    pub email: String,
    /// The email address.
    pub username: String,
    pub first_name: String,
    pub last_name: String,
    pub full_name: String,
    pub phone_number: Option<String>,
    pub onboarded: bool,
    pub consents_to_privacy_policy: bool,
    /// Whether they can sign in to this workspace.
    pub enabled: bool,
    pub teams: Vec<String>,
    /// What the app keeps about them.
    pub parameters: Parameters,
    pub last_seen: Option<Timestamp>,
    pub created_at: Timestamp,
    pub tenant: Arc<Tenant>,
}

impl TenantUser {
    /// Without what the person's other workspaces know of them.
    #[must_use]
    pub(super) fn reserved(self) -> Self {
        let nothing = String::new;
        Self { first_name: nothing(), last_name: nothing(), full_name: nothing(), phone_number: None, ..self }
    }

    pub fn new(listed: Listed, tenant: Arc<Tenant>) -> Self {
        let Member { id, user_id, role, email, first_name, last_name, phone_number, teams, parameters, .. } = listed;
        Self {
            id,
            user_id,
            status: if user_id.is_some() { Status::Active } else { Status::Invited },
            role,
            username: email.clone(),
            email,
            full_name: people::full_name(&first_name, &last_name),
            first_name,
            last_name,
            phone_number,
            onboarded: listed.onboarded,
            consents_to_privacy_policy: listed.consents_to_privacy_policy,
            enabled: listed.enabled,
            teams,
            parameters,
            last_seen: listed.last_seen,
            created_at: listed.created_at,
            tenant,
        }
    }
}

/// One of the workspaces that a person belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Association {
    pub tenant_id: TenantId,
    pub tenant_name: String,
    /// The role's key.
    pub role: String,
}
