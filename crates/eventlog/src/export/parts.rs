//! Reads the events of a part.

use std::{collections::HashMap, fmt};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use kernel::{AppId, Result, Timestamp};
use store::{Tx, args, row, sql};

use crate::{EventId, audit};

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
        let id: EventId = id.parse().ok()?;
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

/// An event as it is kept.
#[derive(Clone, Debug)]
pub struct ExportedEvent {
    pub id: EventId,
    pub at: Timestamp,
    pub ingested_at: Timestamp,
    pub source: Option<String>,
    pub ingest_id: Option<String>,
    pub parameters: String,
    pub name: String,
    /// Of the service's own entries: their place in the chain, and the digest of the link.
    pub chain: Option<(i64, String)>,
}

row! {
    ExportedEvent = "event_rows" {
        id, at: "happened_at", ingested_at, source: "ingest_source", ingest_id, parameters
    }
    name: String::new(), chain: None
}

const NAME: &str = "SELECT id, name FROM event_names WHERE app_id = $1 AND id >= $2 ORDER BY id LIMIT 1";
const ROWS: &str = sql!(
    "SELECT ",
    ExportedEvent::COLUMNS,
    " FROM event_rows WHERE app_id = $1 AND name_id = $2 AND (happened_at, id) > ($3, $4) AND happened_at <= $5 \
      ORDER BY happened_at, id LIMIT $6"
);

pub fn read(tx: &mut Tx<'_>, wanted: &WantedEvents) -> Result<Part> {
    let (app, mut place) = (wanted.app, wanted.cursor.clone());
    let (mut events, mut bytes): (Vec<ExportedEvent>, usize) = (Vec::new(), 0);
    while let Some((name, text)) = tx.opt::<(i64, String)>(NAME, &args![app, place.name])? {
        if name != place.name {
            place = Cursor { name, ..Cursor::default() };
        }
        let at = place.at.unwrap_or(wanted.from).max(wanted.from);
        // Ids after nothing: a time before the first one is asked for without any.
        let after = if place.at == Some(at) { place.id.as_str() } else { "" };
        let room = PAGE.min(MOST_EVENTS - events.len());
        let page: Vec<ExportedEvent> =
            tx.all(ROWS, &args![app, name, at, after, wanted.to, i64::try_from(room).unwrap_or(i64::MAX)])?;
        let is_last = page.len() < room;
        for event in page {
            bytes += event.parameters.len();
            place = Cursor { name, at: Some(event.at.as_micros()), id: event.id.to_string() };
            events.push(ExportedEvent { name: text.clone(), ..event });
            if bytes >= MOST_BYTES {
                break;
            }
        }
        if events.len() >= MOST_EVENTS || bytes >= MOST_BYTES {
            return with_links(tx, app, events, Some(place));
        }
        if is_last {
            place = Cursor { name: name + 1, ..Cursor::default() };
        }
    }
    with_links(tx, app, events, None)
}

fn with_links(tx: &mut Tx<'_>, app: AppId, mut events: Vec<ExportedEvent>, next: Option<Cursor>) -> Result<Part> {
    let own = |event: &&ExportedEvent| event.source.as_deref() == Some(crate::ingest::OWN_SOURCE);
    let ids: Vec<String> = events.iter().filter(own).map(|event| event.id.to_string()).collect();
    let links = audit::positions(tx, app, &ids)?;
    let mut links: HashMap<EventId, (i64, String)> =
        links.into_iter().map(|(id, seq, digest)| (id, (seq, digest))).collect();
    for event in &mut events {
        event.chain = links.remove(&event.id);
    }
    Ok(Part { events, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let cursor = Cursor { name: 7, at: Some(-5), id: EventId::from_u128(9).to_string() };
        assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
        for wrong in ["", "x", "7 5", "Ny41"] {
            assert_eq!(Cursor::parse(wrong), None, "{wrong}");
        }
    }
}
