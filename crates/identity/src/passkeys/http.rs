//! `/auth/auth/passkeys/…`.

use kernel::{AppId, Error, Result, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tenancy::App;
use web::{Json, LimitClass, Origins as _, Params, Routes, Success, Valid, Validate, WithHeaders, required_header};

use super::{Ceremony, Options, check_enabled};
use crate::{
    Identity,
    abuse::LIMITED,
    browser::{ForRequest, Mode, Request, foreign_origin},
    sessions::SessionAnswer,
    tokens::unstored,
};

pub fn routes() -> Routes<Identity> {
    Routes::new("Passkeys")
        .all_answer(&[(403, OFF), (404, "There is no such app")])
        .post("/auth/auth/passkeys/request-setup-link", request_setup_link, "Email a link that sets up a passkey")
        .limited(LimitClass::Message)
        .answers(429, LIMITED)
        .get("/auth/auth/passkeys/registration-options", registration_options, "WebAuthn creation options")
        .answers(401, "The setup token is not valid or has expired")
        .post("/auth/auth/passkeys/verify-registration", verify_registration, "Store a new passkey")
        .answers(401, "The setup token or the challenge is not valid or has expired")
        .get("/auth/auth/passkeys/authentication-options", authentication_options, "WebAuthn request options")
        .post("/auth/auth/passkeys/verify-authentication", verify_authentication, "Sign in with a passkey")
        .answers(401, "The passkey is not registered, or its response or the challenge is not valid")
        .answers(429, LIMITED)
}

const OFF: &str = "Passkeys are off, or the Origin is not among the app's allowed origins";

/// The body of `POST /auth/auth/passkeys/request-setup-link`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SetupLink {
    username: Words,
    app_id: AppId,
    /// Always `sdk`.
    #[expect(dead_code, reason = "it has one value, which reading checks")]
    mode: Mode,
}

impl Validate for SetupLink {}

async fn request_setup_link(
    request: Request,
    ForRequest(identity): ForRequest,
    Valid(body): Valid<SetupLink>,
) -> Result<Success> {
    let app = identity.app(&request, body.app_id)?;
    request.require_origin(&identity.tenancy.apps, &app)?;
    super::mail_setup_link(&identity, &app, &body.username, None).await?;
    Ok(Success)
}

/// The mailed token.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SetupToken {
    passkey_setup_token: Words,
}

impl Validate for SetupToken {}

/// Options for the browser: what WebAuthn defines, and `sdkChallengeToken`, which is taken out before the ceremony.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PasskeyOptions")]
pub(crate) struct OptionsAnswer {
    #[serde(flatten)]
    options: Map<String, Value>,
}

impl OptionsAnswer {
    pub(crate) fn of(options: Options) -> Self {
        Self { options: options.into_json() }
    }
}

/// The app of `x-app-id`, and the page that asks: a request without `Origin` is taken for the app's first page.
fn app_and_page(request: &Request, identity: &Identity) -> Result<(std::sync::Arc<App>, String)> {
    let named = required_header(&request.headers, "x-app-id")?;
    let app = named.parse().map_err(|_| Error::not_found("app"))?;
    let app = identity.app(request, app)?;
    check_enabled(&app)?;
    request.check_origin(&identity.tenancy.apps, &app)?;
    let page = match request.require_origin(&identity.tenancy.apps, &app) {
        Ok(origin) => origin,
        Err(_) => app.profile.origins().into_iter().next().ok_or_else(foreign_origin)?,
    };
    Ok((app, page))
}

async fn registration_options(
    request: Request,
    ForRequest(identity): ForRequest,
    Params(query): Params<SetupToken>,
) -> Result<WithHeaders<Json<OptionsAnswer>>> {
    let (app, page) = app_and_page(&request, &identity)?;
    let options = super::registration_options(&identity, &app, &page, &query.passkey_setup_token).await?;
    Ok(unstored(OptionsAnswer::of(options)))
}

/// A credential as browsers write it, binary members in base64url.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Credential {
    id: String,
    raw_id: String,
    r#type: String,
    response: Map<String, Value>,
    #[serde(default)]
    client_extension_results: Option<Map<String, Value>>,
    app_id: AppId,
    sdk_challenge_token: Words,
    /// The page's origin, one that the app allows.
    sdk_origin: Words,
}

impl Validate for Credential {}

impl Credential {
    /// 403 for an origin that the app does not allow.
    fn into_ceremony(self, identity: &Identity) -> Result<Ceremony> {
        if !identity.tenancy.apps.app_allows(self.app_id, &self.sdk_origin) {
            return Err(foreign_origin());
        }
        let credential = json!({
            "id": self.id, "rawId": self.raw_id, "type": self.r#type, "response": self.response,
            "clientExtensionResults": self.client_extension_results.unwrap_or_default(),
        });
        Ok(Ceremony { origin: self.sdk_origin.into(), challenge_token: self.sdk_challenge_token.into(), credential })
    }
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct Verified {
    verified: bool,
}

async fn verify_registration(
    request: Request,
    ForRequest(identity): ForRequest,
    Params(query): Params<SetupToken>,
    Valid(body): Valid<Credential>,
) -> Result<Json<Verified>> {
    let app = identity.app(&request, body.app_id)?;
    check_enabled(&app)?;
    let ceremony = body.into_ceremony(&identity)?;
    super::verify_registration(&identity, &app, &query.passkey_setup_token, ceremony).await?;
    Ok(Json(Verified { verified: true }))
}

async fn authentication_options(
    request: Request,
    ForRequest(identity): ForRequest,
) -> Result<WithHeaders<Json<OptionsAnswer>>> {
    let (app, page) = app_and_page(&request, &identity)?;
    Ok(unstored(OptionsAnswer::of(super::authentication_options(&identity, &app, &page)?)))
}

/// The body of `POST /auth/auth/passkeys/verify-authentication`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Assertion {
    #[serde(flatten)]
    credential: Credential,
    /// Always `sdk`.
    #[expect(dead_code, reason = "it has one value, which reading checks")]
    mode: Mode,
}

impl Validate for Assertion {}

async fn verify_authentication(
    request: Request,
    ForRequest(identity): ForRequest,
    Valid(body): Valid<Assertion>,
) -> Result<WithHeaders<Json<SessionAnswer>>> {
    let app = identity.app(&request, body.credential.app_id)?;
    request.require_origin(&identity.tenancy.apps, &app)?;
    check_enabled(&app)?;
    let ceremony = body.credential.into_ceremony(&identity)?;
    Ok(unstored(super::sign_in(&identity, &app, request.scope.client(), ceremony).await?))
}
