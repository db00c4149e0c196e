//! `GET /admin/apps/{app_id}/events/export`: all events of an app, a part at a time.
//!
//! A part is one answer of bounded size and names the cursor of the next one, so that an export can be interrupted
//! anywhere and resumed. Events come by name, then by time.

mod formats;
mod parts;

use ::store::Tx;
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, StatusCode, header};
use kernel::{AppId, Error, Result, Timestamp, Words};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::{apps, callers::Operator};
use web::{Describe, Operation, Params, Path, Routes, State};

use crate::EventLog;
use formats::ExportFormat;
use parts::{Cursor, WantedEvents};

/// Names where the next part begins; missing on the last one.
const NEXT_CURSOR: HeaderName = HeaderName::from_static("x-next-cursor");
/// How many events a part has.
const PART_EVENTS: HeaderName = HeaderName::from_static("x-part-events");
/// About how many all parts have together; only on the first one.
const TOTAL_EVENTS: HeaderName = HeaderName::from_static("x-total-events");

pub(crate) fn routes() -> Routes<EventLog> {
    Routes::new("Event log")
        .get("/admin/apps/{app_id}/events/export", export, "Export an app's events, a part at a time")
        .description(
            "Answers up to 10,000 events, or about 8 MiB. While there are more, the header `x-next-cursor` has the `cursor` \
             of the next part; parts of JSON lines and of CSV, whose first one has a header line, can be put together. \
             `x-part-events` tells how many events a part has, and on the first part `x-total-events` about how many \
             there are in all. `from` and `to` are inclusive.",
        )
}

/// The query of an export.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ExportQuery {
    /// JSON lines unless given.
    format: Option<ExportFormat>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    /// Of the answer before.
    cursor: Option<Words>,
}

/// A part of an export.
pub struct ExportedPart(Response);

impl IntoResponse for ExportedPart {
    fn into_response(self) -> Response {
        self.0
    }
}

impl Describe for ExportedPart {
    fn describe(operation: &mut Operation) {
        operation.raw_answers(StatusCode::OK, &ExportFormat::ALL.map(ExportFormat::media_type));
    }
}

async fn export(
    _: Operator,
    State(log): State<EventLog>,
    Path(app): Path<AppId>,
    Params(query): Params<ExportQuery>,
) -> Result<ExportedPart> {
    let (from, to) = (query.from.unwrap_or(Timestamp::MIN), query.to.unwrap_or(Timestamp::MAX));
    if from > to {
        return Err(Error::invalid("from", "must not be after to"));
    }
    let cursor = match &query.cursor {
        Some(text) => {
            Some(Cursor::parse(text).ok_or_else(|| Error::invalid("cursor", "must be one that an export gave"))?)
        }
        None => None,
    };
    let is_first = cursor.is_none();
    let wanted = WantedEvents { app, from: from.as_micros(), to: to.as_micros(), cursor: cursor.unwrap_or_default() };
    let read = move |tx: &mut Tx<'_>| {
        apps::get(tx, app)?;
        let total = is_first.then(|| parts::about_how_many(tx, app, (wanted.from, wanted.to))).transpose()?;
        Ok((parts::read(tx, &wanted)?, total))
    };
    let (part, total) = log.db.scan(read).await?;
    let format = query.format.unwrap_or_default();
    let bytes = format.write(app, &part.events, is_first)?;
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    headers.insert(PART_EVENTS, part.events.len().into());
    if let Some(total) = total {
        headers.insert(TOTAL_EVENTS, total.into());
    }
    if let Some(next) = part.next {
        headers.insert(NEXT_CURSOR, HeaderValue::from_str(&next.to_string()).map_err(Error::internal)?);
    }
    Ok(ExportedPart(response))
}
