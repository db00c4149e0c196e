//! `/account/me/password`.

use kernel::{Password, Result, Secret};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::callers::{AnyMember, BearerCaller};
use web::{LimitClass, Routes, State, Success, Valid, Validate};

use super::{BOUNDED, FRESH, TAG};
use crate::{Identity, abuse::LIMITED, browser::Request, login};

pub(super) fn routes() -> Routes<Identity> {
    Routes::new(TAG)
        .post("/account/me/password", change, "Change your password")
        .description("All other sessions of yours end; a notice is mailed to you.")
        .limited(LimitClass::Credential)
        .answers(401, FRESH)
        .answers(403, BOUNDED)
        .answers(409, "There is no password yet")
        .answers(429, LIMITED)
}

/// The body of `POST /account/me/password`.
#[derive(Deserialize, JsonSchema)]
struct PasswordChange {
    /// The present password.
    current: Secret<Password>,
    /// The new one.
    password: Secret<Password>,
}

impl Validate for PasswordChange {}

async fn change(
    request: Request,
    caller: BearerCaller<AnyMember>,
    State(identity): State<Identity>,
    Valid(body): Valid<PasswordChange>,
) -> Result<Success> {
    let identity = identity.by(&caller.0);
    let (current, password) = (body.current.map(String::from), body.password.map(String::from));
    login::change_password(&identity, caller.0, &request.source(), current, password).await?;
    Ok(Success)
}
