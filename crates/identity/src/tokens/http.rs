//! `/auth/token…`, `/auth/refresh-token`, `/auth/auth/revoke`, `/auth/userinfo`.

use std::{sync::Arc, time::Duration};

use kernel::{AppId, Error, MemberId, Result, Words};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::{
    App,
    callers::{DescribedCaller, RefreshingCaller, authenticate_token},
};
use web::{Json, Path, Routes, State, Success, Valid, ValidOrNone, Validate, WithHeaders};

use super::{About, ScopeRequest, TokenSet, TokenSetWithProfile, WorkspaceEntry, codes::PresentedCode, oauth};
use crate::{
    Identity,
    browser::{ForRequest, Request},
};

pub fn routes() -> Routes<Identity> {
    Routes::new("Tokens")
        .post("/auth/token", token, "Exchange an authorization code or a refresh token")
        .answers(400, "`invalid_request`, `invalid_grant`, `invalid_scope` or `unsupported_grant_type`")
        .post("/auth/token/{grant_type}/{app_id}", grant, "Exchange a code (`code`) or a refresh token (`refresh`)")
        .answers(401, "The code or refresh token is not valid")
        .post("/auth/refresh-token", refresh, "Refresh with an access token")
        .post("/auth/token/workspace-list", workspace_list, "List the user's workspaces")
        .answers(401, "The access token is not valid")
        .post("/auth/token/workspace-switch", workspace_switch, "Switch to another workspace of the user")
        .answers(
            401,
            "The access token is not valid, or the target belongs to another user or requires a second factor",
        )
        .post("/auth/auth/revoke", revoke, "Sign out")
        .get("/auth/userinfo", userinfo, "Get the user's claims, as far as the granted scopes allow")
        .post("/auth/userinfo", userinfo, "Get the user's claims, as far as the granted scopes allow")
}

async fn token(
    request: Request,
    ForRequest(identity): ForRequest,
    asked: oauth::OauthBody<oauth::TokenRequest>,
) -> Result<oauth::OauthAnswer<Json<TokenSet>>> {
    asked.answer(async |asked| oauth::grant(&identity.tenancy, &request.scope, asked).await).await
}

/// The body of `POST /auth/token/{grant_type}/{app_id}`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TokenBody {
    /// For `code`.
    code: Option<Words>,
    /// For `code`; the app's `defaultCallbackUri` without it.
    redirect_uri: Option<String>,
    /// For `code`, when a PKCE challenge was sent.
    code_verifier: Option<String>,
    /// For `refresh`.
    refresh_token: Option<Words>,
}

impl Validate for TokenBody {}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum GrantType {
    Code,
    Refresh,
}

async fn grant(
    request: Request,
    ForRequest(identity): ForRequest,
    Path((kind, app)): Path<(GrantType, AppId)>,
    Valid(body): Valid<TokenBody>,
) -> Result<WithHeaders<Json<TokenSetWithProfile>>> {
    let app: Arc<App> = identity.app(&request, app)?;
    let needed = |value: Option<String>, field: &str| value.ok_or_else(|| Error::invalid(field, "is required"));
    let granted = match kind {
        GrantType::Code => {
            let code = needed(body.code.map(String::from), "code")?;
            let redirect_uri = body.redirect_uri.or_else(|| app.profile.default_callback_uri.clone());
            let redirect_uri = needed(redirect_uri, "redirectUri")?;
            let shown = PresentedCode { code, redirect_uri, verifier: body.code_verifier };
            super::from_code(&identity.tenancy, &app, shown).await?
        }
        GrantType::Refresh => {
            let token = needed(body.refresh_token.map(String::from), "refreshToken")?;
            super::from_refresh_token(&identity.tenancy, &app, &token, None).await?
        }
    };
    Ok(oauth::unstored(granted))
}

/// The body of `POST /auth/refresh-token`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
struct Refresh {
    /// Narrows the presented token's scope.
    scope: Option<String>,
}

impl Validate for Refresh {}

async fn refresh(
    RefreshingCaller(user): RefreshingCaller,
    ForRequest(identity): ForRequest,
    ValidOrNone(body): ValidOrNone<Refresh>,
) -> Result<WithHeaders<Json<TokenSetWithProfile>>> {
    let asked = ScopeRequest::parse(body.unwrap_or_default().scope.as_deref().unwrap_or_default());
    Ok(oauth::unstored(super::from_access_token(&identity.tenancy, user, None, asked).await?))
}

/// The body of `POST /auth/token/workspace-list`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WorkspaceList {
    access_token: Words,
}

impl Validate for WorkspaceList {}

async fn workspace_list(
    request: Request,
    State(identity): State<Identity>,
    Valid(body): Valid<WorkspaceList>,
) -> Result<Json<Vec<WorkspaceEntry>>> {
    let user = authenticate_token(&identity.tenancy, &request.scope, &body.access_token, Duration::ZERO).await?;
    Ok(Json(super::workspaces_of(&identity.tenancy, user).await?))
}

/// The body of `POST /auth/token/workspace-switch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WorkspaceSwitch {
    access_token: Words,
    target_tenant_user_id: Words,
    scope: Option<String>,
}

impl Validate for WorkspaceSwitch {}

async fn workspace_switch(
    request: Request,
    ForRequest(identity): ForRequest,
    Valid(body): Valid<WorkspaceSwitch>,
) -> Result<WithHeaders<Json<TokenSet>>> {
    let user = authenticate_token(&identity.tenancy, &request.scope, &body.access_token, Duration::ZERO).await?;
    // An id that is not a member's is refused like somebody else's.
    let target: MemberId = body.target_tenant_user_id.parse().map_err(|_| tenancy::logins::ended())?;
    let asked = ScopeRequest::or_default(body.scope.as_deref());
    let granted = super::from_access_token(&identity.tenancy, user, Some(target), asked).await?;
    Ok(oauth::unstored(granted.tokens))
}

/// The body of `POST /auth/auth/revoke`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Revoke {
    refresh_token: Words,
    /// Signs the user out everywhere, not only here.
    #[serde(default)]
    all: bool,
}

impl Validate for Revoke {}

async fn revoke(ForRequest(identity): ForRequest, Valid(body): Valid<Revoke>) -> Result<Success> {
    super::revoke(&identity.tenancy, &body.refresh_token, body.all).await?;
    Ok(Success)
}

async fn userinfo(
    DescribedCaller { claims, standing }: DescribedCaller,
    State(identity): State<Identity>,
) -> Result<WithHeaders<Json<About>>> {
    Ok(oauth::unstored(super::about_user(&identity.tenancy, &claims, &standing)))
}
