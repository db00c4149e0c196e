//! The same events in one table with indexes, many rows to a prepared statement: what a team would write first.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use bench::{Result, database::Database};
use kernel::Ticker;
use rusqlite::{Connection, params_from_iter};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;

const TABLE: &str = "CREATE TABLE bare_events (id TEXT PRIMARY KEY, app_id TEXT NOT NULL, name TEXT NOT NULL, at TEXT NOT NULL, \
     ingest_id TEXT NOT NULL, parameters TEXT NOT NULL, UNIQUE (app_id, ingest_id)); \
     CREATE INDEX bare_events_by_time ON bare_events (app_id, name, at)";
const COLUMNS: usize = 6;
/// Connections that insert at once on PostgreSQL.
const CONNECTIONS: usize = 8;

/// A row of texts.
type Row = [String; COLUMNS];

fn rows(events: &[Value]) -> Vec<Row> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let row = |event: &Value| {
        let id = format!("row-{}", text(&event["ingestId"]));
        let named = ["appId", "eventName", "timestamp", "ingestId", "parameters"].map(|name| text(&event[name]));
        let [app, name, at, ingest_id, parameters] = named;
        [id, app, name, at, ingest_id, parameters]
    };
    events.iter().map(row).collect()
}

/// One statement for so many rows.
fn insert(rows: usize) -> String {
    let mut sql = "INSERT INTO bare_events VALUES ".to_owned();
    for row in 0..rows {
        let first = row * COLUMNS;
        let marks: Vec<String> = (1..=COLUMNS).map(|column| format!("${}", first + column)).collect();
        let _ = write!(sql, "{}({})", if row == 0 { "" } else { ", " }, marks.join(", "));
    }
    sql + " ON CONFLICT DO NOTHING"
}

/// Events a second, each batch durable when it counts.
pub fn on_sqlite(batches: &[Vec<Value>]) -> Result<f64> {
    let folder = tempfile::Builder::new().prefix("tenantry-bench-").tempdir()?;
    let file = Connection::open(folder.path().join("bare.db"))?;
    file.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 16000")?;
    file.execute_batch(TABLE)?;
    let batches: Vec<Vec<Row>> = batches.iter().map(|events| rows(events)).collect();
    let began = Ticker.now();
    for rows in &batches {
        file.prepare_cached(&insert(rows.len()))?.execute(params_from_iter(rows.iter().flatten()))?;
    }
    Ok(rate(&batches, Ticker.since(began)))
}

pub async fn on_postgres(database: &Database, batches: &[Vec<Value>]) -> Result<f64> {
    database.client().await?.batch_execute(&format!("DROP TABLE IF EXISTS bare_events; {TABLE}")).await?;
    let batches: Arc<Vec<Vec<Row>>> = Arc::new(batches.iter().map(|events| rows(events)).collect());
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let client = database.client().await?;
        let statement = client.prepare(&insert(batches.first().map_or(1, Vec::len))).await?;
        clients.push((client, statement));
    }
    let (began, mut tasks) = (Ticker.now(), JoinSet::new());
    for (number, (client, statement)) in clients.into_iter().enumerate() {
        let batches = Arc::clone(&batches);
        tasks.spawn(async move {
            for rows in batches.iter().skip(number).step_by(CONNECTIONS) {
                let values: Vec<&(dyn ToSql + Sync)> =
                    rows.iter().flatten().map(|text| text as &(dyn ToSql + Sync)).collect();
                client.execute(&statement, &values).await?;
            }
            Result::<()>::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(rate(&batches, Ticker.since(began)))
}

fn rate(batches: &[Vec<Row>], spent: Duration) -> f64 {
    batches.iter().map(Vec::len).sum::<usize>() as f64 / spent.as_secs_f64()
}
