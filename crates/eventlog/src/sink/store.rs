//! The SQL of sinks.

use std::time::Duration;

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Result, Timestamp};

use super::{FailingSink, Sink, json};

row! {
    Sink = "event_sinks" {
        app: "app_id",
        kind,
        sealed,
        shown_url,
        table_name,
        events as Json,
        since,
        made_at,
        fresh as Json,
        backfill as Json,
        failures,
        last_error,
        last_sent_at,
        created_at,
    }
}

const FIND: &str = sql!("SELECT ", Sink::COLUMNS, " FROM event_sinks WHERE app_id = $1");
const FIND_FOR_UPDATE: &str =
    sql!("UPDATE event_sinks SET created_at = created_at WHERE app_id = $1 RETURNING ", Sink::COLUMNS);
const EXISTS: &str = "SELECT 1 FROM event_sinks WHERE app_id = $1";
const SAVE: &str = "INSERT INTO event_sinks (app_id, kind, sealed, shown_url, table_name, events, since, made_at, fresh, \
     backfill, failures, last_error, last_sent_at, next_attempt_at, created_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, NULL, $11, $12, $13) \
     ON CONFLICT (app_id) DO UPDATE SET kind = excluded.kind, sealed = excluded.sealed, shown_url = excluded.shown_url, \
     table_name = excluded.table_name, events = excluded.events, since = excluded.since, made_at = excluded.made_at, \
     fresh = excluded.fresh, backfill = excluded.backfill, failures = 0, last_error = NULL, \
     last_sent_at = excluded.last_sent_at, next_attempt_at = excluded.next_attempt_at, created_at = excluded.created_at";
const SAVE_LANES: &str = "UPDATE event_sinks SET fresh = $2, backfill = $3 WHERE app_id = $1";
const SUCCEEDED: &str = "UPDATE event_sinks SET failures = 0, last_error = NULL, last_sent_at = $2, next_attempt_at = $2 \
                         WHERE app_id = $1";
const FAILED: &str = "UPDATE event_sinks SET failures = failures + 1, last_error = $2, next_attempt_at = $3 \
                      WHERE app_id = $1";
const DELETE: &str = "DELETE FROM event_sinks WHERE app_id = $1";
const DUE: &str = sql!("SELECT ", Sink::COLUMNS, " FROM event_sinks WHERE next_attempt_at <= $1 ORDER BY app_id");
const NEXT_RETRY: &str = "SELECT MIN(next_attempt_at) FROM event_sinks WHERE failures > 0";
/// Takes its row, so that no fold is written at the same time.
const REVISION: &str = "INSERT INTO event_folds (app_id, revision) VALUES ($1, 1) \
     ON CONFLICT (app_id) DO UPDATE SET revision = event_folds.revision + 1 RETURNING revision";
const FAILING: &str =
    "SELECT app_id, failures, last_error FROM event_sinks WHERE failures > 0 ORDER BY app_id LIMIT 100";
const ALL: &str = sql!("SELECT ", Sink::COLUMNS, " FROM event_sinks ORDER BY app_id LIMIT 1000");
const OLDEST: &str = "SELECT ingested_at FROM event_rows WHERE app_id = $1 AND revision IS NOT NULL \
                      AND (revision, id) > ($2, $3) ORDER BY revision, id LIMIT 1";

/// Between two attempts after a failure: doubled each time, up to five minutes.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

pub(super) fn find(tx: &mut Tx<'_>, app: AppId) -> Result<Option<Sink>> {
    tx.opt(FIND, &args![app])
}

/// Locked until the transaction ends.
pub(super) fn find_for_update(tx: &mut Tx<'_>, app: AppId) -> Result<Option<Sink>> {
    tx.opt(FIND_FOR_UPDATE, &args![app])
}

/// Whether the fold has to note its revision.
pub(crate) fn exists(tx: &mut Tx<'_>, app: AppId) -> Result<bool> {
    tx.exists(EXISTS, &args![app])
}

/// Rows that were written until here have been sent, or are not for the sink: a revision, and an id of that.
pub(crate) fn sent_until(tx: &mut Tx<'_>, app: AppId) -> Result<(i64, String)> {
    let sink = find(tx, app)?;
    Ok(sink.map_or((i64::MAX, String::new()), |sink| (sink.fresh.after.group, sink.fresh.after.id)))
}

pub(super) fn save(tx: &mut Tx<'_>, sink: &Sink) -> Result<()> {
    tx.run(
        SAVE,
        &args![
            sink.app,
            sink.kind,
            sink.sealed,
            sink.shown_url,
            sink.table_name,
            json(&sink.events),
            sink.since,
            sink.made_at,
            json(&sink.fresh),
            sink.backfill.as_ref().map(json),
            sink.last_sent_at,
            tx.now(),
            sink.created_at
        ],
    )
}

pub(super) fn save_lanes(tx: &mut Tx<'_>, sink: &Sink) -> Result<()> {
    tx.run(SAVE_LANES, &args![sink.app, json(&sink.fresh), sink.backfill.as_ref().map(json)])
}

pub(super) fn succeeded(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    tx.run(SUCCEEDED, &args![app, tx.now()])
}

pub(super) fn failed(tx: &mut Tx<'_>, app: AppId, error: &str) -> Result<()> {
    let Some(sink) = find_for_update(tx, app)? else { return Ok(()) };
    let doublings = u32::try_from(sink.failures).unwrap_or(u32::MAX).min(16);
    let pause = FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
    tx.run(FAILED, &args![app, error, tx.now().plus(pause)])
}

pub(super) fn delete(tx: &mut Tx<'_>, app: AppId) -> Result<bool> {
    Ok(tx.exec(DELETE, &args![app])? > 0)
}

/// Those that do not wait for another attempt. One per app at most, and made by operators: there are few.
pub(super) fn due(tx: &mut Tx<'_>) -> Result<Vec<Sink>> {
    let now = tx.now();
    tx.all(DUE, &args![now])
}

pub(super) fn next_retry(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    Ok(tx.one::<(Option<Timestamp>,)>(NEXT_RETRY, &[])?.0)
}

/// The revision of the fold, which is not folded further until the transaction ends.
pub(super) fn revision(tx: &mut Tx<'_>, app: AppId) -> Result<i64> {
    Ok(tx.one::<(i64,)>(REVISION, &args![app])?.0)
}

pub(super) fn failing(tx: &mut Tx<'_>) -> Result<Vec<FailingSink>> {
    let rows: Vec<(AppId, i64, Option<String>)> = tx.all(FAILING, &[])?;
    let view = |(app, failures, error): (AppId, i64, Option<String>)| FailingSink {
        app,
        failures,
        error: error.unwrap_or_default(),
    };
    Ok(rows.into_iter().map(view).collect())
}

pub(super) fn oldest_unsent(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    let mut oldest = None;
    for sink in tx.all::<Sink>(ALL, &[])? {
        let after = &sink.fresh.after;
        let waits = tx.opt::<(Timestamp,)>(OLDEST, &args![sink.app, after.group, after.id])?;
        oldest = oldest.into_iter().chain(waits.map(|(at,)| at)).min();
    }
    Ok(oldest)
}
