//! What is sent next: fixed first, so that it is the same however often it is tried.

use ::store::{Tx, args, row, sql};
use kernel::{AppId, Result, Timestamp};

use super::{Batch, Lane, Position, Sink, Way, store};
use crate::{EventId, names};

/// Of one batch, unless a single event has more bytes.
const MOST_EVENTS: usize = 5_000;
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// Rows that are read at once.
const PAGE: usize = 500;

/// An event on its way out.
#[derive(Clone, Debug)]
pub(super) struct SunkEvent {
    pub(super) id: EventId,
    name_id: i64,
    pub(super) at: Timestamp,
    pub(super) ingested_at: Timestamp,
    pub(super) source: Option<String>,
    pub(super) ingest_id: Option<String>,
    pub(super) parameters: String,
    revision: Option<i64>,
    pub(super) name: String,
}

row! {
    SunkEvent = "event_rows" {
        id, name_id, at: "happened_at", ingested_at, source: "ingest_source", ingest_id, parameters, revision
    }
    name: String::new()
}

impl SunkEvent {
    fn position(&self, way: Way) -> Position {
        let (group, at) = match way {
            Way::New => (self.revision.unwrap_or_default(), None),
            Way::Backfill => (self.name_id, Some(self.at.as_micros())),
        };
        Position { group, at, id: self.id.to_string() }
    }
}

/// What is sent at once.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) batch: Batch,
    /// May be none, when all that was read is not wanted.
    pub(super) events: Vec<SunkEvent>,
}

const FRESH: &str = sql!(
    "SELECT ",
    SunkEvent::COLUMNS,
    " FROM event_rows WHERE app_id = $1 AND revision IS NOT NULL AND (revision, id) > ($2, $3) \
      AND (revision, id) <= ($4, $5) ORDER BY revision, id LIMIT $6"
);
const NAME: &str = "SELECT id FROM event_names WHERE app_id = $1 AND id >= $2 ORDER BY id LIMIT 1";
const BEFORE: &str = sql!(
    "SELECT ",
    SunkEvent::COLUMNS,
    " FROM event_rows WHERE app_id = $1 AND name_id = $2 AND (happened_at, id) > ($3, $4) \
      AND (revision IS NULL OR revision <= $5) ORDER BY happened_at, id LIMIT $6"
);

/// The batch that was fixed, with its events as they are now (some may have been erased, or have gone by the retention);
/// if none was, the one to fix next.
pub(super) fn next(tx: &mut Tx<'_>, sink: &Sink, way: Way) -> Result<Option<Outgoing>> {
    let Some(lane) = sink.lane(way) else { return Ok(None) };
    let until = lane.batch.as_ref().map(|batch| &batch.until);
    let found = match way {
        Way::New => fresh(tx, sink.app, &lane.after, until)?,
        Way::Backfill => before(tx, sink, &lane.after, until)?,
    };
    let batch = match (&lane.batch, found.last()) {
        (Some(batch), _) => batch.clone(),
        (None, Some(last)) => Batch { id: tx.entropy().base62(22), until: last.position(way) },
        (None, None) => return Ok(None),
    };
    Ok(Some(Outgoing { batch, events: wanted(tx, sink, found)? }))
}

/// With their names, those that the sink takes.
fn wanted(tx: &mut Tx<'_>, sink: &Sink, found: Vec<SunkEvent>) -> Result<Vec<SunkEvent>> {
    let ids: Vec<i64> = found.iter().map(|event| event.name_id).collect();
    let names = names::by_id(tx, sink.app, &ids)?;
    let named = |event: SunkEvent| {
        let name = names.get(&event.name_id).cloned().unwrap_or_default();
        SunkEvent { name, ..event }
    };
    Ok(found.into_iter().map(named).filter(|event| sink.takes(&event.name)).collect())
}

/// Notes what is about to be sent; `false`, and nothing, when the sink was changed meanwhile.
pub(super) fn fix(tx: &mut Tx<'_>, seen: &Sink, way: Way, batch: &Batch) -> Result<bool> {
    let Some(mut sink) = store::find_for_update(tx, seen.app)? else { return Ok(false) };
    if sink.lane(way) != seen.lane(way) || sink.made_at != seen.made_at {
        return Ok(false);
    }
    let after = sink.lane(way).map(|lane| lane.after.clone()).unwrap_or_default();
    sink.set_lane(way, Lane { after, batch: Some(batch.clone()) });
    store::save_lanes(tx, &sink)?;
    Ok(true)
}

/// The batch has arrived.
pub(super) fn arrived(tx: &mut Tx<'_>, app: AppId, way: Way, batch: &Batch) -> Result<()> {
    let Some(mut sink) = store::find_for_update(tx, app)? else { return Ok(()) };
    // A sink that was set up again meanwhile has other batches.
    if sink.lane(way).and_then(|lane| lane.batch.as_ref()) != Some(batch) {
        return Ok(());
    }
    sink.set_lane(way, Lane { after: batch.until.clone(), batch: None });
    store::save_lanes(tx, &sink)?;
    store::succeeded(tx, app)
}

/// All that was there before has arrived.
pub(super) fn end_backfill(tx: &mut Tx<'_>, seen: &Sink) -> Result<()> {
    let Some(mut sink) = store::find_for_update(tx, seen.app)? else { return Ok(()) };
    if sink.backfill == seen.backfill && sink.made_at == seen.made_at {
        sink.backfill = None;
        store::save_lanes(tx, &sink)?;
    }
    Ok(())
}

/// Events that were written since the sink was set up, in the order of folds.
fn fresh(tx: &mut Tx<'_>, app: AppId, after: &Position, until: Option<&Position>) -> Result<Vec<SunkEvent>> {
    let (last, id) = until.map_or((i64::MAX, ""), |until| (until.group, &until.id));
    let (mut place, mut gathered) = (after.clone(), Gathered::new(until));
    while !gathered.is_full() {
        let page: Vec<SunkEvent> = tx.all(FRESH, &args![app, place.group, place.id, last, id, PAGE as i64])?;
        let is_last = page.len() < PAGE;
        place = page.last().map(|event| event.position(Way::New)).unwrap_or_default();
        gathered.take(page);
        if is_last {
            break;
        }
    }
    Ok(gathered.events)
}

/// Events of the time before the sink, name by name, as far as `until` if that is given.
fn before(tx: &mut Tx<'_>, sink: &Sink, after: &Position, until: Option<&Position>) -> Result<Vec<SunkEvent>> {
    let (app, mut place, mut gathered) = (sink.app, after.clone(), Gathered::new(until));
    while !gathered.is_full() {
        let Some((name,)) = tx.opt::<(i64,)>(NAME, &args![app, place.group])? else { break };
        if name != place.group {
            place = Position { group: name, ..Position::default() };
        }
        if until.is_some_and(|until| place >= *until) {
            break;
        }
        // Before the first event of that instant, if nothing of this name was sent yet.
        let at = place.at.unwrap_or_else(|| sink.since.as_micros());
        let mut page: Vec<SunkEvent> = tx.all(BEFORE, &args![app, name, at, place.id, sink.made_at, PAGE as i64])?;
        place = match page.last().filter(|_| page.len() == PAGE) {
            Some(last) => last.position(Way::Backfill),
            None => Position { group: name + 1, ..Position::default() },
        };
        page.retain(|event| until.is_none_or(|until| event.position(Way::Backfill) <= *until));
        gathered.take(page);
    }
    Ok(gathered.events)
}

/// Events of one batch, as many as fit into it.
struct Gathered {
    events: Vec<SunkEvent>,
    bytes: usize,
    /// A batch that was fixed is as large as it was then.
    is_fixed: bool,
}

impl Gathered {
    fn new(until: Option<&Position>) -> Self {
        Self { events: Vec::new(), bytes: 0, is_fixed: until.is_some() }
    }

    fn is_full(&self) -> bool {
        !self.is_fixed && (self.events.len() >= MOST_EVENTS || self.bytes >= MOST_BYTES)
    }

    fn take(&mut self, page: Vec<SunkEvent>) {
        for event in page {
            if self.is_full() {
                break;
            }
            self.bytes += event.parameters.len();
            self.events.push(event);
        }
    }
}
