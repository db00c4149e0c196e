//! `/entitlements`.

use kernel::Result;
use schemars::JsonSchema;
use serde::Serialize;
use tenancy::callers::{AnyMember, TenantRead, UserOrKey};
use web::{Json, Routes, State};

use super::rules::Entitlements;
use crate::Billing;

pub fn routes() -> Routes<Billing> {
    Routes::new("Entitlements").get("/entitlements", get, "Get what the workspace may use now").description(
        "Without a subscription there are none. A subscription that gives no access has all of its plan's, false.",
    )
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Entitlements")]
pub struct EntitlementsView {
    pub entitlements: Entitlements,
}

async fn get(
    caller: UserOrKey<AnyMember, TenantRead>,
    State(billing): State<Billing>,
) -> Result<Json<EntitlementsView>> {
    let entitlements = super::now(&billing.tenancy.db, caller.app_id(), caller.tenant()).await?;
    Ok(Json(EntitlementsView { entitlements }))
}
