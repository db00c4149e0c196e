//! `/account/app/credentials`.

use kernel::Result;
use web::{Json, Routes, State, Valid};

use super::{CredentialChange, CredentialsState};
use crate::{
    Authority, Tenancy,
    callers::{AppCaller, AppRead, AppWrite},
};

pub fn routes() -> Routes<Tenancy> {
    Routes::new("App profile")
        .put("/account/app/credentials", change, "Set or clear third-party credentials")
        .description("Write-only. A missing member keeps its value; an empty text or `null` clears it.")
        .answers(403, "Setting credentials requires every built-in privilege but the destructive two")
        .get("/account/app/credentialsState", state, "See which credentials are set")
}

async fn change(
    caller: AppCaller<AppWrite>,
    State(tenancy): State<Tenancy>,
    Valid(change): Valid<CredentialChange>,
) -> Result<Json<CredentialsState>> {
    let (app, db, authority) = (caller.app_id(), tenancy.db.by(&caller), Authority::of_key(&caller));
    Ok(Json(db.write(move |tx| super::change(tx, &tenancy, app, &authority, &change)).await?))
}

async fn state(caller: AppCaller<AppRead>, State(tenancy): State<Tenancy>) -> Result<Json<CredentialsState>> {
    let app = caller.app_id();
    Ok(Json(tenancy.db.read(move |tx| super::state(tx, app)).await?))
}
