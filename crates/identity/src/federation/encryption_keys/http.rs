//! `/admin/saml-keys`.

use kernel::{Page, Result};
use tenancy::callers::Operator;
use web::{Json, Params, Routes, State};

use super::{SamlKey, SamlKeyRotation, generate, rotate, unretired};
use crate::Identity;

pub(crate) fn routes() -> Routes<Identity> {
    Routes::new("Operations")
        .get("/admin/saml-keys", list, "List the keys that SAML assertions are encrypted for")
        .post("/admin/saml-keys/rotate", replace, "Publish a new SAML key; the one before opens for another 30 days")
}

async fn list(_: Operator, State(identity): State<Identity>, Params(page): Params<Page>) -> Result<Json<Vec<SamlKey>>> {
    let keys = identity.tenancy.db.read(unretired).await?;
    Ok(Json(page.of(keys.into_iter().map(|key| key.about))))
}

async fn replace(caller: Operator, State(identity): State<Identity>) -> Result<Json<SamlKeyRotation>> {
    let new = generate(&identity.tenancy).await?;
    Ok(Json(identity.tenancy.db.by(&caller).write(move |tx| rotate(tx, &new)).await?))
}
