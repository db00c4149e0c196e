//! `GET /event-log/audit/workspace/download`: a workspace's entries as a file, a part at a time.

use ::store::Tx;
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, StatusCode, header};
use kernel::{Error, Result, Timestamp, Words};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use tenancy::callers::{OwnerOrAdmin, UserCaller};
use web::{Describe, Operation, Params, State};

use super::{
    http::AuditEntry,
    trail::{Before, FoundEntry, WantedEntries, Whose, find},
};
use crate::{EventLog, csv, scans::Allowance};

/// Entries of one part.
const PART: usize = 2_000;
/// Names where the next part begins; missing on the last one.
const NEXT_CURSOR: HeaderName = HeaderName::from_static("x-next-cursor");

/// The form of a download.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrailFormat {
    /// For spreadsheets: who and when in columns, the rest as JSON in the last one.
    #[default]
    Csv,
    /// Each line as `GET /event-log/audit/workspace` lists it.
    Jsonl,
}

impl TrailFormat {
    fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv",
            Self::Jsonl => "application/x-ndjson",
        }
    }

    fn attachment(self) -> &'static str {
        match self {
            Self::Csv => "attachment; filename=\"audit-trail.csv\"",
            Self::Jsonl => "attachment; filename=\"audit-trail.jsonl\"",
        }
    }

    fn write(self, entries: Vec<FoundEntry>, is_first: bool) -> Result<Vec<u8>> {
        match self {
            Self::Csv => table(entries, is_first).map(String::into_bytes),
            Self::Jsonl => lines(entries),
        }
    }
}

/// The query of a download.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct DownloadQuery {
    /// CSV unless given.
    format: Option<TrailFormat>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    /// Of the answer before.
    cursor: Option<Words>,
}

/// A part of a download.
pub struct TrailPart(Response);

impl IntoResponse for TrailPart {
    fn into_response(self) -> Response {
        self.0
    }
}

impl Describe for TrailPart {
    fn describe(operation: &mut Operation) {
        operation.raw_answers(StatusCode::OK, &[TrailFormat::Csv, TrailFormat::Jsonl].map(TrailFormat::media_type));
    }
}

pub(super) async fn download(
    UserCaller(user, _): UserCaller<OwnerOrAdmin>,
    State(log): State<EventLog>,
    Params(query): Params<DownloadQuery>,
) -> Result<TrailPart> {
    let (from, to) = (query.from.unwrap_or(Timestamp::MIN), query.to.unwrap_or(Timestamp::MAX));
    if from > to {
        return Err(Error::invalid("from", "must not be after to"));
    }
    let before = query
        .cursor
        .as_ref()
        .map(|text| Before::parse(text).ok_or_else(|| Error::invalid("cursor", "must be one that a download gave")));
    let before = before.transpose()?;
    let is_first = before.is_none();
    let whose = Whose::Workspace(user.tenant());
    let wanted = WantedEntries { before, limit: PART, ..WantedEntries::all(whose, from, to) };
    let app = user.app();
    let ask = move |tx: &mut Tx<'_>, allowance: &Allowance| find(tx, app, &wanted, allowance);
    let found = log.scans.ask(&log.db, app, ask).await?;
    let next = found.last().filter(|_| found.len() == PART).map(|last| Before { at: last.at, id: last.id });
    let format = query.format.unwrap_or_default();
    let mut response = Response::new(Body::from(format.write(found, is_first)?));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static(format.attachment()));
    if let Some(next) = next {
        headers.insert(NEXT_CURSOR, HeaderValue::from_str(&next.to_string()).map_err(Error::internal)?);
    }
    Ok(TrailPart(response))
}

fn lines(entries: Vec<FoundEntry>) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    for entry in entries {
        serde_json::to_writer(&mut lines, &AuditEntry::from(entry)).map_err(Error::internal)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// The members of an entry that have a column of their own.
const NAMED: [(&str, &str); 5] = [
    ("actor_type", "actorType"),
    ("actor_id", "actorId"),
    ("actor_name", "actorName"),
    ("ip", "ip"),
    ("request_id", "requestId"),
];

fn table(entries: Vec<FoundEntry>, is_first: bool) -> Result<String> {
    let mut text = String::new();
    if is_first {
        let named = NAMED.map(|(column, _)| column).join(",");
        text += &format!("timestamp,event_name,{named},details,entry_id\r\n");
    }
    for FoundEntry { at, name, id, mut extracted } in entries {
        let mut cells = vec![at.to_string(), name];
        cells.extend(NAMED.map(|(_, member)| plain(extracted.remove(member))));
        cells.push(details(&extracted)?);
        cells.push(id.to_string());
        let cells: Vec<String> = cells.iter().map(|cell| csv::cell(&csv::without_formula(cell))).collect();
        text += &cells.join(",");
        text += "\r\n";
    }
    Ok(text)
}

fn plain(value: Option<Value>) -> String {
    match value {
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

fn details(rest: &Map<String, Value>) -> Result<String> {
    serde_json::to_string(rest).map_err(Error::internal)
}
