//! The workspaces that somebody who is signing in may choose from.

use kernel::{MemberId, TenantId};
use schemars::JsonSchema;
use serde::Serialize;
use tenancy::{people::full_name, standing::Standing};

/// A workspace to choose from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceEntry {
    /// The membership's id: `tenantUserId`.
    pub id: MemberId,
    pub username: String,
    pub full_name: String,
    pub tenant: WorkspaceSummary,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkspaceSummary {
    pub id: TenantId,
    pub name: String,
    pub logo: Option<String>,
}

impl From<&Standing> for WorkspaceEntry {
    fn from(standing: &Standing) -> Self {
        Self {
            id: standing.member,
            username: standing.email.clone(),
            // Whoever belongs there on an identity provider's word alone is known by their address.
            full_name: match standing.vouched {
                true => String::new(),
                false => full_name(&standing.first_name, &standing.last_name),
            },
            tenant: WorkspaceSummary {
                id: standing.tenant,
                name: standing.tenant_name.clone(),
                logo: standing.tenant_logo.clone(),
            },
        }
    }
}
