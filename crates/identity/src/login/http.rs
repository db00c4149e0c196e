//! `/auth/auth/…`: the JSON login flows for pages of the app's own.

use kernel::{AppId, Email, Error, OptionalName, Password, RedirectUri, Result, Secret, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;
use web::{Json, LimitClass, Origins as _, Routes, State, Success, Valid, Validate, WithHeaders};

use super::{
    SignUpRequest,
    flows::{self, CredentialsConfig, Landing},
};
use crate::{
    Identity,
    abuse::LIMITED,
    authorize::SignUpPreferences,
    browser::{FOREIGN_ORIGIN, ForRequest, Mode, Request},
    sessions::SessionAnswer,
    tokens::unstored,
};

pub fn routes() -> Routes<Identity> {
    Routes::new("JSON login")
        .all_answer(&[(403, FOREIGN_ORIGIN), (404, "There is no such app"), (429, LIMITED)])
        .post("/auth/auth/signup", sign_up, "Sign up for a new workspace")
        .limited(LimitClass::Message)
        .answers(403, "Self-service sign-up is off, or the Origin is not among the app's allowed origins")
        .post("/auth/auth/credentialsConfig", credentials_config, "List how a user can sign in")
        .answers(401, "There is no such user")
        .post("/auth/auth/authenticate", authenticate, "Sign in with a password")
        .answers(401, "Incorrect user name or password")
        .post("/auth/auth/magic-link", magic_link, "Email a sign-in link")
        .limited(LimitClass::Message)
        .answers(403, "Magic links are off, or the Origin is not among the app's allowed origins")
        .post("/auth/auth/password", forgotten, "Email a password reset link")
        .limited(LimitClass::Message)
        .all_answer(&[(429, LIMITED)])
        .post("/auth/auth/magic-link/authenticate", follow_magic_link, "Sign in with a mailed link")
        .answers(401, "The link is not valid or has expired")
        .answers(403, "Magic links are off")
}

/// Names who wants to sign in, and to what.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LoginBody {
    username: Words,
    app_id: AppId,
    /// Always `sdk`.
    #[expect(dead_code, reason = "it has one value, which reading checks")]
    mode: Mode,
}

impl Validate for LoginBody {}

/// The body of `POST /auth/auth/signup`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SignUpBody {
    email: Email,
    first_name: Option<OptionalName>,
    last_name: Option<OptionalName>,
    app_id: AppId,
    /// Always `sdk`.
    #[expect(dead_code, reason = "it has one value, which reading checks")]
    mode: Mode,
}

impl Validate for SignUpBody {}

/// The answer is the same for every address.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct SignUpAnswer {
    success: bool,
    /// For a person.
    message: &'static str,
}

async fn sign_up(
    request: Request,
    ForRequest(identity): ForRequest,
    Valid(body): Valid<SignUpBody>,
) -> Result<Json<SignUpAnswer>> {
    let app = identity.app(&request, body.app_id)?;
    request.require_origin(&identity.tenancy.apps, &app)?;
    let name = |name: Option<OptionalName>| name.map(String::from).unwrap_or_default();
    let (first_name, last_name) = (name(body.first_name), name(body.last_name));
    let (email, preferences) = (body.email.into(), SignUpPreferences::default());
    flows::sign_up(&identity, &app, SignUpRequest { email, first_name, last_name, preferences, request: None }).await?;
    Ok(Json(SignUpAnswer { success: true, message: "Check your inbox to continue." }))
}

async fn credentials_config(
    request: Request,
    State(identity): State<Identity>,
    Valid(body): Valid<LoginBody>,
) -> Result<Json<CredentialsConfig>> {
    let app = identity.app(&request, body.app_id)?;
    let origin = request.require_origin(&identity.tenancy.apps, &app)?;
    let client = request.scope.client();
    let config = flows::credentials_config(&identity, &app, client, &body.username, &flows::host_of(&origin)).await?;
    Ok(Json(config))
}

/// The body of `POST /auth/auth/authenticate`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Authenticate {
    #[serde(flatten)]
    who: LoginBody,
    password: Secret<Password>,
}

impl Validate for Authenticate {}

async fn authenticate(
    request: Request,
    ForRequest(identity): ForRequest,
    Valid(body): Valid<Authenticate>,
) -> Result<WithHeaders<Json<SessionAnswer>>> {
    let app = identity.app(&request, body.who.app_id)?;
    request.require_origin(&identity.tenancy.apps, &app)?;
    let password = body.password.map(String::from);
    let session = flows::password(&identity, &app, &request.source(), &body.who.username, password).await?;
    Ok(unstored(session))
}

/// The body of `POST /auth/auth/magic-link`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MagicLink {
    #[serde(flatten)]
    who: LoginBody,
    /// Where the link leads, with the token in `service_magic_link_token`; the hosted login without it.
    success_url: Option<RedirectUri>,
}

impl Validate for MagicLink {}

/// How long what was sent works.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LinkSent {
    /// Milliseconds.
    pub(crate) expires_in: u64,
}

async fn magic_link(
    request: Request,
    ForRequest(identity): ForRequest,
    Valid(body): Valid<MagicLink>,
) -> Result<Json<LinkSent>> {
    let app = identity.app(&request, body.who.app_id)?;
    request.require_origin(&identity.tenancy.apps, &app)?;
    let success_url = body.success_url.as_deref().map(Url::parse).transpose();
    let success_url = success_url.map_err(|_| Error::invalid("successUrl", "must be a URL"))?;
    if let Some(url) = &success_url
        && !identity.tenancy.apps.app_allows(app.id, &url.origin().ascii_serialization())
    {
        return Err(Error::invalid("successUrl", "must be on one of the app's allowed origins"));
    }
    let landing = success_url.map_or(Landing::Hosted(None), Landing::Page);
    let lifetime = flows::magic_link(&identity, &app, &body.who.username, landing).await?;
    Ok(Json(LinkSent { expires_in: u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX) }))
}

/// The body of `POST /auth/auth/magic-link/authenticate`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct MagicLinkToken {
    token: Words,
}

impl Validate for MagicLinkToken {}

async fn follow_magic_link(
    request: Request,
    ForRequest(identity): ForRequest,
    Valid(body): Valid<MagicLinkToken>,
) -> Result<WithHeaders<Json<SessionAnswer>>> {
    Ok(unstored(flows::follow_magic_link(&identity, request.scope.client(), &body.token).await?))
}

async fn forgotten(
    request: Request,
    ForRequest(identity): ForRequest,
    Valid(body): Valid<LoginBody>,
) -> Result<Success> {
    let app = identity.app(&request, body.app_id)?;
    request.require_origin(&identity.tenancy.apps, &app)?;
    flows::forgotten(&identity, &app, &body.username, None).await?;
    Ok(Success)
}
