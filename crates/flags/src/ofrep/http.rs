//! `/ofrep/v1/evaluate/flags`, by header or key, and the same under a base URL that names the app.

use axum::{
    extract::{FromRequestParts, Request},
    response::{IntoResponse, Response},
};
use http::{StatusCode, request::Parts};
use kernel::{AppId, Code, Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use tenancy::callers::{AnyKey, KeyCaller};
use web::{Describe, Failure, IfNoneMatch, Operation, Path, RawBody, RequestId, Routes, Scope, State, optional_header};

use super::answers::{Problem, failure, json, tagged, write};
use crate::{
    Flags,
    evaluation::require_json,
    rules::{OnDemand, Resolved, SentContext, evaluate},
};

pub fn routes() -> Routes<Flags> {
    Routes::new("OpenFeature")
        .post("/ofrep/v1/evaluate/flags", bulk, "Evaluate all flags (OFREP)")
        .any_origin()
        .answers(304, "Nothing changed since the answer named in If-None-Match")
        .post("/ofrep/v1/evaluate/flags/{key}", one, "Evaluate a flag (OFREP)")
        .any_origin()
        .post(
            "/cloud-views/ofrep/{app_id}/ofrep/v1/evaluate/flags",
            bulk_of_app,
            "Evaluate all flags of an app (OFREP)",
        )
        .any_origin()
        .answers(304, "Nothing changed since the answer named in If-None-Match")
        .post(
            "/cloud-views/ofrep/{app_id}/ofrep/v1/evaluate/flags/{key}",
            one_of_app,
            "Evaluate a flag of an app (OFREP)",
        )
        .any_origin()
}

/// The app that `x-app-id` names, or the key's.
pub struct NamedApp(AppId);

impl FromRequestParts<Flags> for NamedApp {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, flags: &Flags) -> Result<Self, Failure> {
        if parts.headers.contains_key("x-api-key") {
            let key = KeyCaller::<AnyKey>::from_request_parts(parts, &flags.tenancy).await?;
            return Ok(Self(key.app_id()));
        }
        let Some(named) = optional_header(&parts.headers, "x-app-id")? else {
            let message = "Specify the app: by x-app-id, an API key, or the base URL.";
            return Err(Error::new(Code::MissingHeader, message).into());
        };
        let app = named.parse().map_err(|_| Error::not_found("app"))?;
        flags.require_app(app)?;
        Scope::of(&parts.extensions).set_app(app);
        Ok(Self(app))
    }
}

impl Describe for NamedApp {
    fn describe(operation: &mut Operation) {
        operation
            .header("x-app-id", false, "The app; not needed with an API key")
            .header("x-api-key", false, "An API key of the app, instead of x-app-id")
            .failure(401, "The API key is not valid")
            .failure(404, "There is no such app");
    }
}

/// The evaluation context of OpenFeature; for the documentation.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "names the members in the schema")]
struct OpenFeatureRequest {
    /// `targetingKey` is `user.id`; `user`, `tenant`, `device` and `custom`, nested or dotted, are the usual attributes;
    /// everything else is one of `custom`.
    context: Option<Map<String, Value>>,
}

/// The body and what the answer may depend on.
pub struct OfrepRequest {
    body: bytes::Bytes,
    known: IfNoneMatch,
}

impl<S: Sync> axum::extract::FromRequest<S> for OfrepRequest {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        require_json(request.headers())?;
        let known = IfNoneMatch::of(request.headers());
        let RawBody(body) = RawBody::from_request(request, state).await?;
        Ok(Self { body, known })
    }
}

impl Describe for OfrepRequest {
    fn describe(operation: &mut Operation) {
        operation.body::<OpenFeatureRequest>();
    }
}

/// The protocol's answers.
pub struct OfrepAnswer(Response);

impl IntoResponse for OfrepAnswer {
    fn into_response(self) -> Response {
        self.0
    }
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "names the members in the schema")]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "OpenFeatureAnswer")]
struct OfrepBody {
    /// One flag's result.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
    /// All flags' results.
    #[serde(skip_serializing_if = "Option::is_none")]
    flags: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_details: Option<String>,
}

impl Describe for OfrepAnswer {
    fn describe(operation: &mut Operation) {
        operation.answer::<OfrepBody>(StatusCode::OK);
    }
}

async fn bulk(
    NamedApp(app): NamedApp,
    State(flags): State<Flags>,
    id: RequestId,
    asked: OfrepRequest,
) -> Result<OfrepAnswer> {
    flags.answer_all(app, &id, &asked).await
}

async fn bulk_of_app(
    Path(app): Path<AppId>,
    State(flags): State<Flags>,
    id: RequestId,
    asked: OfrepRequest,
) -> Result<OfrepAnswer> {
    flags.require_app(app)?;
    flags.answer_all(app, &id, &asked).await
}

async fn one(
    NamedApp(app): NamedApp,
    State(flags): State<Flags>,
    Path(key): Path<String>,
    id: RequestId,
    asked: OfrepRequest,
) -> Result<OfrepAnswer> {
    flags.answer_one(app, &key, &id, &asked).await
}

async fn one_of_app(
    Path((app, key)): Path<(AppId, String)>,
    State(flags): State<Flags>,
    id: RequestId,
    asked: OfrepRequest,
) -> Result<OfrepAnswer> {
    flags.require_app(app)?;
    flags.answer_one(app, &key, &id, &asked).await
}

impl Flags {
    async fn answer_one(&self, app: AppId, key: &str, id: &RequestId, asked: &OfrepRequest) -> Result<OfrepAnswer> {
        let sent = match SentContext::read_open_feature(&asked.body) {
            Ok(sent) => sent,
            Err(error) => return Ok(OfrepAnswer(failure(Problem::of(&error), &error, Some(key), &id.0))),
        };
        let (context, token_ignored) = self.context(app, sent).await?;
        let flags = self.memory.get(app);
        let Some((flags, flag)) = flags.as_deref().and_then(|flags| Some((flags, flags.get(key)?))) else {
            self.usage.discover(app, key, None);
            let error = Error::not_found("flag");
            return Ok(OfrepAnswer(failure(Problem::FlagNotFound, &error, Some(key), &id.0)));
        };
        self.asked(app, flag);
        let seen = OnDemand { attributes: &flags.attributes, context: &context };
        let verdict = evaluate(flag, &seen, context.identity().as_deref());
        if verdict.outcome.value().is_none() {
            let error = Error::new(Code::Internal, "The flag cannot be evaluated.");
            return Ok(OfrepAnswer(failure(Problem::General, &error, Some(key), &id.0)));
        }
        let mut text = Vec::with_capacity(192);
        write(flag, verdict, token_ignored, &mut text);
        Ok(OfrepAnswer(json(StatusCode::OK, text)))
    }

    async fn answer_all(&self, app: AppId, id: &RequestId, asked: &OfrepRequest) -> Result<OfrepAnswer> {
        let sent = match SentContext::read_open_feature(&asked.body) {
            Ok(sent) => sent,
            Err(error) => return Ok(OfrepAnswer(failure(Problem::of(&error), &error, None, &id.0))),
        };
        let (context, token_ignored) = self.context(app, sent).await?;
        let flags = self.memory.get(app).unwrap_or_default();
        let seen = Resolved::new(&flags.attributes, &context);
        let identity = context.identity();
        let mut text = br#"{"flags":["#.to_vec();
        for (index, flag) in flags.flags.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            write(flag, evaluate(flag, &seen, identity.as_deref()), token_ignored, &mut text);
        }
        text.extend_from_slice(b"]}");
        Ok(OfrepAnswer(tagged(text, &asked.known)))
    }
}
