//! `GET /admin/apps/{app_id}/events/tail`: an app's events as they are folded, for whoever watches at a terminal.
//!
//! Each stream looks every half second for what is new among the last seconds, on whichever node took it in; while the app
//! has no new fold, that is one row. Somebody who watches sees events within two seconds; a burst of more than some hundred
//! is thinned out, and what was folded too late is left out. What must arrive is exported.

use std::{
    collections::{HashSet, VecDeque},
    convert::Infallible,
    time::Duration,
};

use ::store::{Db, Tx, args, sql};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use futures_util::stream;
use http::{HeaderName, HeaderValue, StatusCode, header};
use kernel::{AppId, Label, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::{apps, callers::Operator};
use tokio::{sync::watch, time::Interval};
use web::{Describe, Operation, Params, Path, Routes, State};

use crate::{EventLog, LoggedEventId, fold, names, questions::RawEvent, storage::KeptEvent};

/// Between two looks.
const PACE: Duration = Duration::from_millis(500);
/// How far back each look goes, in milliseconds: events of other nodes become visible out of order.
const WINDOW: u128 = 10_000;
/// Events of one look; the newest of more are shown.
const MOST: i64 = 500;
/// Looks without an event after which a comment tells that the stream is alive.
const QUIET: u32 = 30;

pub(crate) fn routes() -> Routes<EventLog> {
    Routes::new("Event log")
        .get("/admin/apps/{app_id}/events/tail", tail, "Watch an app's events as they arrive")
        // Tools that try every operation would wait for its end.
        .hidden()
}

/// The query of a tail.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct TailQuery {
    /// Only events of this name; a `*` at its end stands for any ending.
    event: Option<Label>,
}

async fn tail(
    _: Operator,
    State(log): State<EventLog>,
    Path(app): Path<AppId>,
    Params(TailQuery { event }): Params<TailQuery>,
) -> Result<TailStream> {
    log.db.read(move |tx| apps::get(tx, app)).await?;
    let mut tail = Tail {
        db: log.db.clone(),
        app,
        wanted: event.map(Into::into),
        folded: None,
        seen: HashSet::new(),
        unsent: VecDeque::new(),
        pace: tokio::time::interval(PACE),
        quiet: 0,
        closing: log.closing.subscribe(),
    };
    // What is there already is not news.
    tail.look().await?;
    tail.unsent = VecDeque::from([COMMENT.to_owned()]);
    Ok(TailStream(tail))
}

const COMMENT: &str = ":\n\n";

struct Tail {
    db: Db,
    app: AppId,
    wanted: Option<String>,
    /// The last fold whose events were looked at.
    folded: Option<i64>,
    /// What the last look found.
    seen: HashSet<LoggedEventId>,
    unsent: VecDeque<String>,
    pace: Interval,
    quiet: u32,
    closing: watch::Receiver<bool>,
}

/// By the key, over what all apps sent in the last seconds: an index on the app would lead to everything that it has, which
/// is why the condition is written so that none can be used for it.
const RECENT: &str = sql!(
    "SELECT ",
    KeptEvent::COLUMNS,
    " FROM event_rows WHERE id > $1 AND app_id || '' = $2 ORDER BY id DESC LIMIT $3"
);

impl Tail {
    /// Puts what is new where it is sent from, in the order of arrival.
    async fn look(&mut self) -> Result<()> {
        let now: LoggedEventId = self.db.ids().next();
        let since = LoggedEventId::from_u128(now.as_u128().saturating_sub(WINDOW << 80));
        let (app, folded) = (self.app, self.folded);
        let Some((folded, recent)) = self.db.scan(move |tx| recent(tx, app, since, folded)).await? else {
            return Ok(());
        };
        let ids: HashSet<LoggedEventId> = recent.iter().map(RawEvent::id).collect();
        for event in recent.iter().rev().filter(|event| !self.seen.contains(&event.id())) {
            if self.is_wanted(event.name()) {
                let json = serde_json::to_string(event).map_err(kernel::Error::internal)?;
                self.unsent.push_back(format!("id: {}\ndata: {json}\n\n", event.id()));
            }
        }
        (self.folded, self.seen) = (Some(folded), ids);
        Ok(())
    }

    fn is_wanted(&self, name: &str) -> bool {
        let Some(wanted) = &self.wanted else { return true };
        match wanted.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == wanted,
        }
    }

    /// `None` when the stream ends.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(frame) = self.unsent.pop_front() {
                self.quiet = 0;
                return Some(frame);
            }
            tokio::select! {
                _ = self.pace.tick() => {}
                _ = self.closing.wait_for(|closing| *closing) => return None,
            }
            self.look().await.ok()?;
            self.quiet += 1;
            if self.unsent.is_empty() && self.quiet >= QUIET {
                self.unsent.push_back(COMMENT.to_owned());
            }
        }
    }
}

/// The last fold, and the events of the last seconds; `None` when it is the one that was known.
fn recent(
    tx: &mut Tx<'_>,
    app: AppId,
    since: LoggedEventId,
    known: Option<i64>,
) -> Result<Option<(i64, Vec<RawEvent>)>> {
    // Read before the rows: what is folded meanwhile is found by the next look.
    let folded = fold::revision(tx, app)?;
    if known == Some(folded) {
        return Ok(None);
    }
    let rows: Vec<KeptEvent> = tx.all(RECENT, &args![since, app, MOST])?;
    let ids: Vec<i64> = rows.iter().map(|row| row.name).collect();
    let names = names::by_id(tx, app, &ids)?;
    let raw = |row: KeptEvent| {
        let name = names.get(&row.name).cloned().unwrap_or_default();
        RawEvent::of(app, &name, row)
    };
    Ok(Some((folded, rows.into_iter().map(raw).collect::<Result<_>>()?)))
}

/// 200 with server-sent events that do not end.
struct TailStream(Tail);

impl IntoResponse for TailStream {
    fn into_response(self) -> Response {
        let frames = stream::unfold(self.0, |mut tail| async {
            let frame = tail.next().await?;
            Some((Ok::<_, Infallible>(frame), tail))
        });
        let mut response = Response::new(Body::from_stream(frames));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // nginx would hold back what is not much.
        headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
        response
    }
}

impl Describe for TailStream {
    fn describe(operation: &mut Operation) {
        operation.raw_answer(StatusCode::OK, "text/event-stream");
    }
}

#[cfg(test)]
mod tests;
