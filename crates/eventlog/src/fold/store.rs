//! The SQL of the fold.

use std::collections::HashMap;

use kernel::{AppId, Error, Result, Timestamp};
use store::{Tx, args};
use tenancy::apps;

use super::{
    counters::{self, NAMELESS},
    memory::{Bucket, Had, Wanted},
    plan::{ChangedPart, Plan, Times},
};
use crate::{grain::Grain, ingest::OWN_SOURCE, names, sink, storage};

/// What an app has waiting, oldest first, and the revision that it is folded from.
pub struct Waiting {
    pub revision: i64,
    pub arrivals: Vec<WaitingArrival>,
    /// Whether more of them would have been read for a fold that may write more rows.
    pub is_cut: bool,
}

/// Events that wait together.
pub struct WaitingArrival {
    pub id: String,
    /// How many of its events are folded.
    pub folded: i64,
    pub created_at: Timestamp,
    /// JSON; `None` where the caller has it.
    pub events: Option<String>,
}

/// Arrivals that are looked at for one fold, and how many bytes of them are read for each row that it may write, unless a single
/// one is larger: about what one transaction takes, since what it leaves is read again.
const MOST_ARRIVALS: i64 = 128;
const BYTES_PER_ROW: i64 = 128;
/// Bytes of counters that are read for one fold, more or less.
const MOST_COUNTERS: usize = 4 * 1024 * 1024;

const NEXT_APP: &str = "SELECT app_id FROM event_arrivals WHERE app_id > $1 ORDER BY app_id LIMIT 1";
const OLDEST: &str = "SELECT created_at FROM event_arrivals ORDER BY id LIMIT 1";
const FIRST: &str = "SELECT id FROM event_arrivals WHERE app_id = $1 ORDER BY id LIMIT 1";
const LAST: &str = "SELECT id FROM event_arrivals WHERE app_id = $1 ORDER BY id DESC LIMIT 1";
const WAITING: &str = "SELECT id, folded, created_at, CAST(octet_length(events) AS BIGINT) FROM event_arrivals \
                       WHERE app_id = $1 ORDER BY id LIMIT $2";
const EVENTS: &str = "SELECT id, events FROM event_arrivals WHERE app_id = $1 AND id = ANY($2)";
const REVISION: &str = "SELECT revision FROM event_folds WHERE app_id = $1";
const MOVE_ON: &str = "INSERT INTO event_folds (app_id, revision) VALUES ($1, $3) \
     ON CONFLICT (app_id) DO UPDATE SET revision = excluded.revision WHERE event_folds.revision = $2";
const MOVE: &str = "UPDATE event_folds SET revision = revision + 1 WHERE app_id = $1";
const MOVE_FAR: &str = "UPDATE event_folds SET revision = revision + 4294967296 WHERE app_id = $1";
const FORGET: &str = "DELETE FROM event_arrivals WHERE id IN \
     (SELECT id FROM event_arrivals WHERE app_id = $1 ORDER BY id LIMIT $2)";
const PARTS: &str = "SELECT parameter_id, part, counts FROM event_counts \
     WHERE app_id = $1 AND name_id = $2 AND grain = $3 AND starts_at = $4 ORDER BY parameter_id, part";
const PART: &str = "SELECT counts FROM event_counts WHERE app_id = $1 AND name_id = $2 AND grain = $3 \
     AND starts_at = $4 AND parameter_id = $5 AND part = $6";

const ADD_EVENTS: &str = "INSERT INTO event_buckets (app_id, name_id, grain, starts_at, events) \
     SELECT app_id, name_id, grain, starts_at, events FROM {rows} WHERE true \
     ON CONFLICT (app_id, name_id, grain, starts_at) DO UPDATE SET events = event_buckets.events + excluded.events";
const ADD_SUMS: &str = "INSERT INTO event_sums (app_id, name_id, grain, starts_at, parameter_id, total) \
     SELECT app_id, name_id, grain, starts_at, parameter_id, total FROM {rows} WHERE true \
     ON CONFLICT (app_id, name_id, grain, starts_at, parameter_id) DO UPDATE SET total = event_sums.total + excluded.total";
const PUT_PARTS: &str = "INSERT INTO event_counts (app_id, name_id, grain, starts_at, parameter_id, part, counts) \
     SELECT app_id, name_id, grain, starts_at, parameter_id, part, counts FROM {rows} WHERE true \
     ON CONFLICT (app_id, name_id, grain, starts_at, parameter_id, part) DO UPDATE SET counts = excluded.counts";
/// The last time is written only when it has grown by ten minutes, so that most events of an entity write nothing here.
const ADD_FIRSTS: &str = "INSERT INTO event_firsts (app_number, entity_digest, name_id, parameter_id, first_at, last_at) \
     SELECT app_number, entity_digest, name_id, parameter_id, first_at, last_at FROM {rows} WHERE true \
     ON CONFLICT (app_number, entity_digest, name_id) DO UPDATE SET \
     first_at = CASE WHEN excluded.first_at < event_firsts.first_at THEN excluded.first_at ELSE event_firsts.first_at END, \
     last_at = CASE WHEN coalesce(excluded.last_at, excluded.first_at) > coalesce(event_firsts.last_at, event_firsts.first_at) \
     THEN coalesce(excluded.last_at, excluded.first_at) ELSE coalesce(event_firsts.last_at, event_firsts.first_at) END \
     WHERE excluded.first_at < event_firsts.first_at OR coalesce(excluded.last_at, excluded.first_at) \
     > coalesce(event_firsts.last_at, event_firsts.first_at) + 600000000";
const ADD_ROWS: &str = "INSERT INTO event_rows (id, app_id, name_id, happened_at, ingested_at, ingest_source, \
     ingest_id, tenant_id, audited, parameters, revision) SELECT id, app_id, name_id, happened_at, ingested_at, \
     ingest_source, ingest_id, tenant_id, audited, parameters, revision FROM {rows} WHERE true";
const FINISH: &str = "DELETE FROM event_arrivals WHERE app_id = $1 AND id = ANY($2)";
const BEGIN: &str = "UPDATE event_arrivals SET folded = $3 WHERE app_id = $1 AND id = $2";

/// The app whose turn it is after another one's.
pub fn next_app(tx: &mut Tx<'_>, last: Option<AppId>) -> Result<Option<AppId>> {
    let mut after = |last: &str| Ok(tx.opt::<(AppId,)>(NEXT_APP, &args![last])?.map(|(app,)| app));
    let next = match last {
        Some(last) => after(&last.to_string())?,
        None => None,
    };
    if next.is_some() { Ok(next) } else { after("") }
}

pub fn oldest(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    Ok(tx.opt::<(Timestamp,)>(OLDEST, &[])?.map(|(at,)| at))
}

pub fn first_arrival(tx: &mut Tx<'_>, app: AppId) -> Result<Option<String>> {
    Ok(tx.opt::<(String,)>(FIRST, &args![app])?.map(|(id,)| id))
}

pub fn last_arrival(tx: &mut Tx<'_>, app: AppId) -> Result<Option<String>> {
    Ok(tx.opt::<(String,)>(LAST, &args![app])?.map(|(id,)| id))
}

/// `None` for an app that no longer exists. The events of an arrival that the caller has are not read, and no others if it
/// has enough.
pub fn waiting(tx: &mut Tx<'_>, app: AppId, had: Option<&Had>, most_rows: i64) -> Result<Option<Waiting>> {
    if !apps::exists(tx, app)? {
        return Ok(None);
    }
    let revision = revision(tx, app)?;
    let found: Vec<(String, i64, Timestamp, i64)> = tx.all(WAITING, &args![app, MOST_ARRIVALS])?;
    let (mut arrivals, mut unread, mut bytes, mut is_cut) = (Vec::new(), Vec::new(), 0, false);
    for (id, folded, created_at, size) in found {
        let has = had.filter(|had| had.arrival == id);
        if has.is_none() {
            if bytes > 0 && bytes + size > most_rows * BYTES_PER_ROW {
                is_cut = true;
                break;
            }
            bytes += size;
            unread.push(id.clone());
        }
        arrivals.push(WaitingArrival { id, folded, created_at, events: None });
        if has.is_some_and(|had| had.is_enough(folded)) {
            break;
        }
    }
    if !unread.is_empty() {
        let texts: Vec<(String, String)> = tx.all(EVENTS, &args![app, unread])?;
        let mut texts: HashMap<String, String> = texts.into_iter().collect();
        arrivals.iter_mut().for_each(|arrival| arrival.events = texts.remove(&arrival.id));
    }
    Ok(Some(Waiting { revision, arrivals, is_cut }))
}

/// Moves with every fold of an app, in the transaction that writes its rows.
pub fn revision(tx: &mut Tx<'_>, app: AppId) -> Result<i64> {
    Ok(tx.opt::<(i64,)>(REVISION, &args![app])?.map_or(0, |(revision,)| revision))
}

const MOST_FORGOTTEN: i64 = 4;

/// Events of a deleted app are of no use to anybody.
pub fn forget(tx: &mut Tx<'_>, app: AppId) -> Result<bool> {
    Ok(tx.exec(FORGET, &args![app, MOST_FORGOTTEN])? > 0)
}

/// Numbers of names and parameters.
pub struct Loaded {
    pub names: Vec<(String, i64)>,
    pub parameters: Vec<(String, i64)>,
    pub last_parameter: i64,
}

pub fn load(tx: &mut Tx<'_>, app: AppId, wanted: &Wanted) -> Result<Loaded> {
    let names = match wanted.names.is_empty() {
        true => Vec::new(),
        false => names::find_all(tx, app, &wanted.names)?,
    };
    if wanted.parameters.is_empty() {
        return Ok(Loaded { names, parameters: Vec::new(), last_parameter: 0 });
    }
    let parameters = names::parameters(tx, app, &wanted.parameters)?;
    Ok(Loaded { names, parameters, last_parameter: names::last_parameter(tx, app)? })
}

/// The counters of a bucket: parameter, part and document.
pub type StoredParts = (Bucket, Vec<(i64, i64, String)>);

/// The counters of the first buckets, of at least as many as one event counts in.
pub fn load_counters(tx: &mut Tx<'_>, app: AppId, buckets: &[Bucket]) -> Result<Vec<StoredParts>> {
    let (mut loaded, mut bytes) = (Vec::new(), 0);
    for &(name, grain, start) in buckets {
        if loaded.len() >= Grain::ALL.len() && bytes >= MOST_COUNTERS {
            break;
        }
        let parts: Vec<(i64, i64, String)> = tx.all(PARTS, &args![app, name, grain, start])?;
        bytes += parts.iter().map(|(_, _, counts)| counts.len()).sum::<usize>();
        loaded.push(((name, grain, start), parts));
    }
    Ok(loaded)
}

/// What was worked out for the app before is not written any more.
pub fn move_on(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    tx.run(MOVE, &args![app])
}

/// The same where the app came from elsewhere: what a node has remembered of one with this id is not of this one, even if it
/// was folded as often.
pub fn move_far_on(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    tx.run(MOVE_FAR, &args![app])
}

/// Adds to sums of buckets.
pub fn add_sums(tx: &mut Tx<'_>, app: AppId, sums: &HashMap<(Bucket, i64), f64>) -> Result<()> {
    let row = |(&((name, grain, start), parameter), &total): (&(Bucket, i64), &f64)| {
        (app, name, grain, start, parameter, total)
    };
    let rows: Vec<_> = sums.iter().map(row).collect();
    tx.insert_all(ADD_SUMS, ["app_id", "name_id", "grain", "starts_at", "parameter_id", "total"], &rows)
}

/// Counts events of values that were erased, by bucket and parameter, for whoever has moved the app's revision in this
/// transaction. `named` are the parts that had counters of `value`.
pub fn erase_counters(
    tx: &mut Tx<'_>,
    app: AppId,
    value: &str,
    named: &[(Bucket, i64, i64)],
    mut erased: HashMap<(Bucket, i64), i64>,
) -> Result<()> {
    let mut changed = Vec::with_capacity(named.len() + erased.len());
    for &(bucket, parameter, part) in named {
        let Some(counts) = part_of(tx, app, (bucket, parameter), part)? else { continue };
        let Some((counts, events)) = counters::without(&counts, value)? else { continue };
        changed.push(ChangedPart { bucket, parameter, part, counts });
        *erased.entry((bucket, parameter)).or_default() += events;
    }
    for ((bucket, parameter), events) in erased {
        let counts = part_of(tx, app, (bucket, parameter), NAMELESS)?;
        let counts = counters::with_erased(counts.as_deref(), events)?;
        changed.push(ChangedPart { bucket, parameter, part: NAMELESS, counts });
    }
    put_parts(tx, app, &changed)
}

fn part_of(tx: &mut Tx<'_>, app: AppId, (bucket, parameter): (Bucket, i64), part: i64) -> Result<Option<String>> {
    let (name, grain, start) = bucket;
    Ok(tx.opt::<(String,)>(PART, &args![app, name, grain, start, parameter, part])?.map(|(counts,)| counts))
}

fn put_parts(tx: &mut Tx<'_>, app: AppId, parts: &[ChangedPart]) -> Result<()> {
    let rows = parts.iter().map(|changed| {
        let (name, grain, start) = changed.bucket;
        (app, name, grain, start, changed.parameter, changed.part, changed.counts.as_str())
    });
    let mut rows: Vec<_> = rows.collect();
    // Neighbours are on the same pages.
    rows.sort_unstable();
    let columns = ["app_id", "name_id", "grain", "starts_at", "parameter_id", "part", "counts"];
    tx.insert_all(PUT_PARTS, columns, &rows)
}

/// Writes a fold; `false`, and nothing, when the app was folded since it was worked out.
pub fn write(tx: &mut Tx<'_>, app: AppId, plan: &Plan) -> Result<bool> {
    if tx.exec(MOVE_ON, &args![app, plan.expected, plan.revision()])? == 0 {
        return Ok(false);
    }
    names::insert_parameters(tx, app, &plan.new_parameters)?;
    let rows: Vec<_> =
        plan.buckets.iter().map(|(&(name, grain, start), &count)| (app, name, grain, start, count)).collect();
    tx.insert_all(ADD_EVENTS, ["app_id", "name_id", "grain", "starts_at", "events"], &rows)?;
    add_sums(tx, app, &plan.sums)?;
    put_parts(tx, app, &plan.counters)?;
    add_firsts(tx, app, &plan.firsts)?;
    write_rows(tx, app, plan)?;
    let mut counts: HashMap<i64, i64> = HashMap::new();
    for row in plan.rows.iter().filter(|row| row.event.source.as_deref() != Some(OWN_SOURCE)) {
        *counts.entry(row.name).or_default() += 1;
    }
    storage::count_rows(tx, app, &counts)?;
    tx.run(FINISH, &args![app, plan.finished])?;
    if let Some(arrival) = &plan.begun {
        tx.run(BEGIN, &args![app, arrival.id, i64::try_from(arrival.folded).map_err(Error::internal)?])?;
    }
    Ok(true)
}

/// Notes when events happened to entities, by entity and event.
pub fn add_firsts(tx: &mut Tx<'_>, app: AppId, firsts: &HashMap<(String, i64), Times>) -> Result<()> {
    let rows = firsts.iter().map(|((entity, name), times)| {
        let last = (times.last > times.first).then_some(times.last);
        (app.number(), entity.as_str(), *name, times.parameter, times.first, last)
    });
    let mut rows: Vec<_> = rows.collect();
    // Neighbours are on the same pages.
    rows.sort_unstable();
    let columns = ["app_number", "entity_digest", "name_id", "parameter_id", "first_at", "last_at"];
    tx.insert_all(ADD_FIRSTS, columns, &rows)
}

fn write_rows(tx: &mut Tx<'_>, app: AppId, plan: &Plan) -> Result<()> {
    // A sink reads in the order of folds.
    let revision = sink::exists(tx, app)?.then(|| plan.revision());
    let rows: Vec<_> = plan
        .rows
        .iter()
        .map(|row| {
            let event = &row.event;
            let (source, ingest_id) = (event.source.as_deref(), event.ingest_id.as_deref());
            let parameters = event.parameters.as_str();
            (
                event.id,
                app,
                row.name,
                event.at,
                row.ingested_at,
                source,
                ingest_id,
                event.tenant,
                row.audited,
                parameters,
                revision,
            )
        })
        .collect();
    let columns = [
        "id",
        "app_id",
        "name_id",
        "happened_at",
        "ingested_at",
        "ingest_source",
        "ingest_id",
        "tenant_id",
        "audited",
        "parameters",
        "revision",
    ];
    tx.insert_all(ADD_ROWS, columns, &rows)
}
