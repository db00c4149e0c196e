//! `POST /event-log` and `POST /event-log/batch`.

use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Request};
use http::request::Parts;
use kernel::{AppId, Code, Error, Label, Problems, Result, Timestamp, Words, text_types};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenancy::callers::{AppCaller, EventWrite};
use web::{
    Created, Describe, Failure, MediaType, Operation, RawBody, Routes, State, Validate, from_json, from_value, not_json,
};

use super::{ArrivedEvent, IngestRow, LoggedEventId, Outcome, batch::ingest_batch, cloud_events};
use crate::{
    EventLog, keeping,
    names::{MOST_NAMES, OWN_PREFIX},
    parameters::Parameters,
};

/// Of a batch.
const MAX_BATCH_BYTES: usize = 8 * 1024 * 1024;
/// How far ahead an event may lie.
const EARLY: Duration = Duration::from_hours(24);

pub(crate) fn routes() -> Routes<EventLog> {
    Routes::new("Event log")
        .post("/event-log", ingest, "Record an event")
        .description(
            "Durable when it answers; what the event feeds follows within about a second, or before the answer with \
             `Prefer: wait`. A repeated `ingestId` changes nothing. CloudEvents 1.0 are taken too, structured or by their \
             headers: their app is the key's.",
        )
        .post("/event-log/batch", ingest_batch, "Record up to 1,000 events")
        .description(
            "`{ events: […] }` or a bare list, of either form. Each entry is answered in its place: as by the single \
             operation, or with its `error` while the others are stored.",
        )
        .body_limit(MAX_BATCH_BYTES)
}

text_types! {
    /// What makes an event count once, however often it is sent.
    IngestId {
        "minLength": 1,
        "maxLength": 256,
        "pattern": r"^[^\x00-\x1f\x7f-\x9f]*$",
        "x-message": "must not contain control characters",
    }

    /// Where events come from, by the sender's own word.
    IngestSource {
        "minLength": 1,
        "maxLength": 256,
        "pattern": r"^[^\x00-\x1f\x7f-\x9f]*$",
        "x-message": "must not contain control characters",
        "not": { "enum": ["tenantry"] },
    }
}

/// The body of `POST /event-log`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventBody {
    /// The key's own app.
    app_id: Words,
    /// Those that begin with `tenantry.` are the service's own.
    event_name: Label,
    /// When it happened, at most 24 hours ahead.
    timestamp: Timestamp,
    /// `{}` if there are none.
    parameters: Parameters,
    /// An event with the same id as an earlier one is not stored again.
    ingest_id: Option<IngestId>,
    ingest_source: Option<IngestSource>,
}

/// Its rules are judged together with those that need the app and the time.
impl Validate for EventBody {}

const OWN_NAME: &str = "must not begin with tenantry.: such events are the service's own";

/// An event of either form.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub app_id: String,
    pub event_name: String,
    pub timestamp: Timestamp,
    pub parameters: Parameters,
    pub ingest_id: Option<String>,
    pub ingest_source: Option<String>,
}

impl From<EventBody> for NewEvent {
    fn from(body: EventBody) -> Self {
        let EventBody { app_id, event_name, timestamp, parameters, ingest_id, ingest_source } = body;
        Self {
            app_id: app_id.into(),
            event_name: event_name.into(),
            timestamp,
            parameters,
            ingest_id: ingest_id.map(Into::into),
            ingest_source: ingest_source.map(Into::into),
        }
    }
}

/// What was sent, in its form.
pub enum SentEvent {
    Plain(Box<EventBody>),
    Cloud(Value),
}

impl SentEvent {
    pub fn of(value: Value) -> Result<Self> {
        if cloud_events::is_cloud_event(&value) {
            return Ok(Self::Cloud(value));
        }
        Ok(Self::Plain(Box::new(from_value(&value)?)))
    }

    /// When it happened, as far as that can be told before it is judged; the beginning of time otherwise.
    pub fn timestamp(&self) -> Timestamp {
        match self {
            Self::Plain(body) => body.timestamp,
            Self::Cloud(value) => {
                match value.get("time").map(|time| time.as_str().and_then(|time| time.parse().ok())) {
                    None => Timestamp::MAX,
                    Some(time) => time.unwrap_or(Timestamp::MIN),
                }
            }
        }
    }

    /// The event for the log, if it may be stored. `taken` is the oldest instant that the app still takes.
    pub fn admit(self, app: AppId, now: Timestamp, taken: Option<Timestamp>) -> Result<ArrivedEvent> {
        let (new, name, time) = match self {
            Self::Plain(body) => (NewEvent::from(*body), "eventName", "timestamp"),
            Self::Cloud(value) => (cloud_events::read(&value, app.to_string(), now)?, "type", "time"),
        };
        let mut problems = Problems::new();
        problems.check(name, !new.event_name.starts_with(OWN_PREFIX), OWN_NAME);
        problems.check(time, new.timestamp <= now.plus(EARLY), "must lie at most 24 hours ahead");
        let kept = taken.is_none_or(|taken| new.timestamp >= taken);
        problems.check(time, kept, "must not lie further back than the app keeps its events");
        problems.finish()?;
        crate::require_own_app(app, &new.app_id)?;
        Ok(ArrivedEvent {
            // Given when it is stored, so that ids have the order of arrival.
            id: LoggedEventId::from_u128(0),
            name: new.event_name,
            at: new.timestamp.as_micros(),
            source: new.ingest_source,
            ingest_id: new.ingest_id,
            tenant: None,
            parameters: serde_json::to_string(&new.parameters).map_err(Error::internal)?,
        })
    }
}

impl<S: Sync> FromRequest<S> for SentEvent {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        if !matches!(MediaType::of(request.headers()), MediaType::Json) {
            return Err(not_json().into());
        }
        let headers = request.headers().clone();
        let RawBody(body) = RawBody::from_request(request, state).await?;
        if cloud_events::is_binary(&headers) {
            let data = from_json::<Parameters>(&body)?;
            return Ok(Self::Cloud(cloud_events::from_headers(&headers, Value::Object(data.0))));
        }
        if body.windows(SPECVERSION.len()).any(|part| part == SPECVERSION) {
            return Ok(Self::of(from_json::<AnyObject>(&body)?.0)?);
        }
        Ok(Self::Plain(Box::new(from_json(&body)?)))
    }
}

/// Only what holds this can be a CloudEvent.
const SPECVERSION: &[u8] = b"\"specversion\"";

impl Validate for Parameters {}

/// Whatever JSON comes.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
struct AnyObject(Value);

impl Validate for AnyObject {}

impl Describe for SentEvent {
    fn describe(operation: &mut Operation) {
        operation.body::<EventBody>();
    }
}

/// Whether the answer waits until the event is in the aggregates: `Prefer: wait`.
pub struct PrefersWait(pub bool);

impl<S: Sync> FromRequestParts<S> for PrefersWait {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let values = parts.headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        let mut preferences = values.flat_map(|value| value.split([',', ';'])).map(str::trim);
        let is_wait = |preference: &str| {
            let name = preference.split('=').next().unwrap_or_default().trim();
            name.eq_ignore_ascii_case("wait")
        };
        Ok(Self(preferences.any(is_wait)))
    }
}

impl Describe for PrefersWait {
    fn describe(operation: &mut Operation) {
        operation.header("prefer", false, "`wait` answers once the event is in the aggregates");
    }
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "EventIngestAnswer")]
pub struct IngestAnswer {
    /// Whether the aggregates follow later.
    pub queued: bool,
}

async fn ingest(
    caller: AppCaller<EventWrite>,
    State(log): State<EventLog>,
    PrefersWait(wait): PrefersWait,
    sent: SentEvent,
) -> Result<Created<IngestAnswer>> {
    let app = caller.app_id();
    let taken = keeping::oldest_taken(&log.db, app, sent.timestamp()).await?;
    let event = sent.admit(app, log.db.clock().now(), taken)?;
    let outcomes = log.store(app, vec![event]).await?;
    outcomes.into_iter().try_for_each(|outcome| outcome.and_then(accepted))?;
    Ok(Created(IngestAnswer { queued: !log.finish(app, wait).await? }))
}

/// An error for what could not be stored.
pub fn accepted(outcome: Outcome) -> Result<()> {
    match outcome {
        Outcome::Stored | Outcome::Repeated => Ok(()),
        Outcome::TooManyNames => {
            let problem = format!("is new, and the app already has {MOST_NAMES} event names");
            Err(Error::invalid("eventName", problem))
        }
    }
}

impl EventLog {
    /// Stores events of one app; what has an `Ok` is durable when this answers.
    pub(crate) async fn store(&self, app: AppId, events: Vec<ArrivedEvent>) -> Result<Vec<Result<Outcome>>> {
        let mut rows = Vec::with_capacity(events.len());
        for event in events {
            let name_is_known = self.known.contains(&self.db, app, &event.name).await?;
            rows.push(IngestRow { app, event, name_is_known });
        }
        let outcomes = self.ingestor.store_list(rows).await?;
        self.folder.wake();
        Ok(outcomes)
    }

    /// Waits for the fold if that was asked for; whether everything is in the aggregates.
    pub(crate) async fn finish(&self, app: AppId, wait: bool) -> Result<bool> {
        if wait { self.folder.settle(app).await } else { Ok(false) }
    }
}

/// 403 unless the request names the key's own app.
pub(crate) fn require_own_app(app: AppId, named: &str) -> Result<()> {
    if named.parse() == Ok(app) {
        return Ok(());
    }
    Err(Error::new(Code::Forbidden, "The appId is not that of the key's app."))
}
