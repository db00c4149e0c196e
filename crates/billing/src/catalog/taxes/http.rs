//! `/account/payments/tax`.

use kernel::Result;
use store::Tx;
use tenancy::callers::{AppCaller, AppDelete, AppRead, AppWrite};
use web::{Empty, Json, Page, Params, Path, Routes, State, Valid};

use super::{NewTax, Tax, TaxChange, TaxId};
use crate::Billing;

pub fn routes() -> Routes<Billing> {
    Routes::new("Catalog")
        .get("/account/payments/tax", list, "List taxes, newest first")
        .post("/account/payments/tax", create, "Create a tax")
        .get("/account/payments/tax/{tax_id}", get, "Get a tax")
        .put("/account/payments/tax/{tax_id}", update, "Change a tax")
        .delete("/account/payments/tax/{tax_id}", delete, "Delete a tax")
}

async fn list(
    caller: AppCaller<AppRead>,
    State(billing): State<Billing>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<Tax>>> {
    let app = caller.app_id();
    let read = move |tx: &mut Tx<'_>| super::list(tx, app, page);
    Ok(Json(billing.tenancy.db.read(read).await?))
}

async fn create(
    caller: AppCaller<AppWrite>,
    State(billing): State<Billing>,
    Valid(new): Valid<NewTax>,
) -> Result<Json<Tax>> {
    let app = caller.app_id();
    Ok(Json(billing.tenancy.db.by(&caller).write(move |tx| super::create(tx, app, &new)).await?))
}

async fn get(caller: AppCaller<AppRead>, State(billing): State<Billing>, Path(id): Path<TaxId>) -> Result<Json<Tax>> {
    let app = caller.app_id();
    Ok(Json(billing.tenancy.db.read(move |tx| super::get(tx, app, id)).await?))
}

async fn update(
    caller: AppCaller<AppWrite>,
    State(billing): State<Billing>,
    Path(id): Path<TaxId>,
    Valid(change): Valid<TaxChange>,
) -> Result<Json<Tax>> {
    let app = caller.app_id();
    Ok(Json(billing.tenancy.db.by(&caller).write(move |tx| super::update(tx, app, id, &change)).await?))
}

async fn delete(caller: AppCaller<AppDelete>, State(billing): State<Billing>, Path(id): Path<TaxId>) -> Result<Empty> {
    let app = caller.app_id();
    billing.tenancy.db.by(&caller).write(move |tx| super::delete(tx, app, id)).await?;
    Ok(Empty)
}
