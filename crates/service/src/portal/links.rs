//! Links to a portal: the payment provider's, where somebody is paid, else our own plan page with a code.

use identity::handover;
use kernel::{Result, TenantId};
use schemars::JsonSchema;
use serde::Serialize;
use tenancy::callers::{KeyCaller, TenantWrite, UserCaller};
use web::{Json, Path, Routes, State};

use super::plan_page;
use crate::Core;

const PROVIDER_FAILED: &str = "The payment provider cannot be used";

pub(super) fn routes() -> Routes<Core> {
    Routes::new("Payments")
        .get("/account/subscription/portal", of_member, "Get a link to where the workspace's plan is managed")
        .description(
            "The payment provider's portal while the workspace pays there, else the hosted plan page. The link works once, \
             for a minute, on the plan page.",
        )
        .answers(502, PROVIDER_FAILED)
        .get(
            "/account/tenant/{tenant_id}/customerPortal",
            of_workspace,
            "Get a link for somebody of a workspace to manage its plan",
        )
        .description(
            "The payment provider's portal while the workspace pays there, else the hosted plan page, on which whoever \
             follows the link acts in the name of the key. It works once, within an hour.",
        )
        .answers(502, PROVIDER_FAILED)
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MemberPortal {
    portal_url: String,
}

async fn of_member(
    UserCaller(user, _): UserCaller<TenantWrite>,
    State(core): State<Core>,
) -> Result<Json<MemberPortal>> {
    if let Some(portal_url) = core.billing.portal(&user, user.app(), user.tenant()).await? {
        return Ok(Json(MemberPortal { portal_url }));
    }
    let code = core.db.by(&user.clone()).write(move |tx| handover::issue(tx, &user)).await?;
    Ok(Json(MemberPortal { portal_url: plan_page::address(&core, &code) }))
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct CustomerPortal {
    url: String,
}

async fn of_workspace(
    caller: KeyCaller<TenantWrite>,
    State(core): State<Core>,
    Path(tenant): Path<TenantId>,
) -> Result<Json<CustomerPortal>> {
    caller.in_workspace(tenant)?;
    let app = caller.app_id();
    if let Some(url) = core.billing.portal(&caller, app, tenant).await? {
        return Ok(Json(CustomerPortal { url }));
    }
    let code = core.db.by(&caller).write(move |tx| super::issue_for_key(tx, app, tenant)).await?;
    Ok(Json(CustomerPortal { url: plan_page::address(&core, &code) }))
}
