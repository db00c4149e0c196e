//! `/account/scim/group/{group_id}`: the role that a group carries.

use std::sync::Arc;

use kernel::{Result, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::{
    Authority,
    callers::{TenantCaller, TenantWrite},
};
use web::{Json, Path, Routes, State, Valid, Validate};

use super::ScimGroupId;
use crate::{Scim, directory::Directory, groups};

pub(crate) fn routes() -> Routes<Scim> {
    Routes::new("Provisioning").put(
        "/account/scim/group/{group_id}",
        set_role,
        "Set the role that the members of a directory's group have",
    )
}

/// The body of `PUT /account/scim/group/{group_id}`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct GroupRole {
    /// A role's key, never OWNER; `null`: members have the role that they had before.
    role: Option<Words>,
}

impl Validate for GroupRole {}

/// A directory's group with the role that it carries.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GroupWithRole {
    id: ScimGroupId,
    display_name: String,
    /// The role's key.
    role: Option<String>,
}

async fn set_role(
    caller: TenantCaller<TenantWrite>,
    State(scim): State<Scim>,
    Path(id): Path<ScimGroupId>,
    Valid(body): Valid<GroupRole>,
) -> Result<Json<GroupWithRole>> {
    let directory = Directory {
        tenancy: scim.tenancy.by(&caller),
        app: Arc::clone(&caller.app),
        tenant: caller.tenant(),
        authority: Authority::of_key(&caller),
    };
    let (group, role) = groups::set_role(&directory, id, body.role.map(String::from)).await?;
    Ok(Json(GroupWithRole { id: group.id, display_name: group.display_name, role: role.map(|role| role.key) }))
}
