//! `/auth/authorize` and `/auth/url/…`: where apps send people to sign in, sign up and sign out.

use std::sync::Arc;

use kernel::{AppId, Code, Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::App;
use web::{LenientForm, LenientParams, Params, Path, Routes, form_fields};

use super::{Reply, begin, sign_out};
use crate::{
    Identity,
    authorize::{AuthorizationRequest, MAX_TEXT, SignUpPreferences, redirects},
    browser::{ForRequest, Request},
};

pub(super) fn routes() -> Routes<Identity> {
    Routes::new("Login redirects")
        .get("/auth/authorize", authorize, "Start a login (OAuth 2.0 and OpenID Connect)")
        .description(
            "Redirects to the hosted login, and from there to `redirect_uri` with `code` and `state`; a user who is \
             already signed in is sent there directly. An unknown app or redirect URI shows an error page; any other \
             error is returned to `redirect_uri` as `error` and `state`.",
        )
        .page()
        .post("/auth/authorize", authorize_by_form, "Start a login, with the parameters in a form")
        .page()
        .all_answer(&[(404, "There is no such app")])
        .get("/auth/url/login/{app_id}", login, "Start a login")
        .page()
        .get("/auth/url/signup/{app_id}", sign_up, "Start a sign-up")
        .page()
        .get("/auth/url/logout/{app_id}", logout, "Sign out of this browser, and redirect to the login")
        .description("Ends this browser's session and revokes the tokens that were issued for it.")
        .page()
}

/// The query of `GET /auth/authorize`. What is required beyond these two is asked for at the redirect address.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Authorize {
    /// The app's id.
    client_id: String,
    /// One of the app's `redirectUris`, letter for letter.
    redirect_uri: String,
    /// `code`.
    #[schemars(required)]
    response_type: Option<String>,
    /// Any of `openid profile email address phone onboarding tenant`, and privileges to narrow the token to.
    #[schemars(required)]
    scope: Option<String>,
    /// Comes back as it is.
    state: Option<String>,
    /// Comes back in the ID token.
    nonce: Option<String>,
    /// PKCE.
    code_challenge: Option<String>,
    /// `S256`.
    code_challenge_method: Option<String>,
    /// `none` shows no page at all, `login` asks again, `select_account` lets choose again.
    prompt: Option<String>,
    /// At most so many seconds may have passed since the person proved who they are.
    max_age: Option<String>,
    /// The address that the login page shows at first.
    login_hint: Option<String>,
    /// `query`, which is the default.
    response_mode: Option<String>,
    /// `true` begins with the sign-up.
    signup: Option<String>,
    /// The key of the plan to begin with.
    signup_plan: Option<String>,
    /// `directory-ad`, `social-one` or `saml`.
    force_federation: Option<String>,
    /// The id of a connection.
    federation_connection: Option<String>,
    #[schemars(skip)]
    request: Option<String>,
    #[schemars(skip)]
    request_uri: Option<String>,
}

async fn authorize(
    request: Request,
    ForRequest(identity): ForRequest,
    LenientParams { read, text }: LenientParams<Authorize>,
) -> Result<Reply> {
    match read {
        Ok(query) => answer(&identity, &request, query).await,
        Err(error) => malformed(&identity, &request, &text, error).await,
    }
}

/// OpenID Connect Core §3.1.2.1 wants both methods.
async fn authorize_by_form(
    request: Request,
    ForRequest(identity): ForRequest,
    LenientForm { read, text }: LenientForm<Authorize>,
) -> Result<Reply> {
    match read {
        Ok(query) => answer(&identity, &request, query).await,
        Err(error) => malformed(&identity, &request, &text, error).await,
    }
}

/// A request that cannot be read goes back to the app (RFC 6749 §4.1.2.1), as far as it says once and clearly which app
/// that is and where it may be answered.
async fn malformed(identity: &Identity, request: &Request, text: &str, error: Error) -> Result<Reply> {
    let fields = decodable(text);
    let once = |name: &str| {
        let mut given = fields.iter().filter(|(given, _)| given == name);
        given.next().filter(|_| given.next().is_none()).and_then(|(_, value)| value.clone())
    };
    let app = once("client_id").and_then(|id| identity.tenancy.apps.get(id.parse().ok()?));
    let (Some(app), Some(redirect_uri)) = (app, once("redirect_uri")) else { return Err(error) };
    request.scope.set_app(app.id);
    let asked = AuthorizationRequest {
        redirect_uri: Some(redirect_uri),
        state: once("state").filter(|state| state.len() <= MAX_TEXT && !state.contains('\0')),
        malformed: Some(error.public().to_owned()),
        ..AuthorizationRequest::default()
    };
    begin(identity, request, app, &asked, "redirect_uri").await
}

/// Names and values, one by one: `None` for a value that cannot be decoded.
fn decodable(text: &str) -> Vec<(String, Option<String>)> {
    let field = |text: &str| form_fields(text).ok().and_then(|mut fields| fields.pop());
    let pairs = text.split('&').filter_map(|pair| {
        let (name, _) = field(pair.split('=').next().unwrap_or_default())?;
        Some((name, field(pair).map(|(_, value)| value)))
    });
    pairs.collect()
}

async fn answer(identity: &Identity, request: &Request, query: Authorize) -> Result<Reply> {
    let app = query.client_id.parse().ok().and_then(|id| identity.tenancy.apps.get(id));
    let app = app.ok_or_else(|| Error::invalid("client_id", "must be the id of an app"))?;
    request.scope.set_app(app.id);
    let signs_up = query.signup.as_deref() == Some("true");
    let asked = AuthorizationRequest {
        redirect_uri: Some(query.redirect_uri),
        response_type: query.response_type,
        response_mode: query.response_mode,
        needs_scope: true,
        scope: query.scope,
        state: query.state,
        nonce: query.nonce,
        code_challenge: query.code_challenge,
        code_challenge_method: query.code_challenge_method,
        prompt: query.prompt,
        max_age: query.max_age,
        login_hint: query.login_hint,
        signup: query.signup,
        sign_up: signs_up.then(|| SignUpPreferences { plan: query.signup_plan, ..SignUpPreferences::default() }),
        force_federation: query.force_federation,
        federation_connection: query.federation_connection,
        request: query.request,
        request_uri: query.request_uri,
        malformed: None,
    };
    begin(identity, request, app, &asked, "redirect_uri").await
}

/// The query of `GET /auth/url/login/{app_id}`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LoginQuery {
    /// One of the app's `redirectUris`; its `defaultCallbackUri` without it.
    redirect_uri: Option<String>,
    /// Comes back as it is.
    state: Option<String>,
    /// `code` (the default), or `id_token` for an ID token in the fragment.
    response_type: Option<String>,
    /// `openid profile email onboarding tenant` without it.
    scope: Option<String>,
    /// Comes back in the ID token.
    nonce: Option<String>,
    /// PKCE.
    code_challenge: Option<String>,
    /// `S256`.
    code_challenge_method: Option<String>,
    /// As for `/auth/authorize`.
    prompt: Option<String>,
    /// The address that the login page shows at first.
    login_hint: Option<String>,
    /// `directory-ad`, `social-one` or `saml`.
    force_federation: Option<String>,
    /// The id of a connection.
    federation_connection: Option<String>,
}

async fn login(
    request: Request,
    ForRequest(identity): ForRequest,
    Path(app): Path<AppId>,
    Params(query): Params<LoginQuery>,
) -> Result<Reply> {
    let app = identity.app(&request, app)?;
    let asked = AuthorizationRequest {
        redirect_uri: query.redirect_uri,
        response_type: Some(query.response_type.unwrap_or_else(|| "code".into())),
        scope: query.scope,
        state: query.state,
        nonce: query.nonce,
        code_challenge: query.code_challenge,
        code_challenge_method: query.code_challenge_method,
        prompt: query.prompt,
        login_hint: query.login_hint,
        force_federation: query.force_federation,
        federation_connection: query.federation_connection,
        ..AuthorizationRequest::default()
    };
    begin(&identity, &request, app, &asked, "redirectUri").await
}

/// The query of `GET /auth/url/signup/{app_id}`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SignUpQuery {
    /// One of the app's `redirectUris`; its `defaultCallbackUri` without it.
    redirect_uri: Option<String>,
    /// Comes back as it is.
    state: Option<String>,
    /// The key of the plan to begin with.
    signup_plan: Option<String>,
    /// The currency of one of the plan's prices.
    signup_currency: Option<String>,
    /// The interval of one of the plan's prices.
    signup_recurrence_interval: Option<String>,
    /// Comes back in the ID token.
    nonce: Option<String>,
    /// PKCE.
    code_challenge: Option<String>,
    /// `S256`.
    code_challenge_method: Option<String>,
}

async fn sign_up(
    request: Request,
    ForRequest(identity): ForRequest,
    Path(app): Path<AppId>,
    Params(query): Params<SignUpQuery>,
) -> Result<Reply> {
    let app = identity.app(&request, app)?;
    let asked = AuthorizationRequest {
        redirect_uri: query.redirect_uri,
        response_type: Some("code".into()),
        state: query.state,
        nonce: query.nonce,
        code_challenge: query.code_challenge,
        code_challenge_method: query.code_challenge_method,
        sign_up: Some(SignUpPreferences {
            plan: query.signup_plan,
            currency: query.signup_currency,
            interval: query.signup_recurrence_interval,
        }),
        ..AuthorizationRequest::default()
    };
    begin(&identity, &request, app, &asked, "redirectUri").await
}

/// The query of `GET /auth/url/logout/{app_id}`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Logout {
    /// Where the person lands after signing in again; one of the app's `redirectUris`.
    redirect_uri: Option<String>,
}

async fn logout(
    request: Request,
    ForRequest(identity): ForRequest,
    Path(app): Path<AppId>,
    Params(query): Params<Logout>,
) -> Result<Reply> {
    let app: Arc<App> = identity.app(&request, app)?;
    let redirect_uri = match &query.redirect_uri {
        Some(uri) => Some(redirects::registered(&app.profile, Some(uri)).ok_or_else(|| {
            Error::new(Code::ValidationFailed, "redirect_uri must be one of the app’s registered redirect URIs.")
        })?),
        None => None,
    };
    sign_out(&identity, &request, &app, redirect_uri).await
}
