//! `/account/tenant/{tenant_id}/paymentDetails` and `…/planDetails`.

use kernel::{Result, TenantId};
use tenancy::callers::{AppCaller, KeyCaller, TenantRead, TenantWrite};
use web::{Empty, Json, Path, Routes, State, Valid};

use super::{PaymentDetails, PlanChoice};
use crate::Billing;

const ASSIGNED: &str = "The plan applies immediately and starts no trial, whether a payment provider is enabled or not. \
                        `priceOffer` names one of the plan's prices; a plan without prices takes none. For keys and tokens \
                        of the whole app only.";

pub fn routes() -> Routes<Billing> {
    Routes::new("Payment details")
        .get("/account/tenant/{tenant_id}/paymentDetails", get, "Get the plan and payment state of a workspace")
        .post("/account/tenant/{tenant_id}/paymentDetails", set, "Put a workspace on a plan")
        .description(ASSIGNED)
        .post(
            "/account/tenant/{tenant_id}/planDetails",
            set_and_get,
            "Put a workspace on a plan and return its payment details",
        )
        .description(ASSIGNED)
}

async fn get(
    caller: KeyCaller<TenantRead>,
    State(billing): State<Billing>,
    Path(tenant): Path<TenantId>,
) -> Result<Json<PaymentDetails>> {
    caller.in_workspace(tenant)?;
    let app = caller.app_id();
    Ok(Json(billing.tenancy.db.snapshot(move |tx| super::get(tx, app, tenant)).await?))
}

/// For the app alone: with a token of its own workspace, a customer could help themselves to any plan.
async fn set(
    caller: AppCaller<TenantWrite>,
    state: State<Billing>,
    path: Path<TenantId>,
    choice: Valid<PlanChoice>,
) -> Result<Empty> {
    set_and_get(caller, state, path, choice).await?;
    Ok(Empty)
}

async fn set_and_get(
    caller: AppCaller<TenantWrite>,
    State(billing): State<Billing>,
    Path(tenant): Path<TenantId>,
    Valid(choice): Valid<PlanChoice>,
) -> Result<Json<PaymentDetails>> {
    let app = caller.app.clone();
    Ok(Json(billing.tenancy.db.by(&caller).write(move |tx| super::choose(tx, &app, tenant, &choice)).await?))
}
