//! `/admin/apps/{app_id}/events/sink`.

use ::store::Tx;
use kernel::{AppId, Error, Result, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use tenancy::{apps, callers::Operator};
use vault::Place;
use web::{Json, Path, Routes, State, Success, Valid};

use super::{
    Credentials, Lane, Position, Sink, SinkKind, place,
    rules::{NewSink, shown},
    store,
};
use crate::{
    EventLog,
    facts::{EventSinkRemoved, EventSinkSet},
};

pub(crate) fn routes() -> Routes<EventLog> {
    Routes::new("Event log")
        .get("/admin/apps/{app_id}/events/sink", get, "Get where an app's events are sent as well")
        .put("/admin/apps/{app_id}/events/sink", put, "Send an app's events to another engine as well")
        .description(
            "As JSON lines in batches, at least once; a batch has an id by which a repeat is recognised \
             (`insert_deduplication_token` of ClickHouse, `Idempotency-Key` of others). With another address or another `since` than \
             before it begins again from there.",
        )
        .delete("/admin/apps/{app_id}/events/sink", delete, "Stop sending an app's events elsewhere")
}

/// Where an app's events are sent as well.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EventSink {
    kind: SinkKind,
    /// Without credentials.
    url: String,
    table: Option<String>,
    events: Vec<String>,
    since: Timestamp,
    /// Whether events from before it was set up are still being sent.
    backfilling: bool,
    /// Attempts that failed since the last success.
    failures: i64,
    last_error: Option<String>,
    last_sent_at: Option<Timestamp>,
    created_at: Timestamp,
}

impl From<Sink> for EventSink {
    fn from(sink: Sink) -> Self {
        Self {
            kind: sink.kind,
            url: sink.shown_url,
            table: sink.table_name,
            events: sink.events,
            since: sink.since,
            backfilling: sink.backfill.is_some(),
            failures: sink.failures,
            last_error: sink.last_error,
            last_sent_at: sink.last_sent_at,
            created_at: sink.created_at,
        }
    }
}

fn none() -> Error {
    Error::not_found("event sink")
}

async fn get(_: Operator, State(log): State<EventLog>, Path(app): Path<AppId>) -> Result<Json<EventSink>> {
    let read = move |tx: &mut Tx<'_>| {
        apps::get(tx, app)?;
        store::find(tx, app)?.ok_or_else(none)
    };
    Ok(Json(log.db.read(read).await?.into()))
}

async fn put(
    caller: Operator,
    State(log): State<EventLog>,
    Path(app): Path<AppId>,
    Valid(new): Valid<NewSink>,
) -> Result<Json<EventSink>> {
    let keyring = log.tenancy.keyring.clone();
    let set = log.db.by(&caller).write(move |tx| {
        apps::hold(tx, app)?;
        let headers = new.headers.iter().map(|(name, value)| (name.clone(), value.expose().clone())).collect();
        let credentials = Credentials { url: new.url.to_string(), headers };
        let json = serde_json::to_vec(&credentials).map_err(Error::internal)?;
        let name = app.to_string();
        let sealed = keyring.seal(&Place { app: Some(app), ..place(&name) }, &json);
        let (now, shown_url) = (tx.now(), shown(&new.url));
        let mut sink = Sink {
            app,
            kind: new.kind,
            sealed,
            shown_url,
            table_name: new.table.as_ref().map(ToString::to_string),
            events: new.events.iter().map(ToString::to_string).collect(),
            since: new.since.unwrap_or(now),
            made_at: store::revision(tx, app)?,
            fresh: Lane::default(),
            backfill: None,
            failures: 0,
            last_error: None,
            last_sent_at: None,
            created_at: now,
        };
        match store::find_for_update(tx, app)? {
            Some(before) if has_same_target(&before, &sink) && new.since.is_none_or(|since| since == before.since) => {
                sink = Sink {
                    made_at: before.made_at,
                    fresh: before.fresh,
                    backfill: before.backfill,
                    last_sent_at: before.last_sent_at,
                    created_at: before.created_at,
                    since: before.since,
                    ..sink
                };
            }
            _ => {
                sink.fresh.after = Position { group: sink.made_at, ..Position::default() };
                sink.backfill = (sink.since < now).then(Lane::default);
            }
        }
        store::save(tx, &sink)?;
        spine::emit(tx, app, &EventSinkSet { kind: sink.kind, url: sink.shown_url.clone() })?;
        Ok(sink)
    });
    Ok(Json(set.await?.into()))
}

/// Whether only credentials or names were changed.
fn has_same_target(before: &Sink, after: &Sink) -> bool {
    let target = |sink: &Sink| (sink.kind, sink.shown_url.clone(), sink.table_name.clone());
    target(before) == target(after)
}

async fn delete(caller: Operator, State(log): State<EventLog>, Path(app): Path<AppId>) -> Result<Success> {
    let removed = log.db.by(&caller).write(move |tx| {
        apps::hold(tx, app)?;
        if !store::delete(tx, app)? {
            return Err(none());
        }
        spine::emit(tx, app, &EventSinkRemoved {})
    });
    removed.await?;
    Ok(Success)
}
