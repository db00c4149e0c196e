//! Reads the events of a part.

use std::{collections::HashMap, fmt};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use kernel::{AppId, Result, Timestamp};
use store::{Tx, args};

use crate::{
    LoggedEventId, audit,
    grain::Grain,
    ingest::OWN_SOURCE,
    scans::{Allowance, Stop},
    storage::{EventReader, KeptEvent, LogPlace, Order, Series},
};

/// Of one part, unless a single event has more bytes.
const MOST_EVENTS: usize = 10_000;
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// Rows that are read at once.
const PAGE: usize = 500;

/// What is exported.
#[derive(Clone, Debug)]
pub struct WantedEvents {
    pub app: AppId,
    /// Both inclusive, in microseconds.
    pub from: i64,
    pub to: i64,
    pub cursor: Cursor,
}

/// After the event of this name, time and id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    name: i64,
    at: Option<i64>,
    id: String,
}

impl Cursor {
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let mut parts = text.splitn(3, ' ');
        let (name, at, id) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?);
        let id: LoggedEventId = id.parse().ok()?;
        Some(Self { name, at: Some(at), id: id.to_string() })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{} {} {}", self.name, self.at.unwrap_or_default(), self.id);
        f.write_str(&BASE64_URL_SAFE_NO_PAD.encode(text))
    }
}

/// A part, and where the next one begins.
pub struct Part {
    pub events: Vec<ExportedEvent>,
    pub next: Option<Cursor>,
}

/// An event with what an export tells of it.
#[derive(Clone, Debug)]
pub struct ExportedEvent {
    pub kept: KeptEvent,
    pub name: String,
    /// Of the service's own entries: their place in the chain, and the digest of the link.
    pub chain: Option<(i64, String)>,
}

const NAME: &str = "SELECT id, name FROM event_names WHERE app_id = $1 AND id >= $2 ORDER BY id LIMIT 1";
const ABOUT: &str = "SELECT CAST(coalesce(sum(buckets.events), 0) AS BIGINT) FROM event_names AS names \
     JOIN event_buckets AS buckets ON buckets.app_id = names.app_id AND buckets.name_id = names.id \
     WHERE names.app_id = $1 AND buckets.grain = $2 AND buckets.starts_at >= $3 AND buckets.starts_at <= $4";

/// How many events there are between two times, by whole days, deleted ones included.
pub fn about_how_many(tx: &mut Tx<'_>, app: AppId, (from, to): (i64, i64)) -> Result<i64> {
    let (grain, from) = (Grain::Day, Grain::Day.start(from));
    Ok(tx.one::<(i64,)>(ABOUT, &args![app, grain.number(), from, to])?.0)
}

pub fn read(tx: &mut Tx<'_>, wanted: &WantedEvents) -> Result<Part> {
    let (app, mut place) = (wanted.app, wanted.cursor.clone());
    let (mut events, mut bytes): (Vec<ExportedEvent>, usize) = (Vec::new(), 0);
    let allowance = Allowance::unlimited();
    while let Some((name, text)) = tx.opt::<(i64, String)>(NAME, &args![app, place.name])? {
        if name != place.name {
            place = Cursor { name, ..Cursor::default() };
        }
        let time = (Timestamp::from_micros(wanted.from), Timestamp::from_micros(wanted.to));
        let mut reader = EventReader::new(Order::OldestFirst(Series { app, name }), time, &allowance);
        // A time before the first one that is asked for is none to go on from.
        if let Some(at) = place.at.filter(|at| *at >= wanted.from) {
            reader = reader.after(LogPlace { at: Timestamp::from_micros(at), id: place.id.clone() });
        }
        loop {
            let room = PAGE.min(MOST_EVENTS - events.len());
            let page = reader.page(tx, room).map_err(Stop::into_error)?;
            let is_last = page.len() < room;
            for kept in page {
                bytes += kept.parameters.len();
                place = Cursor { name, at: Some(kept.at.as_micros()), id: kept.id.to_string() };
                events.push(ExportedEvent { kept, name: text.clone(), chain: None });
                if bytes >= MOST_BYTES {
                    break;
                }
            }
            if events.len() >= MOST_EVENTS || bytes >= MOST_BYTES {
                return with_links(tx, app, events, Some(place));
            }
            if is_last {
                break;
            }
        }
        place = Cursor { name: name + 1, ..Cursor::default() };
    }
    with_links(tx, app, events, None)
}

fn with_links(tx: &mut Tx<'_>, app: AppId, mut events: Vec<ExportedEvent>, next: Option<Cursor>) -> Result<Part> {
    let own = |event: &&ExportedEvent| event.kept.source.as_deref() == Some(OWN_SOURCE);
    let ids: Vec<String> = events.iter().filter(own).map(|event| event.kept.id.to_string()).collect();
    let links = audit::positions(tx, app, &ids)?;
    let mut links: HashMap<LoggedEventId, (i64, String)> =
        links.into_iter().map(|(id, seq, digest)| (id, (seq, digest))).collect();
    for event in &mut events {
        event.chain = links.remove(&event.kept.id);
    }
    Ok(Part { events, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let cursor = Cursor { name: 7, at: Some(-5), id: LoggedEventId::from_u128(9).to_string() };
        assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
        for wrong in ["", "x", "7 5", "Ny41"] {
            assert_eq!(Cursor::parse(wrong), None, "{wrong}");
        }
    }
}
