//! `/account/me/email`: another address for one's account.

use kernel::{Email, Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::callers::{AnyMember, BearerCaller};
use web::{LimitClass, Routes, State, Success, Valid, Validate};

use super::{ELSEWHERE, FRESH, TAG};
use crate::{Identity, abuse::LIMITED, login::new_address};

pub(super) fn routes() -> Routes<Identity> {
    Routes::new(TAG)
        .post("/account/me/email", request, "Change your email address")
        .description(
            "Mails a link to the new address, which counts once the link is followed, and a notice to the old one.",
        )
        .limited(LimitClass::Message)
        .answers(401, FRESH)
        .answers(403, ELSEWHERE)
        .answers(429, LIMITED)
}

/// The body of `POST /account/me/email`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct NewAddress {
    email: Email,
}

impl Validate for NewAddress {}

async fn request(
    caller: BearerCaller<AnyMember>,
    State(identity): State<Identity>,
    Valid(body): Valid<NewAddress>,
) -> Result<Success> {
    let app = identity.tenancy.apps.find(caller.0.app()).await?.ok_or_else(|| Error::not_found("app"))?;
    let (by, tenancy) = (identity.tenancy.db.by(&caller.0), identity.tenancy);
    by.write(move |tx| new_address::ask_to_confirm(tx, &tenancy, &app, &caller.0, &body.email)).await?;
    Ok(Success)
}
