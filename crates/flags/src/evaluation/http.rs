//! `/cloud-views/flags/evaluate` and `/bulkEvaluate`: open to everybody, from any origin.

use std::sync::LazyLock;

use bytes::Bytes;
use kernel::{AppId, Result};
use schemars::JsonSchema;
use serde_json::Value;
use web::{Path, Prewritten, Routes, State};

use super::ContextBody;
use crate::{
    Flags,
    rules::{Context, FlagResult, OnDemand, Resolved, evaluate},
};

pub fn routes() -> Routes<Flags> {
    Routes::new("Feature flags")
        .get("/cloud-views/flags/evaluate/{app_id}/{flag_key}", without_context, "Evaluate a flag without a context")
        .any_origin()
        .post("/cloud-views/flags/evaluate/{app_id}/{flag_key}", with_context, "Evaluate a flag for a context")
        .any_origin()
        .post("/cloud-views/flags/bulkEvaluate/{app_id}", bulk, "Evaluate all flags for a context")
        .any_origin()
}

/// What one flag evaluates to; for the documentation.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FlagEvaluation")]
#[expect(dead_code, reason = "names the members in the schema")]
struct Evaluation {
    /// Of the flag's value type. Absent only when the flag cannot be evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    enabled: bool,
    /// The branch that matched, or -1.
    variant_index: i32,
    /// Why the flag cannot be evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// `INVALID_TOKEN` when the access token was ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename = "BulkFlagEvaluation")]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "names the members in the schema")]
struct BulkEvaluation {
    flags: Vec<NamedEvaluation>,
    /// `INVALID_TOKEN` when the access token was ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename = "NamedFlagEvaluation")]
#[expect(dead_code, reason = "names the members in the schema")]
struct NamedEvaluation {
    flag: String,
    evaluation: Evaluation,
}

async fn without_context(
    State(flags): State<Flags>,
    Path((app, key)): Path<(AppId, String)>,
) -> Result<Prewritten<Evaluation>> {
    flags.require_app(app)?;
    Ok(Prewritten::new(flags.one(app, &key, &Context::default()).body))
}

async fn with_context(
    State(flags): State<Flags>,
    Path((app, key)): Path<(AppId, String)>,
    body: ContextBody,
) -> Result<Prewritten<Evaluation>> {
    flags.require_app(app)?;
    let (context, token_ignored) = flags.context(app, body.read()?).await?;
    let mut answer = flags.one(app, &key, &context).body;
    if token_ignored {
        answer = with_error_code(&answer);
    }
    Ok(Prewritten::new(answer))
}

async fn bulk(
    State(flags): State<Flags>,
    Path(app): Path<AppId>,
    body: ContextBody,
) -> Result<Prewritten<BulkEvaluation>> {
    flags.require_app(app)?;
    let (context, token_ignored) = flags.context(app, body.read()?).await?;
    let mut answer = Bytes::from(flags.all(app, &context));
    if token_ignored {
        answer = with_error_code(&answer);
    }
    Ok(Prewritten::new(answer))
}

static UNKNOWN: LazyLock<FlagResult> = LazyLock::new(FlagResult::unknown);

impl Flags {
    /// A key that no flag has evaluates to `false`, and is noted.
    fn one(&self, app: AppId, key: &str, context: &Context<'_>) -> FlagResult {
        let flags = self.memory.get(app);
        let Some((flags, flag)) = flags.as_deref().and_then(|flags| Some((flags, flags.get(key)?))) else {
            self.usage.discover(app, key, None);
            return UNKNOWN.clone();
        };
        self.asked(app, flag);
        let seen = OnDemand { attributes: &flags.attributes, context };
        evaluate(flag, &seen, context.identity().as_deref()).outcome.clone()
    }

    /// All flags of the app, by key.
    fn all(&self, app: AppId, context: &Context<'_>) -> Vec<u8> {
        let flags = self.memory.get(app);
        let Some(flags) = flags.as_deref() else { return br#"{"flags":[]}"#.to_vec() };
        let seen = Resolved::new(&flags.attributes, context);
        let identity = context.identity();
        let mut text = Vec::with_capacity(16 + flags.flags.len() * 96);
        text.extend_from_slice(br#"{"flags":["#);
        for (index, flag) in flags.flags.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            let outcome = evaluate(flag, &seen, identity.as_deref()).outcome;
            // Keys need no escaping.
            text.extend_from_slice(br#"{"flag":""#);
            text.extend_from_slice(flag.key.as_bytes());
            text.extend_from_slice(br#"","evaluation":"#);
            text.extend_from_slice(&outcome.body);
            text.push(b'}');
        }
        text.extend_from_slice(b"]}");
        text
    }
}

/// An object with one member more.
fn with_error_code(object: &[u8]) -> Bytes {
    let mut text = object[..object.len() - 1].to_vec();
    text.extend_from_slice(br#","errorCode":"INVALID_TOKEN"}"#);
    text.into()
}
