//! `/auth/invitation/accept`: joining a workspace by API, for apps with pages of their own.

use kernel::{Code, Error, MemberId, Result, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::{Json, Routes, State, Valid, Validate};

use crate::{
    Tenancy,
    callers::{AnyMember, BearerCaller},
    links::{self, LinkPurpose},
    logins,
};

pub fn routes() -> Routes<Tenancy> {
    Routes::new("Workspace users")
        .post("/auth/invitation/accept", accept, "Accept an invitation to a workspace")
        .description("For the person whose address was invited, signed in to any of their workspaces.")
        .answers(401, "The invitation was taken back, has expired or has been used")
        .answers(403, "The invitation was sent to another address")
}

/// The body of `POST /auth/invitation/accept`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct AcceptInvitation {
    /// From the mailed link.
    token: Words,
}

impl Validate for AcceptInvitation {}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AcceptedInvitation {
    /// The membership.
    tenant_user_id: MemberId,
}

async fn accept(
    BearerCaller(user, _): BearerCaller<AnyMember>,
    State(tenancy): State<Tenancy>,
    Valid(body): Valid<AcceptInvitation>,
) -> Result<Json<AcceptedInvitation>> {
    let joined = tenancy.db.by(&user).write(move |tx| {
        let link = links::consume(tx, LinkPurpose::Invitation, &body.token)?;
        if link.app != user.app() || super::offered(tx, &link)?.is_none() {
            return Err(links::invalid());
        }
        let login = user.claims.sid.parse().map_err(|_| logins::ended())?;
        if !logins::live(tx, user.app(), login)?.reach.is_everything() {
            // Whoever runs the identity provider could have asserted this address.
            return Err(Error::new(
                Code::Forbidden,
                "Sign in with a password, a link or a passkey to accept an invitation.",
            ));
        }
        super::accept(tx, &link, Some(user.user()))
    });
    Ok(Json(AcceptedInvitation { tenant_user_id: joined.await?.id }))
}
