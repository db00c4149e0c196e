//! Sends one batch.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use kernel::{AppId, Error, Result, Timestamp};
use serde::Serialize;
use spine::outbound::{BodyLimit, Limits, Method, Outbound, Request, Url, header::HeaderMap};

use super::{Credentials, Sink, SinkKind, batches::Outgoing, rules::DEFAULT_TABLE};

const LIMITS: Limits =
    Limits { total: Duration::from_secs(30), connect: Duration::from_secs(10), body: BodyLimit::Beginning(64 * 1024) };
/// Characters of an answer that operators see.
const LONGEST_SAID: usize = 300;

/// A row of the receiver's table.
#[derive(Serialize)]
struct Line<'a> {
    app_id: AppId,
    event_id: String,
    event_name: &'a str,
    timestamp: Timestamp,
    ingested_at: Timestamp,
    ingest_source: Option<&'a str>,
    ingest_id: Option<&'a str>,
    parameters: &'a str,
}

fn lines(app: AppId, outgoing: &Outgoing) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    for event in &outgoing.events {
        let line = Line {
            app_id: app,
            event_id: event.kept.id.to_string(),
            event_name: &event.name,
            timestamp: event.kept.at,
            ingested_at: event.kept.ingested_at,
            ingest_source: event.kept.source.as_deref(),
            ingest_id: event.kept.ingest_id.as_deref(),
            parameters: &event.kept.parameters,
        };
        serde_json::to_writer(&mut lines, &line).map_err(Error::internal)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// The reason in words when the receiver did not take it.
pub(super) async fn send(
    outbound: &Outbound,
    sink: &Sink,
    credentials: &Credentials,
    outgoing: &Outgoing,
) -> Result<std::result::Result<(), String>> {
    let mut url = Url::parse(&credentials.url).map_err(Error::internal)?;
    let mut headers = HeaderMap::new();
    for (name, value) in &credentials.headers {
        let name = HeaderName::try_from(name.as_str()).map_err(Error::internal)?;
        headers.insert(name, HeaderValue::try_from(value.as_str()).map_err(Error::internal)?);
    }
    headers.insert("content-type", HeaderValue::from_static("application/x-ndjson"));
    match sink.kind {
        SinkKind::ClickHouse => {
            let query =
                format!("INSERT INTO {} FORMAT JSONEachRow", sink.table_name.as_deref().unwrap_or(DEFAULT_TABLE));
            url.query_pairs_mut()
                .append_pair("query", &query)
                .append_pair("insert_deduplicate", "1")
                .append_pair("insert_deduplication_token", &outgoing.batch.id)
                // Whole or not at all, and answered only once it is stored.
                .append_pair("async_insert", "0")
                .append_pair("wait_end_of_query", "1")
                .append_pair("date_time_input_format", "best_effort");
        }
        SinkKind::Http => {
            headers
                .insert("idempotency-key", HeaderValue::try_from(outgoing.batch.id.as_str()).map_err(Error::internal)?);
        }
    }
    let request = Request { method: Method::POST, url, headers, body: Bytes::from(lines(sink.app, outgoing)?) };
    Ok(match outbound.send(request, &LIMITS).await {
        Ok(answer) if answer.status.is_success() && !answer.headers.contains_key("x-clickhouse-exception-code") => {
            Ok(())
        }
        Ok(answer) => {
            let said: String =
                String::from_utf8_lossy(&answer.body).chars().filter(|c| !c.is_control()).take(LONGEST_SAID).collect();
            Err(format!("answered {}: {said}", answer.status.as_u16()))
        }
        Err(failure) => Err(failure.to_string()),
    })
}
