//! `/account/payments/plan` for the app, and `/account/subscription/plans` for its customers.

use kernel::Result;
use store::Tx;
use tenancy::callers::{AppCaller, AppRead, AppWrite, TenantRead, UserCaller};
use web::{Empty, Json, Page, Params, Path, Routes, State, Valid};

use super::{NewPlan, OfferedPlan, Plan, PlanChange, PlanId};
use crate::Billing;

pub fn routes() -> Routes<Billing> {
    Routes::new("Catalog")
        .get("/account/payments/plan", list, "List plans, newest first")
        .post("/account/payments/plan", create, "Create a plan")
        .answers(409, "Another plan already has this key")
        .get("/account/payments/plan/{plan_id}", get, "Get a plan")
        .put("/account/payments/plan/{plan_id}", update, "Change a plan")
        .answers(409, "The key is taken, or would change while workspaces are on the plan")
        .delete("/account/payments/plan/{plan_id}", delete, "Delete a plan")
        .answers(409, "A workspace is on the plan")
        .get("/account/subscription/plans", list_offered, "List the plans to choose from, newest first")
}

async fn list(
    caller: AppCaller<AppRead>,
    State(billing): State<Billing>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<Plan>>> {
    let app = caller.app_id();
    let read = move |tx: &mut Tx<'_>| super::list(tx, app, page);
    Ok(Json(billing.tenancy.db.snapshot(read).await?))
}

async fn create(
    caller: AppCaller<AppWrite>,
    State(billing): State<Billing>,
    Valid(new): Valid<NewPlan>,
) -> Result<Json<Plan>> {
    let (app, offers) = (caller.app_id(), billing.offers);
    let create = move |tx: &mut Tx<'_>| super::create(tx, &offers, app, &new);
    Ok(Json(billing.tenancy.db.by(&caller).write(create).await?))
}

async fn get(caller: AppCaller<AppRead>, State(billing): State<Billing>, Path(id): Path<PlanId>) -> Result<Json<Plan>> {
    let app = caller.app_id();
    Ok(Json(billing.tenancy.db.snapshot(move |tx| super::get(tx, app, id)).await?))
}

async fn update(
    caller: AppCaller<AppWrite>,
    State(billing): State<Billing>,
    Path(id): Path<PlanId>,
    Valid(change): Valid<PlanChange>,
) -> Result<Json<Plan>> {
    let (app, offers) = (caller.app_id(), billing.offers);
    let update = move |tx: &mut Tx<'_>| super::update(tx, &offers, app, id, &change);
    Ok(Json(billing.tenancy.db.by(&caller).write(update).await?))
}

async fn delete(caller: AppCaller<AppWrite>, State(billing): State<Billing>, Path(id): Path<PlanId>) -> Result<Empty> {
    let (app, offers) = (caller.app_id(), billing.offers);
    billing.tenancy.db.by(&caller).write(move |tx| super::delete(tx, &offers, app, id)).await?;
    Ok(Empty)
}

async fn list_offered(
    UserCaller(user, _): UserCaller<TenantRead>,
    State(billing): State<Billing>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<OfferedPlan>>> {
    Ok(Json(billing.offers.list(user.app(), page).await?))
}
