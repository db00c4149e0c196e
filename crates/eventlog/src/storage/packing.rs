//! Turns rows into blocks, in the background.
//!
//! The fold counts the rows of each name. Where there are enough, the rows of a month are taken once they fill a block, or
//! a day after they came if they are not so few that they are better off as rows. What has not been sent to the app's sink
//! stays a row, since sinks follow the order in which rows were written.
//!
//! A block is worked out among the readers and written in one short transaction, which takes its rows away and fails when
//! somebody has changed rows of that name since.

use std::{collections::HashMap, time::Duration};

use ::store::{Db, Tx, args, row, sql};
use kernel::{AppId, Result, Timestamp};
use spine::{Job, Worked};

use super::{KeptEvent, Series, blocks::WrittenBlock};
use crate::{grain::Grain, sink};

/// Events of a full block: its rows are deleted in some milliseconds.
const FULL: usize = 2_048;
/// Fewer stay rows. Also in the index on `event_series`.
const LEAST: i64 = 256;
/// Of a block, as JSON, unless a single event has more.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// Rows that came later may still be followed by a tail.
const YOUNG: Duration = Duration::from_mins(1);
/// After this time a block need not be full.
const OLD: Duration = Duration::from_hours(24);
/// Names are looked at again after this time, and for the first time: nodes of an earlier release, which know no blocks,
/// have gone by then.
const PAUSE: Duration = Duration::from_mins(10);

/// The rows of a name.
struct Rows {
    app: AppId,
    name: i64,
    /// Moves when rows are changed.
    version: i64,
}

row! { Rows = "event_series" { app: "app_id", name: "name_id", version } }

const COUNT: &str = "INSERT INTO event_series (app_id, name_id, unpacked, version, look_at) \
     SELECT app_id, name_id, unpacked, 0, look_at FROM {rows} WHERE true \
     ON CONFLICT (app_id, name_id) DO UPDATE SET unpacked = event_series.unpacked + excluded.unpacked";
const MOVE: &str = "UPDATE event_series SET version = version + 1 WHERE app_id = $1 AND name_id = $2";
const DELETED: &str = "UPDATE event_series SET unpacked = unpacked - $3 WHERE app_id = $1 AND name_id = $2";
const DUE: &str = sql!(
    "SELECT ",
    Rows::COLUMNS,
    " FROM event_series WHERE unpacked >= 256 AND look_at <= $1 ORDER BY look_at LIMIT 1"
);
const LOOK_AGAIN: &str = "UPDATE event_series SET look_at = $3 WHERE app_id = $1 AND name_id = $2";
const TAKE: &str = "UPDATE event_series SET unpacked = unpacked - $4, version = version + 1 \
                    WHERE app_id = $1 AND name_id = $2 AND version = $3";
const NEXT: &str = "SELECT happened_at FROM event_rows WHERE app_id = $1 AND name_id = $2 AND happened_at >= $3 \
                    ORDER BY happened_at LIMIT 1";
const RIPE: &str = sql!(
    "SELECT ",
    KeptEvent::COLUMNS,
    " FROM event_rows WHERE app_id = $1 AND name_id = $2 AND happened_at >= $3 AND happened_at < $4 \
      AND ingested_at <= $5 AND (revision IS NULL OR (revision, id) <= ($6, $7)) ORDER BY happened_at, id LIMIT $8"
);
const DELETE: &str = "DELETE FROM event_rows WHERE app_id = $1 AND id = ANY($2)";

/// Adds what a fold has written, by name.
pub fn count_rows(tx: &mut Tx<'_>, app: AppId, rows: &HashMap<i64, i64>) -> Result<()> {
    let first_look = tx.now().plus(PAUSE);
    let mut rows: Vec<_> = rows.iter().map(|(name, count)| (app, *name, *count, first_look)).collect();
    // Always in the same order, since rows are locked in it.
    rows.sort_unstable_by_key(|(_, name, ..)| *name);
    tx.insert_all(COUNT, ["app_id", "name_id", "unpacked", "look_at"], &rows)
}

/// Before rows of a name are changed: a block that was worked out from them is not written any more.
pub fn rows_rewritten(tx: &mut Tx<'_>, Series { app, name }: Series) -> Result<()> {
    tx.run(MOVE, &args![app, name])
}

/// After rows of a name were deleted.
pub fn rows_deleted(tx: &mut Tx<'_>, Series { app, name }: Series, count: i64) -> Result<()> {
    tx.run(DELETED, &args![app, name, count])
}

/// Packs rows. Runs on one node at a time.
pub struct Packer(pub Db);

impl Job for Packer {
    fn name(&self) -> &'static str {
        "event-packing"
    }

    fn every(&self) -> Duration {
        Duration::from_mins(1)
    }

    fn is_upkeep(&self) -> bool {
        true
    }

    /// One block.
    async fn run(&self) -> Result<Worked> {
        let now = self.0.clock().now();
        let Some(packed) = self.0.scan(move |tx| work_out(tx, now)).await? else { return Ok(Worked::Nothing) };
        self.0.write(move |tx| write(tx, &packed, now)).await?;
        Ok(Worked::Something)
    }
}

/// What was found for the name whose turn it is.
struct Packed {
    rows: Rows,
    block: Option<(WrittenBlock, Vec<String>)>,
}

fn work_out(tx: &mut Tx<'_>, now: Timestamp) -> Result<Option<Packed>> {
    let Some(rows) = tx.opt::<Rows>(DUE, &args![now])? else { return Ok(None) };
    let series = Series { app: rows.app, name: rows.name };
    let Some(events) = ripe(tx, series, now)? else { return Ok(Some(Packed { rows, block: None })) };
    let ids = events.iter().map(|event| event.id.to_string()).collect();
    let block = WrittenBlock::of(series, &events)?.map(|block| (block, ids));
    Ok(Some(Packed { rows, block }))
}

/// The oldest rows that belong into a block.
fn ripe(tx: &mut Tx<'_>, series: Series, now: Timestamp) -> Result<Option<Vec<KeptEvent>>> {
    let Series { app, name } = series;
    let (sent, id) = sink::sent_until(tx, app)?;
    let mut from = Timestamp::MIN.as_micros();
    while let Some((first,)) = tx.opt::<(i64,)>(NEXT, &args![app, name, from])? {
        let start = Grain::Month.start(first);
        let end = Grain::Month.end(start);
        let young = now.minus(YOUNG);
        let mut events: Vec<KeptEvent> = tx.all(RIPE, &args![app, name, first, end, young, sent, id, FULL as i64])?;
        let is_full = events.len() == FULL || limit_bytes(&mut events);
        let is_old = || events.iter().all(|event| event.ingested_at <= now.minus(OLD));
        if is_full || events.len() >= LEAST as usize && is_old() {
            return Ok(Some(events));
        }
        from = end;
    }
    Ok(None)
}

/// Whether something had to be left out.
fn limit_bytes(events: &mut Vec<KeptEvent>) -> bool {
    let mut bytes = 0;
    let within = events.iter().take_while(|event| {
        bytes += event.parameters.len();
        bytes <= MOST_BYTES
    });
    let count = within.count().max(1);
    let is_cut = count < events.len();
    events.truncate(count);
    is_cut
}

fn write(tx: &mut Tx<'_>, packed: &Packed, now: Timestamp) -> Result<()> {
    let Rows { app, name, version } = packed.rows;
    let Some((block, ids)) = &packed.block else { return tx.run(LOOK_AGAIN, &args![app, name, now.plus(PAUSE)]) };
    if tx.changes_one(TAKE, &args![app, name, version, ids.len() as i64])? {
        tx.run(DELETE, &args![app, *ids])?;
        block.insert(tx)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
