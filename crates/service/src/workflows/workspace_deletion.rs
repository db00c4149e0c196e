//! Deleting a workspace, and the preview of it. Whoever may delete may preview, and nobody else: a key with
//! TENANT_DELETE, or the workspace's own OWNER who holds it.

use std::sync::Arc;

use kernel::{AppId, Authored, Code, Error, Result, TenantId};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use tenancy::{
    callers::{KeyOrUser, SignedIn, TenantDelete},
    roles::OWNER,
    workspaces::{self, Holdings, Tenant},
};
use web::{Json, Path, Routes, State, Success};

use super::Blocker;
use crate::Core;

pub(super) fn routes() -> Routes<Core> {
    Routes::new("Workspaces")
        .delete("/account/tenant/{tenant_id}", delete, "Delete a workspace and end all access to it")
        .description(
            "A subscription at the payment provider is first set to cancel at the end of its period, without refund. \
             When that fails, nothing is deleted.",
        )
        .answers(409, "The workspace cannot be deleted yet; the deletion preview says why")
        .answers(502, "The payment provider could not cancel the subscription")
        .get("/account/tenant/{tenant_id}/deletion-preview", preview, "Preview what deleting a workspace would remove")
}

/// What would go, and what stands against it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletionPreview {
    pub tenant: PreviewedTenant,
    pub counts: Counts,
    pub subscription: Option<Map<String, Value>>,
    pub provider_subscription: Option<Map<String, Value>>,
    pub can_delete: bool,
    pub blockers: Vec<Blocker>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PreviewedTenant {
    pub id: TenantId,
    pub name: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    #[schemars(range(min = 0))]
    pub users: i64,
    /// Those who belong to no other workspace and go with it.
    #[schemars(range(min = 0))]
    pub users_only_here: i64,
    #[schemars(range(min = 0))]
    pub api_tokens: i64,
    #[schemars(range(min = 0))]
    pub usage_events: i64,
}

async fn preview(
    caller: KeyOrUser<TenantDelete>,
    State(core): State<Core>,
    Path(id): Path<TenantId>,
) -> Result<Json<DeletionPreview>> {
    let app = may_delete(&caller, id)?;
    Ok(Json(preview_deletion(&core, app, id).await?))
}

async fn delete(
    caller: KeyOrUser<TenantDelete>,
    State(core): State<Core>,
    Path(id): Path<TenantId>,
) -> Result<Success> {
    let app = may_delete(&caller, id)?;
    delete_workspace(&core, &caller, app, id).await?;
    Ok(Success)
}

/// The caller's app; 403 for a workspace that is not theirs to delete.
fn may_delete(caller: &KeyOrUser<TenantDelete>, id: TenantId) -> Result<AppId> {
    match caller {
        KeyOrUser::Key(key, _) => {
            key.in_workspace(id)?;
            Ok(key.app_id())
        }
        KeyOrUser::User(user) => {
            owns(user, id)?;
            user.require("TENANT_DELETE")?;
            Ok(user.app())
        }
    }
}

fn owns(user: &SignedIn, id: TenantId) -> Result<()> {
    if user.tenant() == id && user.membership.role == OWNER {
        return Ok(());
    }
    Err(Error::new(Code::Forbidden, "Only an OWNER of the workspace who is signed in to it may do this."))
}

/// Looks only.
pub async fn preview_deletion(core: &Core, app: AppId, id: TenantId) -> Result<DeletionPreview> {
    let look = core.db.snapshot(move |tx| {
        let (tenant, holdings) = (workspaces::get(tx, app, id)?, workspaces::holdings(tx, app, id)?);
        Ok((tenant, holdings, workspaces::acts_for_app(tx, app, id)?))
    });
    let (tenant, holdings, acts_for_app): (Tenant, Holdings, bool) = look.await?;
    let mut farewell = core.departure.look(app, id).await?;
    farewell.blockers.extend(acts_for_app.then(|| Blocker::new("OPERATOR_WORKSPACE", workspaces::ACTS_FOR_APP)));
    Ok(DeletionPreview {
        tenant: PreviewedTenant { id, name: tenant.name },
        counts: Counts {
            users: holdings.users,
            users_only_here: holdings.users_only_here,
            api_tokens: holdings.api_tokens,
            usage_events: farewell.usage_events,
        },
        subscription: farewell.subscription,
        provider_subscription: farewell.provider_subscription,
        can_delete: farewell.blockers.is_empty(),
        blockers: farewell.blockers,
    })
}

/// How often a subscription is settled anew because something was bought meanwhile.
const MOST_TRIES: usize = 5;

/// Settles the subscription, then ends all access in one transaction. Each room purges what it kept afterwards.
pub async fn delete_workspace(core: &Core, who: &impl Authored, app: AppId, id: TenantId) -> Result<()> {
    let preview = preview_deletion(core, app, id).await?;
    if let Some(blocker) = preview.blockers.first() {
        return Err(Error::new(Code::WorkspaceInUse, blocker.message.clone()));
    }
    for _ in 0..MOST_TRIES {
        let settled = core.departure.settle(app, id).await?;
        let (tenancy, departure) = (core.tenancy.clone(), Arc::clone(&core.departure));
        let delete = core.db.by(who).write(move |tx| {
            workspaces::lock(tx, id)?;
            if !departure.is_settled(tx, app, id, &settled)? {
                return Ok(false);
            }
            workspaces::delete(tx, &tenancy, app, id).map(|()| true)
        });
        if delete.await? {
            return Ok(());
        }
    }
    Err(Error::new(Code::WorkspaceInUse, "The workspace's subscription keeps changing. Try again in a moment."))
}
