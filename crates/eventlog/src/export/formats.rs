//! Events as JSON lines, CSV or Parquet.

use std::sync::Arc;

use kernel::{AppId, Error, Result};
use parquet::{
    basic::Compression,
    data_type::{ByteArray, ByteArrayType, Int64Type},
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::parts::ExportedEvent;
use crate::csv;

/// The form of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExportFormat {
    /// Each line as `GET /event-log/events/{event_id}` answers it, and as `POST /event-log` takes it.
    #[default]
    Jsonl,
    Csv,
    Parquet,
}

impl ExportFormat {
    pub const ALL: [Self; 3] = [Self::Jsonl, Self::Csv, Self::Parquet];

    pub fn media_type(self) -> &'static str {
        match self {
            Self::Jsonl => "application/x-ndjson",
            Self::Csv => "text/csv",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    /// `is_first` for the first part of an export.
    pub fn write(self, app: AppId, events: &[ExportedEvent], is_first: bool) -> Result<Vec<u8>> {
        match self {
            Self::Jsonl => json_lines(app, events),
            Self::Csv => Ok(table(app, events, is_first).into_bytes()),
            Self::Parquet => parquet(app, events).map_err(Error::internal),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    id: String,
    app_id: AppId,
    event_name: &'a str,
    timestamp: kernel::Timestamp,
    ingested_at: kernel::Timestamp,
    parameters: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ingest_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ingest_source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chain: Option<ChainPlace<'a>>,
}

#[derive(Serialize)]
struct ChainPlace<'a> {
    position: i64,
    digest: &'a str,
}

fn json_lines(app: AppId, events: &[ExportedEvent]) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    for event in events {
        let line = Line {
            id: event.kept.id.to_string(),
            app_id: app,
            event_name: &event.name,
            timestamp: event.kept.at,
            ingested_at: event.kept.ingested_at,
            parameters: serde_json::from_str(&event.kept.parameters).map_err(Error::internal)?,
            ingest_id: event.kept.ingest_id.as_deref(),
            ingest_source: event.kept.source.as_deref(),
            chain: event.chain.as_ref().map(|(position, digest)| ChainPlace { position: *position, digest }),
        };
        serde_json::to_writer(&mut lines, &line).map_err(Error::internal)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

const COLUMNS: [&str; 10] = [
    "app_id",
    "event_id",
    "event_name",
    "timestamp",
    "ingested_at",
    "ingest_source",
    "ingest_id",
    "parameters",
    "chain_position",
    "chain_digest",
];

fn table(app: AppId, events: &[ExportedEvent], is_first: bool) -> String {
    let mut text = String::new();
    if is_first {
        text += &COLUMNS.join(",");
        text += "\r\n";
    }
    let app = app.to_string();
    for event in events {
        let (position, digest) = match &event.chain {
            Some((position, digest)) => (position.to_string(), digest.as_str()),
            None => (String::new(), ""),
        };
        let cells = [
            app.as_str(),
            &event.kept.id.to_string(),
            &event.name,
            &event.kept.at.to_string(),
            &event.kept.ingested_at.to_string(),
            event.kept.source.as_deref().unwrap_or_default(),
            event.kept.ingest_id.as_deref().unwrap_or_default(),
            &event.kept.parameters,
            &position,
            digest,
        ];
        text += &cells.map(csv::cell).join(",");
        text += "\r\n";
    }
    text
}

const SCHEMA: &str = "message event {
    required binary app_id (UTF8);
    required binary event_id (UTF8);
    required binary event_name (UTF8);
    required int64 timestamp (TIMESTAMP(MICROS,true));
    required int64 ingested_at (TIMESTAMP(MICROS,true));
    optional binary ingest_source (UTF8);
    optional binary ingest_id (UTF8);
    required binary parameters (JSON);
    optional int64 chain_position;
    optional binary chain_digest (UTF8);
}";

/// A whole file, whose columns are those of CSV.
fn parquet(app: AppId, events: &[ExportedEvent]) -> parquet::errors::Result<Vec<u8>> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let app = app.to_string();
    let mut group = file.next_row_group()?;
    for column in COLUMNS {
        let text = |event: &ExportedEvent| match column {
            "app_id" => Some(app.clone()),
            "event_id" => Some(event.kept.id.to_string()),
            "event_name" => Some(event.name.clone()),
            "ingest_source" => event.kept.source.clone(),
            "ingest_id" => event.kept.ingest_id.clone(),
            "parameters" => Some(event.kept.parameters.clone()),
            _ => event.chain.as_ref().map(|(_, digest)| digest.clone()),
        };
        let number = |event: &ExportedEvent| match column {
            "timestamp" => Some(event.kept.at.as_micros()),
            "ingested_at" => Some(event.kept.ingested_at.as_micros()),
            _ => event.chain.as_ref().map(|(position, _)| *position),
        };
        let Some(mut writer) = group.next_column()? else { break };
        if matches!(column, "timestamp" | "ingested_at" | "chain_position") {
            let values: Vec<Option<i64>> = events.iter().map(number).collect();
            let present: Vec<i64> = values.iter().flatten().copied().collect();
            writer.typed::<Int64Type>().write_batch(&present, Some(&levels(&values)), None)?;
        } else {
            let values: Vec<Option<String>> = events.iter().map(text).collect();
            let present: Vec<ByteArray> = values.iter().flatten().map(|text| ByteArray::from(text.as_str())).collect();
            writer.typed::<ByteArrayType>().write_batch(&present, Some(&levels(&values)), None)?;
        }
        writer.close()?;
    }
    group.close()?;
    file.into_inner()
}

/// Which values of an optional column are there.
fn levels<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|value| i16::from(value.is_some())).collect()
}

#[cfg(test)]
mod tests {
    use kernel::Timestamp;
    use parquet::{
        file::reader::{FileReader as _, SerializedFileReader},
        record::RowAccessor as _,
    };

    use super::*;
    use crate::{LoggedEventId, storage::KeptEvent};

    fn event(number: u128, ingest_id: Option<&str>, chain: Option<(i64, String)>) -> ExportedEvent {
        let kept = KeptEvent {
            id: LoggedEventId::from_u128(number),
            name: 1,
            at: Timestamp::from_seconds(5),
            ingested_at: Timestamp::from_seconds(6),
            source: None,
            ingest_id: ingest_id.map(str::to_owned),
            audited: false,
            parameters: r#"{"a":"x,\"y\""}"#.to_owned(),
            revision: None,
        };
        ExportedEvent { kept, name: "order \"placed\"".to_owned(), chain }
    }

    #[test]
    fn cells_of_csv_are_quoted_where_they_have_to_be() {
        let text = table(AppId::from_u128(1), &[event(1, Some("a,b\n\"c\""), None)], true);
        let (header, line) = text.split_once("\r\n").expect("two lines");
        assert_eq!(header, COLUMNS.join(","));
        let end = "\"order \"\"placed\"\"\",1970-01-01T00:00:05.000Z,1970-01-01T00:00:06.000Z,,\"a,b\n\"\"c\"\"\",\
                   \"{\"\"a\"\":\"\"x,\\\"\"y\\\"\"\"\"}\",,\r\n";
        assert!(line.ends_with(end), "{line}");
        assert_eq!(table(AppId::from_u128(1), &[], false), "");
    }

    #[test]
    fn a_parquet_file_reads_back() {
        let events = [event(1, None, Some((3, "d".to_owned()))), event(2, Some("i"), None)];
        let bytes = parquet(AppId::from_u128(1), &events).expect("a file");
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).expect("a file");
        let rows: Vec<_> = reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].get_string(2).expect("a name"), "order \"placed\"");
        assert_eq!(rows[0].get_timestamp_micros(3).expect("a time"), 5_000_000);
        assert_eq!(
            (rows[0].get_long(8).expect("a place"), rows[1].get_string(6).expect("an id")),
            (3, &"i".to_owned())
        );
        assert!(rows[0].get_string(6).is_err() && rows[1].get_long(8).is_err());
        assert!(parquet(AppId::from_u128(1), &[]).is_ok());
    }
}
