//! `/account/federation/connection`.

use kernel::Result;
use web::{Created, Json, Page, Params, Path, Routes, State, Success, Valid};

use super::{ConnectionChange, ConnectionDetails, ConnectionId, NewConnection};
use crate::{
    Tenancy,
    callers::{AppCaller, AppDelete, AppRead, AppWrite},
};

pub fn routes() -> Routes<Tenancy> {
    Routes::new("Federation")
        .get("/account/federation/connection", list, "List federation connections, newest first")
        .post("/account/federation/connection", create, "Create a federation connection")
        .answers(409, "Another connection already has one of the domains")
        .get("/account/federation/connection/{connection_id}", get, "Get a federation connection")
        .put("/account/federation/connection/{connection_id}", update, "Change a federation connection")
        .answers(409, "Another connection already has one of the domains")
        .delete("/account/federation/connection/{connection_id}", delete, "Delete a federation connection")
        .answers(409, "A workspace still signs in through it")
}

async fn list(
    caller: AppCaller<AppRead>,
    State(tenancy): State<Tenancy>,
    Params(page): Params<Page>,
) -> Result<Json<Vec<ConnectionDetails>>> {
    let app = caller.app_id();
    let connections = tenancy.db.read(move |tx| super::list(tx, app, page)).await?.into_iter();
    let details = connections.map(|connection| ConnectionDetails::of(connection, &tenancy.base_url));
    Ok(Json(details.collect::<Result<_>>()?))
}

async fn create(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Valid(new): Valid<NewConnection>,
) -> Result<Created<ConnectionDetails>> {
    let (app, keyring) = (caller.app_id(), tenancy.keyring);
    let connection = tenancy.db.by(&caller).write(move |tx| super::create(tx, &keyring, app, &new)).await?;
    Ok(Created(ConnectionDetails::of(connection, &tenancy.base_url)?))
}

async fn get(
    caller: AppCaller<AppRead>,
    State(tenancy): State<Tenancy>,
    Path(id): Path<ConnectionId>,
) -> Result<Json<ConnectionDetails>> {
    let app = caller.app_id();
    let connection = tenancy.db.read(move |tx| super::get(tx, app, id)).await?;
    Ok(Json(ConnectionDetails::of(connection, &tenancy.base_url)?))
}

async fn update(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Path(id): Path<ConnectionId>,
    Valid(change): Valid<ConnectionChange>,
) -> Result<Json<ConnectionDetails>> {
    let (app, keyring) = (caller.app_id(), tenancy.keyring);
    let connection = tenancy.db.by(&caller).write(move |tx| super::update(tx, &keyring, app, id, &change)).await?;
    Ok(Json(ConnectionDetails::of(connection, &tenancy.base_url)?))
}

async fn delete(
    caller: AppCaller<AppDelete>,
    State(tenancy): State<Tenancy>,
    Path(id): Path<ConnectionId>,
) -> Result<Success> {
    let app = caller.app_id();
    tenancy.db.by(&caller).write(move |tx| super::delete(tx, app, id)).await?;
    Ok(Success)
}
