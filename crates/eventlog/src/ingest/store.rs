//! Stores what arrives.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ::store::{Ingest, Tx};
use kernel::{AppId, AppNumber, Error, Result};

use super::{ArrivalId, ArrivedEvent};
use crate::{names, parameters::ingest_digest};

/// An event to store.
#[derive(Clone, Debug)]
pub struct IngestRow {
    pub app: AppId,
    pub event: ArrivedEvent,
    /// Whether its name was registered before.
    pub name_is_known: bool,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It waits for the fold.
    Stored,
    /// One with its `ingestId` was there before.
    Repeated,
    /// The app has as many event names as it may have.
    TooManyNames,
}

const INSERT: &str = "INSERT INTO event_arrivals (id, app_id, folded, events, created_at) \
                      SELECT id, app_id, 0, events, created_at FROM {rows} WHERE true";
const INSERT_DIGESTS: &str = "INSERT INTO event_ingest_ids (app_number, digest) \
     SELECT app_number, digest FROM {rows} WHERE true ON CONFLICT (app_number, digest) DO NOTHING \
     RETURNING app_number, digest";
const FORGET_DIGESTS: &str = "DELETE FROM event_ingest_ids WHERE (app_number, digest) IN \
                              (SELECT app_number, digest FROM {rows} WHERE true)";

/// A row holds at most so many events and, unless one event has more, bytes: the fold reads several rows at once.
const MOST_EVENTS: usize = 64;
const MOST_BYTES: usize = 128 * 1024;

pub struct EventIngest;

impl Ingest for EventIngest {
    type Row = IngestRow;
    type Answer = Outcome;

    fn store(tx: &mut Tx<'_>, rows: &[IngestRow]) -> Result<Vec<Outcome>> {
        let refused = register_names(tx, rows)?;
        let mut outcomes: Vec<Outcome> = rows
            .iter()
            .map(|row| match refused.contains(&(row.app, row.event.name.as_str())) {
                true => Outcome::TooManyNames,
                false => Outcome::Stored,
            })
            .collect();
        mark_repeats(tx, rows, &mut outcomes)?;
        let mut by_app: BTreeMap<AppId, Vec<ArrivedEvent>> = BTreeMap::new();
        for (row, _) in rows.iter().zip(&outcomes).filter(|(_, outcome)| **outcome == Outcome::Stored) {
            by_app.entry(row.app).or_default().push(ArrivedEvent { id: tx.new_id(), ..row.event.clone() });
        }
        for (app, events) in by_app {
            keep(tx, app, &events)?;
        }
        Ok(outcomes)
    }
}

/// The names that could not be registered. Apps are taken in their order, so that batches do not wait in a circle.
fn register_names<'a>(tx: &mut Tx<'_>, rows: &'a [IngestRow]) -> Result<HashSet<(AppId, &'a str)>> {
    let mut wanted: BTreeMap<AppId, Vec<&'a str>> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.name_is_known) {
        let names = wanted.entry(row.app).or_default();
        if !names.contains(&row.event.name.as_str()) {
            names.push(&row.event.name);
        }
    }
    let mut refused = HashSet::new();
    for (app, names) in wanted {
        refused.extend(names::register(tx, app, &names)?.into_iter().map(|name| (app, name)));
    }
    Ok(refused)
}

/// Of several events with one `ingestId` the first is stored, unless it was before.
fn mark_repeats(tx: &mut Tx<'_>, rows: &[IngestRow], outcomes: &mut [Outcome]) -> Result<()> {
    let mut firsts: HashMap<(AppNumber, Vec<u8>), usize> = HashMap::new();
    for (place, row) in rows.iter().enumerate() {
        let Some(ingest_id) = row.event.ingest_id.as_ref().filter(|_| outcomes[place] == Outcome::Stored) else {
            continue;
        };
        match firsts.entry((row.app.number(), ingest_digest(ingest_id))) {
            std::collections::hash_map::Entry::Vacant(first) => {
                first.insert(place);
            }
            std::collections::hash_map::Entry::Occupied(_) => outcomes[place] = Outcome::Repeated,
        }
    }
    if firsts.is_empty() {
        return Ok(());
    }
    // In one order, so that two nodes with the same events do not wait for each other in a circle.
    let sorted: BTreeSet<(&AppNumber, &Vec<u8>)> = firsts.keys().map(|(app, digest)| (app, digest)).collect();
    let digests: Vec<_> = sorted.into_iter().map(|(app, digest)| (*app, digest.as_slice())).collect();
    let fresh: HashSet<(AppNumber, Vec<u8>)> =
        tx.insert_all_returning(INSERT_DIGESTS, ["app_number", "digest"], &digests)?.into_iter().collect();
    for (_, place) in firsts.iter().filter(|(first, _)| !fresh.contains(*first)) {
        outcomes[*place] = Outcome::Repeated;
    }
    Ok(())
}

/// Forgets the `ingestId`s of events that are deleted in this transaction: another event may have them.
pub fn forget<'a>(tx: &mut Tx<'_>, app: AppId, ingest_ids: impl Iterator<Item = &'a str>) -> Result<()> {
    let digests: BTreeSet<Vec<u8>> = ingest_ids.map(ingest_digest).collect();
    let rows: Vec<_> = digests.iter().map(|digest| (app.number(), digest.as_slice())).collect();
    tx.insert_all(FORGET_DIGESTS, ["app_number", "digest"], &rows)
}

/// Writes events of registered names down for the fold.
pub fn keep(tx: &mut Tx<'_>, app: AppId, events: &[ArrivedEvent]) -> Result<()> {
    let now = tx.now();
    let mut rows: Vec<(ArrivalId, AppId, String, _)> = Vec::new();
    for chunk in chunks(events) {
        let json = serde_json::to_string(chunk).map_err(Error::internal)?;
        rows.push((tx.new_id(), app, json, now));
    }
    tx.insert_all(INSERT, ["id", "app_id", "events", "created_at"], &rows)
}

fn chunks(mut events: &[ArrivedEvent]) -> impl Iterator<Item = &[ArrivedEvent]> {
    std::iter::from_fn(move || {
        let (mut count, mut bytes) = (0, 0);
        while count < events.len() && count < MOST_EVENTS && (count == 0 || bytes < MOST_BYTES) {
            bytes += events[count].parameters.len();
            count += 1;
        }
        let (chunk, rest) = events.split_at(count);
        events = rest;
        (!chunk.is_empty()).then_some(chunk)
    })
}
