//! `/account/payments/plan` for the app, and `/account/subscription/plans` for its customers.

use kernel::{Currency, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Number;
use store::Tx;
use tenancy::callers::{AppCaller, AppRead, AppWrite, TenantRead, UserCaller};
use web::{Empty, Json, Page, Params, Path, Routes, State, Valid};

use super::{Interval, NewPlan, Plan, PlanChange, PlanId, Price, PriceId};
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
    let app = caller.app_id();
    Ok(Json(billing.tenancy.db.by(&caller).write(move |tx| super::create(tx, app, &new)).await?))
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
    let app = caller.app_id();
    Ok(Json(billing.tenancy.db.by(&caller).write(move |tx| super::update(tx, app, id, &change)).await?))
}

async fn delete(caller: AppCaller<AppWrite>, State(billing): State<Billing>, Path(id): Path<PlanId>) -> Result<Empty> {
    let app = caller.app_id();
    billing.tenancy.db.by(&caller).write(move |tx| super::delete(tx, app, id)).await?;
    Ok(Empty)
}

/// A plan as customers see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedPlan {
    pub key: String,
    pub name: String,
    pub description: String,
    pub trial: bool,
    pub trial_days: Option<u32>,
    pub prices: Vec<OfferedPrice>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedPrice {
    pub id: PriceId,
    pub amount: Number,
    pub currency: Currency,
    pub recurrence_interval: Interval,
}

impl From<Plan> for OfferedPlan {
    fn from(plan: Plan) -> Self {
        let Plan { key, name, description, trial, trial_days, prices, .. } = plan;
        let offered = |Price { id, amount, interval }| OfferedPrice {
            id,
            amount: amount.to_major(),
            currency: amount.currency,
            recurrence_interval: interval,
        };
        Self { key, name, description, trial, trial_days, prices: prices.into_iter().map(offered).collect() }
    }
}

async fn list_offered(
    UserCaller(user, _): UserCaller<TenantRead>,
    State(billing): State<Billing>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<OfferedPlan>>> {
    let app = user.app();
    let read = move |tx: &mut Tx<'_>| super::list(tx, app, page);
    let plans = billing.tenancy.db.snapshot(read).await?;
    Ok(Json(plans.into_iter().map(OfferedPlan::from).collect()))
}
