//! What the routes that RFCs describe have in common (JSON or form bodies, the RFC's error names beside ours), and
//! `POST /auth/token` as RFC 6749 has it.

use std::sync::Arc;

use axum::{
    extract::{FromRequest, Request},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use kernel::{AppId, Code, Error, Problems, Result, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use tenancy::{App, Tenancy};
use web::{
    Describe, Failure, Json, MediaType, Operation, RawBody, Scope, Validate, WithHeaders, form_fields, from_json,
    status_of,
};

use super::{TokenSet, codes::PresentedCode, from_code, from_refresh_token};

/// The body of `POST /auth/token`, as JSON or as a form.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct TokenRequest {
    /// The app's id.
    client_id: Words,
    /// `authorization_code` or `refresh_token`.
    grant_type: Words,
    /// For `authorization_code`.
    code: Option<Words>,
    /// For `authorization_code`: the one that the code was asked for with.
    redirect_uri: Option<Words>,
    /// For `authorization_code`, when a challenge was sent.
    code_verifier: Option<String>,
    /// For `refresh_token`.
    refresh_token: Option<Words>,
    /// For `refresh_token`: narrows what the token was granted.
    scope: Option<String>,
}

impl Validate for TokenRequest {
    fn validate(&self, problems: &mut Problems) {
        let needed: &[(&str, &Option<Words>)] = match self.grant_type.as_str() {
            "authorization_code" => &[("code", &self.code), ("redirect_uri", &self.redirect_uri)],
            "refresh_token" => &[("refresh_token", &self.refresh_token)],
            _ => &[],
        };
        for (field, value) in needed {
            problems.check(field, value.is_some(), "is required");
        }
    }
}

impl TokenRequest {
    /// Reads a body by its `Content-Type`.
    pub fn read(content_type: &str, body: &[u8]) -> Result<Self> {
        read(content_type, body)
    }
}

/// Reads a body by its `Content-Type`. The same members make the same request either way.
fn read<T: DeserializeOwned + JsonSchema + Validate + 'static>(content_type: &str, body: &[u8]) -> Result<T> {
    match MediaType::parse(content_type.as_bytes()) {
        MediaType::Form => from_json(&form_to_json(body)?),
        MediaType::Json => from_json(body),
        MediaType::Other | MediaType::Missing => {
            Err(Error::new(Code::UnsupportedMediaType, "Send the body as a form or as JSON."))
        }
    }
}

/// A request that was read, or why it could not be: answered in the RFC's shape either way.
pub(super) struct OauthBody<T> {
    read: Result<T>,
    request_id: String,
}

impl<S: Sync, T: DeserializeOwned + JsonSchema + Validate + 'static> FromRequest<S> for OauthBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let request_id = Scope::of(request.extensions()).request_id().to_owned();
        let content_type = request.headers().get(header::CONTENT_TYPE).cloned();
        let content_type = content_type.as_ref().and_then(|value| value.to_str().ok()).unwrap_or_default();
        let RawBody(bytes) = RawBody::from_request(request, state).await?;
        let read = read(content_type, &bytes);
        Ok(Self { read, request_id })
    }
}

impl<T: JsonSchema> Describe for OauthBody<T> {
    fn describe(operation: &mut Operation) {
        operation.body::<T>();
    }
}

impl<T> OauthBody<T> {
    /// What `serve` makes of the request, or the refusal.
    pub(super) async fn answer<A>(self, serve: impl AsyncFnOnce(T) -> Result<A>) -> Result<OauthAnswer<A>> {
        let served = match self.read {
            Ok(request) => serve(request).await,
            Err(error) => Err(error),
        };
        served.map(OauthAnswer::Given).or_else(|error| refusal(error, self.request_id))
    }
}

/// RFC 6749 §3.2: a parameter may not be repeated, and one without a value counts as left out.
fn form_to_json(bytes: &[u8]) -> Result<Vec<u8>> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| Error::new(Code::MalformedRequest, "The form is not valid UTF-8."))?;
    let mut members = Map::new();
    for (name, value) in form_fields(text)? {
        if !value.is_empty() && members.insert(name.clone(), Value::from(value)).is_some() {
            return Err(Error::invalid(name.chars().take(64).collect::<String>(), "is given twice"));
        }
    }
    serde_json::to_vec(&members).map_err(Error::internal)
}

/// What was asked for, or a refusal by the RFC's name. Neither may be stored by anybody on the way.
pub(super) enum OauthAnswer<A> {
    Given(A),
    Refused(StatusCode, Box<OauthFailure>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OauthFailure {
    error: &'static str,
    #[serde(rename = "error_description")]
    error_description: String,
    status_code: u16,
    message: String,
    request_id: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<kernel::FieldProblem>,
}

impl<A: IntoResponse> IntoResponse for OauthAnswer<A> {
    fn into_response(self) -> Response {
        let mut response = match self {
            Self::Given(given) => given.into_response(),
            Self::Refused(status, refusal) => {
                let mut response = Json(refusal).into_response();
                *response.status_mut() = status;
                response
            }
        };
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
        response
    }
}

impl<A: Describe> Describe for OauthAnswer<A> {
    fn describe(operation: &mut Operation) {
        A::describe(operation);
        operation.failure(401, "`invalid_client`: there is no such app");
    }
}

/// The app that a `client_id` names.
pub(super) fn client(tenancy: &Tenancy, scope: &Scope, id: &str) -> Result<Arc<App>> {
    let unknown = || Error::new(Code::UnknownClient, "No app has this client_id.");
    let app: AppId = id.parse().map_err(|_| unknown())?;
    let app = tenancy.apps.get(app).ok_or_else(unknown)?;
    scope.set_app(app.id);
    Ok(app)
}

pub(super) async fn grant(tenancy: &Tenancy, scope: &Scope, request: TokenRequest) -> Result<Json<TokenSet>> {
    let app = client(tenancy, scope, &request.client_id)?;
    let granted = match request.grant_type.as_str() {
        "authorization_code" => {
            let text = |value: Option<Words>| value.map(String::from).unwrap_or_default();
            let (code, redirect_uri) = (text(request.code), text(request.redirect_uri));
            from_code(tenancy, &app, PresentedCode { code, redirect_uri, verifier: request.code_verifier }).await
        }
        "refresh_token" => {
            let token = request.refresh_token.as_deref().unwrap_or_default();
            from_refresh_token(tenancy, &app, token, request.scope.as_deref()).await
        }
        _ => Err(Error::new(Code::UnsupportedGrantType, "grant_type must be authorization_code or refresh_token.")),
    };
    granted.map(|granted| Json(granted.tokens))
}

/// RFC 6749 §5.2; what the RFC has no word for leaves in our own shape.
fn refusal<A>(error: Error, request_id: String) -> Result<OauthAnswer<A>> {
    let (status, name) = match error.code() {
        Code::ValidationFailed | Code::MalformedJson | Code::MalformedRequest | Code::UnsupportedMediaType => {
            (status_of(error.kind()), "invalid_request")
        }
        // The grant is good for nothing any more, or not for this workspace: whoever holds it has to sign in again.
        Code::InvalidCredential | Code::SsoRequired | Code::MfaRequired => (StatusCode::BAD_REQUEST, "invalid_grant"),
        Code::InvalidScope => (StatusCode::BAD_REQUEST, "invalid_scope"),
        Code::UnsupportedGrantType => (StatusCode::BAD_REQUEST, "unsupported_grant_type"),
        Code::UnknownClient => (StatusCode::UNAUTHORIZED, "invalid_client"),
        _ => return Err(error),
    };
    let refusal = OauthFailure {
        error: name,
        error_description: error.public().to_owned(),
        status_code: status.as_u16(),
        message: error.public().to_owned(),
        request_id,
        details: error.details().to_vec(),
    };
    Ok(OauthAnswer::Refused(status, Box::new(refusal)))
}

/// For the other answers that carry tokens.
pub(crate) fn unstored<T>(answer: T) -> WithHeaders<Json<T>> {
    WithHeaders::new(Json(answer)).with(header::CACHE_CONTROL, "no-store").with(header::PRAGMA, "no-cache")
}
