//! `POST /auth/token/direct`.

use kernel::{AppId, MemberId, Result, Words};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::logins;
use web::{Json, Routes, Valid, Validate, WithHeaders};

use super::{ScopeRequest, TokenSetWithProfile, from_session, unstored};
use crate::{
    Identity,
    browser::{ForRequest, Mode, Request},
    sessions,
};

pub fn routes() -> Routes<Identity> {
    Routes::new("JSON login")
        .post("/auth/token/direct", direct, "Exchange a login session for tokens")
        .answers(404, "There is no such app")
        .answers(401, "The session is not valid, requires a second factor, or belongs to another user")
        .answers(403, "The request's Origin is not among the app's allowed origins")
}

/// The body of `POST /auth/token/direct`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Direct {
    session: Words,
    /// One of the session's `tenantUsers`; may be left out when there is exactly one.
    tenant_user_id: Option<Words>,
    app_id: AppId,
    /// `openid profile email onboarding tenant` without it.
    scope: Option<String>,
    /// Always `sdk`.
    #[expect(dead_code, reason = "it has one value, which reading checks")]
    mode: Mode,
}

impl Validate for Direct {}

async fn direct(
    request: Request,
    ForRequest(identity): ForRequest,
    Valid(body): Valid<Direct>,
) -> Result<WithHeaders<Json<TokenSetWithProfile>>> {
    let app = identity.app(&request, body.app_id)?;
    request.check_origin(&identity.tenancy.apps, &app)?;
    let session = sessions::verify(&identity.tenancy, &body.session)?;
    if session.aid != app.id {
        return Err(logins::ended());
    }
    // An id that is not a member's is refused like somebody else's.
    let member = body.tenant_user_id.map(|id| id.parse::<MemberId>().unwrap_or(MemberId::from_u128(0)));
    let asked = ScopeRequest::or_default(body.scope.as_deref());
    Ok(unstored(from_session(&identity, &app, session, member, asked).await?))
}
