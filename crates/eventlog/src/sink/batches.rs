//! What is sent next: fixed first, so that it is the same however often it is tried.

use ::store::{Tx, args, sql};
use kernel::{AppId, Result, Timestamp};

use super::{Batch, Lane, Position, Sink, Way, store};
use crate::{
    names,
    scans::{Allowance, Stop},
    storage::{EventReader, KeptEvent, LogPlace, Order, Series},
};

/// Of one batch, unless a single event has more bytes.
const MOST_EVENTS: usize = 5_000;
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// Rows that are read at once.
const PAGE: usize = 500;

/// An event on its way out.
#[derive(Clone, Debug)]
pub(super) struct SunkEvent {
    pub(super) kept: KeptEvent,
    pub(super) name: String,
}

fn position(event: &KeptEvent, way: Way) -> Position {
    let (group, at) = match way {
        Way::New => (event.revision.unwrap_or_default(), None),
        Way::Backfill => (event.name, Some(event.at.as_micros())),
    };
    Position { group, at, id: event.id.to_string() }
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
    KeptEvent::COLUMNS,
    " FROM event_rows WHERE app_id = $1 AND revision IS NOT NULL AND (revision, id) > ($2, $3) \
      AND (revision, id) <= ($4, $5) ORDER BY revision, id LIMIT $6"
);
const NAME: &str = "SELECT id FROM event_names WHERE app_id = $1 AND id >= $2 ORDER BY id LIMIT 1";
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
        (None, Some(last)) => Batch { id: tx.entropy().base62(22), until: position(last, way) },
        (None, None) => return Ok(None),
    };
    Ok(Some(Outgoing { batch, events: wanted(tx, sink, found)? }))
}

/// With their names, those that the sink takes.
fn wanted(tx: &mut Tx<'_>, sink: &Sink, found: Vec<KeptEvent>) -> Result<Vec<SunkEvent>> {
    let ids: Vec<i64> = found.iter().map(|event| event.name).collect();
    let names = names::by_id(tx, sink.app, &ids)?;
    let named = |kept: KeptEvent| SunkEvent { name: names.get(&kept.name).cloned().unwrap_or_default(), kept };
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
fn fresh(tx: &mut Tx<'_>, app: AppId, after: &Position, until: Option<&Position>) -> Result<Vec<KeptEvent>> {
    let (last, id) = until.map_or((i64::MAX, ""), |until| (until.group, &until.id));
    let (mut place, mut gathered) = (after.clone(), Gathered::new(until));
    while !gathered.is_full() {
        let page: Vec<KeptEvent> = tx.all(FRESH, &args![app, place.group, place.id, last, id, PAGE as i64])?;
        let is_last = page.len() < PAGE;
        place = page.last().map(|event| position(event, Way::New)).unwrap_or_default();
        gathered.take(page);
        if is_last {
            break;
        }
    }
    Ok(gathered.events)
}

/// Events of the time before the sink, name by name, as far as `until` if that is given.
fn before(tx: &mut Tx<'_>, sink: &Sink, after: &Position, until: Option<&Position>) -> Result<Vec<KeptEvent>> {
    let (app, mut place, mut gathered) = (sink.app, after.clone(), Gathered::new(until));
    while !gathered.is_full() {
        let Some((name,)) = tx.opt::<(i64,)>(NAME, &args![app, place.group])? else { break };
        if name != place.group {
            place = Position { group: name, ..Position::default() };
        }
        if until.is_some_and(|until| place >= *until) {
            break;
        }
        gather(tx, sink, &place, until, &mut gathered)?;
        place = Position { group: name + 1, ..Position::default() };
    }
    Ok(gathered.events)
}

/// Of one name, after a place.
fn gather(
    tx: &mut Tx<'_>,
    sink: &Sink,
    after: &Position,
    until: Option<&Position>,
    gathered: &mut Gathered,
) -> Result<()> {
    let (series, allowance) = (Series { app: sink.app, name: after.group }, Allowance::unlimited());
    let mut reader = EventReader::new(Order::OldestFirst(series), (sink.since, Timestamp::MAX), &allowance);
    if let Some(at) = after.at {
        reader = reader.after(LogPlace { at: Timestamp::from_micros(at), id: after.id.clone() });
    }
    loop {
        let mut page = reader.page(tx, PAGE).map_err(Stop::into_error)?;
        let length = page.len();
        page.retain(|event| until.is_none_or(|until| position(event, Way::Backfill) <= *until));
        let is_last = length < PAGE || page.len() < length;
        // What was written since is sent as new.
        page.retain(|event| event.revision.is_none_or(|revision| revision <= sink.made_at));
        gathered.take(page);
        if is_last || gathered.is_full() {
            return Ok(());
        }
    }
}

/// Events of one batch, as many as fit into it.
struct Gathered {
    events: Vec<KeptEvent>,
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

    fn take(&mut self, page: Vec<KeptEvent>) {
        for event in page {
            if self.is_full() {
                break;
            }
            self.bytes += event.parameters.len();
            self.events.push(event);
        }
    }
}
