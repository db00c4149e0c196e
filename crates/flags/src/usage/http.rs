//! What clients report: `POST /v1/flags/eval-events`, `/discover` and `/call-sites`. Taken on at once, written later.

use axum::extract::{FromRequest, FromRequestParts, Request};
use http::{HeaderMap, header, request::Parts};
use kernel::{
    AppId, Code, Error, Result, Timestamp,
    text::{MAX_TEXT, NOT_BLANK},
    text_types,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tenancy::callers::{AnyKey, KeyCaller};
use web::{
    Accepted, Access, Describe, Failure, Operation, Origins as _, RawBody, Routes, Scope, State, Validate, from_json,
    optional_header,
};

use super::report::is_short;
use crate::{
    Flags,
    evaluation::require_json,
    model::{FlagKey, ValueType},
};

pub fn routes() -> Routes<Flags> {
    Routes::new("Feature flags")
        .post("/flags/eval-events", eval_events, "Report evaluations, counted per flag and variant")
        .post("/flags/discover", discover, "Report flag keys that code uses")
        .post("/flags/call-sites", call_sites, "Report where code uses flags")
}

/// Any key, or, since a browser must not hold one, a page of the app: `x-app-id` with an allowed `Origin`.
pub struct Reporter(AppId);

impl FromRequestParts<Flags> for Reporter {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, flags: &Flags) -> Result<Self, Failure> {
        if parts.headers.contains_key("x-api-key") {
            let key = KeyCaller::<AnyKey>::from_request_parts(parts, &flags.tenancy).await?;
            return Ok(Self(key.app_id()));
        }
        Ok(Self(page_of_app(&parts.headers, flags, &Scope::of(&parts.extensions))?))
    }
}

fn page_of_app(headers: &HeaderMap, flags: &Flags, scope: &Scope) -> Result<AppId> {
    let Some(app) = optional_header(headers, "x-app-id")? else {
        let message = "Send an API key in x-api-key, or from a page of the app its id in x-app-id.";
        return Err(Error::new(Code::Unauthenticated, message));
    };
    let app: AppId = app.parse().map_err(|_| Error::not_found("app"))?;
    flags.require_app(app)?;
    scope.set_app(app);
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    match origin {
        Some(origin) if flags.tenancy.apps.app_allows(app, origin) => Ok(app),
        _ => Err(Error::new(
            Code::Forbidden,
            "Without an API key, the request must come from an allowed origin of the app.",
        )),
    }
}

impl Describe for Reporter {
    fn describe(operation: &mut Operation) {
        operation
            .access(Access::Key { privilege: None })
            .header("x-app-id", false, "The app, when the request comes from an allowed origin and without a key")
            .failure(404, "There is no such app");
    }
}

/// A list, bare or as the one member of an object.
pub struct Reports<T>(Vec<T>);

/// What a list of these is called in an object.
pub trait Report: DeserializeOwned + JsonSchema + Send {
    type List: DeserializeOwned + Validate + JsonSchema + Into<Vec<Self>> + 'static;
    const MEMBER: &'static str;
}

impl<S: Sync, T: Report> FromRequest<S> for Reports<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        require_json(request.headers())?;
        let RawBody(body) = RawBody::from_request(request, state).await?;
        let list: T::List = match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'[') => {
                let mut object = format!("{{\"{}\":", T::MEMBER).into_bytes();
                object.extend_from_slice(&body);
                object.push(b'}');
                from_json(&object)?
            }
            _ => from_json(&body)?,
        };
        Ok(Self(list.into()))
    }
}

impl<T: Report> Describe for Reports<T> {
    fn describe(operation: &mut Operation) {
        operation.body::<Either<T::List, Vec<T>>>();
    }
}

/// For the documentation only.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "names the two forms in the schema")]
enum Either<A, B> {
    Object(A),
    Bare(B),
}

macro_rules! reports {
    ($list:ident { $member:ident: $report:ident } = $name:literal) => {
        #[derive(Deserialize, JsonSchema)]
        pub struct $list {
            $member: Vec<$report>,
        }

        impl From<$list> for Vec<$report> {
            fn from(list: $list) -> Self {
                list.$member
            }
        }

        impl Report for $report {
            type List = $list;
            const MEMBER: &'static str = $name;
        }

        impl Validate for $list {}
    };
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvalEvent {
    flag_key: FlagKey,
    /// The branch, or -1.
    #[schemars(range(min = -1, max = 99))]
    variant_index: i32,
    /// Now unless given. Events that are more than 90 days old are dropped.
    timestamp: Option<Timestamp>,
    /// How many evaluations this stands for: 1 unless given.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    count: Option<i64>,
}

reports!(EvalEvents { events: EvalEvent } = "events");

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeenKey {
    key: FlagKey,
    value_type: Option<ValueType>,
}

reports!(SeenKeys { keys: SeenKey } = "keys");

text_types! {
    /// The path of a file of code. Call sites in files of more than 256 characters are dropped.
    SourceFile {
        "minLength": 1,
        "maxLength": MAX_TEXT,
        "pattern": NOT_BLANK,
        "x-message": "must not be empty",
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ReportedCallSite")]
pub struct Site {
    flag_key: FlagKey,
    file: SourceFile,
    #[schemars(range(min = 0, max = 100_000_000))]
    line: i64,
}

reports!(Sites { sites: Site } = "sites");

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AcceptedReports")]
pub struct AcceptedReports {
    /// How many were taken: not those that are too old or too long, nor those that come faster than they can be kept.
    accepted: usize,
}

impl Flags {
    fn has(&self, app: AppId, key: &str) -> bool {
        self.memory.get(app).is_some_and(|flags| flags.get(key).is_some())
    }
}

/// Of a key that no flag has, only the sighting is kept.
async fn eval_events(
    Reporter(app): Reporter,
    State(flags): State<Flags>,
    Reports(events): Reports<EvalEvent>,
) -> Result<Accepted<AcceptedReports>> {
    let now = flags.tenancy.db.clock().now();
    let take = |EvalEvent { flag_key, variant_index, timestamp, count }: &EvalEvent| {
        let at = timestamp.unwrap_or(now).min(now);
        match flags.has(app, flag_key) {
            _ if !flags.usage.is_recent(at) => false,
            true => flags.usage.evaluated(app, flag_key, *variant_index, at, count.unwrap_or(1)),
            false => flags.usage.discover(app, flag_key, None),
        }
    };
    accepted(&events, take)
}

async fn discover(
    Reporter(app): Reporter,
    State(flags): State<Flags>,
    Reports(keys): Reports<SeenKey>,
) -> Result<Accepted<AcceptedReports>> {
    accepted(&keys, |seen| flags.has(app, &seen.key) || flags.usage.discover(app, &seen.key, seen.value_type))
}

async fn call_sites(
    Reporter(app): Reporter,
    State(flags): State<Flags>,
    Reports(sites): Reports<Site>,
) -> Result<Accepted<AcceptedReports>> {
    let take = |Site { flag_key, file, line }: &Site| match flags.has(app, flag_key) {
        true => flags.usage.called_from(app, flag_key, file, *line),
        false => is_short(file) && flags.usage.discover(app, flag_key, None),
    };
    accepted(&sites, take)
}

fn accepted<T>(reports: &[T], take: impl Fn(&T) -> bool) -> Result<Accepted<AcceptedReports>> {
    Ok(Accepted(AcceptedReports { accepted: reports.iter().filter(|report| take(report)).count() }))
}
