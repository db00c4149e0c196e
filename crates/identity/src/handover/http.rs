//! `POST /auth/handover/code/{app_id}`.

use std::time::Duration;

use kernel::{AppId, Error, Result, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::callers::authenticate_token;
use web::{Json, Path, Routes, State, Valid, Validate, WithHeaders};

use crate::{Identity, browser::Request, tokens::unstored};

pub fn routes() -> Routes<Identity> {
    Routes::new("Tokens")
        .post("/auth/handover/code/{app_id}", code, "Create a code that opens a hosted portal")
        .answers(401, "The access token is not valid, or belongs to another app")
}

/// The body of `POST /auth/handover/code/{app_id}`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NewHandover {
    access_token: Words,
}

impl Validate for NewHandover {}

#[derive(Serialize, JsonSchema)]
struct HandoverCode {
    /// Works once, for a minute.
    code: String,
}

async fn code(
    request: Request,
    State(identity): State<Identity>,
    Path(app): Path<AppId>,
    Valid(body): Valid<NewHandover>,
) -> Result<WithHeaders<Json<HandoverCode>>> {
    let app = identity.app(&request, app)?;
    let user = authenticate_token(&identity.tenancy, &request.scope, &body.access_token, Duration::ZERO).await?;
    if user.app() != app.id {
        return Err(Error::credential("The access token belongs to another app."));
    }
    let code = identity.tenancy.db.by(&user).write(move |tx| super::issue(tx, &user)).await?;
    Ok(unstored(HandoverCode { code }))
}
