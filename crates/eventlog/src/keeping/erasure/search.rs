//! Looks for what an erasure has to change next. Changes nothing.

use kernel::{AppId, Error, Result};
use serde_json::{Map, Value};
use store::{Json, Tx, args};

use super::{Erasure, Place};
use crate::{
    fold::{self, Bucket, NAMELESS},
    grain::Grain,
    names::{self, OWN_PREFIX},
    parameters::{EMAIL, ERASED, entity_digest, is_traced, traced},
    questions::parameters_of,
    storage::{self, Series, StoredBlock, WrittenBlock},
};

/// Rows or buckets that are read at once.
const PAGE: usize = 100;
/// Pages that one step reads, unless it finds something to change before.
const MOST_PAGES: usize = 20;

/// What one step changes.
#[derive(Debug, Default)]
pub struct Found {
    pub rows: Vec<FoundRow>,
    pub block: Option<FoundBlock>,
    /// Parts with counters of the value: bucket, parameter and part.
    pub counters: Vec<(Bucket, i64, i64)>,
    /// First occurrences whose rows are done: entity and name.
    pub firsts: Vec<(String, i64)>,
    /// Where the next step begins; `None` at the end.
    pub next: Option<Place>,
}

/// An event that names the entity.
#[derive(Debug)]
pub struct FoundRow {
    pub id: String,
    pub name: i64,
    pub at: i64,
    pub before: String,
    pub after: String,
    /// Parameters whose number goes out of the sums.
    pub numbers: Vec<(i64, f64)>,
    /// What is erased.
    pub values: Vec<(String, Value)>,
}

/// A block with events that name the entity.
#[derive(Debug)]
pub struct FoundBlock {
    pub before: StoredBlock,
    pub after: WrittenBlock,
    pub rows: Vec<FoundRow>,
}

impl Found {
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.block.is_none() && self.counters.is_empty() && self.firsts.is_empty()
    }
}

const NAME: &str = "SELECT id, name FROM event_names WHERE app_id = $1 AND id >= $2 ORDER BY id LIMIT 1";
const HAPPENED: &str = "SELECT 1 FROM event_firsts WHERE app_number = $1 AND entity_digest = $2 AND name_id = $3";
const ROWS: &str = "SELECT happened_at, id, parameters FROM event_rows WHERE app_id = $1 AND name_id = $2 \
                    AND (happened_at, id) > ($3, $4) ORDER BY happened_at, id LIMIT $5";
const BUCKETS: &str = "SELECT grain, starts_at FROM event_buckets WHERE app_id = $1 AND name_id = $2 \
                       AND (grain, starts_at) > ($3, $4) ORDER BY grain, starts_at LIMIT $5";
const MONTHS: &str = "SELECT starts_at FROM event_buckets WHERE app_id = $1 AND name_id = $2 AND grain = $3";
const USED: &str = "SELECT 1 FROM event_counts WHERE app_id = $1 AND name_id = $2 AND grain = $3 AND starts_at = $4 \
                    AND parameter_id = $5 LIMIT 1";
const COUNTED: &str = "SELECT part, counts FROM event_counts WHERE app_id = $1 AND name_id = $2 AND grain = $3 \
                       AND starts_at = $4 AND parameter_id = $5 AND part > $6";

/// Looks on from where the erasure is until there is something to change, or for as long as a step may take.
pub fn look(tx: &mut Tx<'_>, erasure: &Erasure) -> Result<Found> {
    let Erasure { app, entity_value: value, .. } = erasure;
    let named = match erasure.entity_type.as_str() {
        EMAIL => names::parameters(tx, *app, &[EMAIL.to_owned()])?,
        other => parameters_of(tx, *app, other)?,
    };
    let is_address = value.contains('@');
    // The service's own entries have addresses under other names too, which nobody follows from event to event.
    let all = names::all_parameters(tx, *app)?;
    let all: Vec<_> = all.into_iter().filter(|(name, _)| is_address || is_traced(name)).collect();
    let mut found = Found { next: erasure.place.clone().map(|Json(place)| place), ..Found::default() };
    let mut place = found.next.take().unwrap_or_else(|| Place::of(0));
    for _ in 0..MOST_PAGES {
        let Some((name, text)) = tx.opt::<(i64, String)>(NAME, &args![*app, place.name()])? else { return Ok(found) };
        if name != place.name() {
            place = Place::of(name);
        }
        let is_own = text.starts_with(OWN_PREFIX);
        let parameters = if is_own { &all } else { &named };
        let search = Search { app: *app, name, parameters, value, is_own_address: is_own && is_address };
        place = match place {
            Place::Rows { at, id, .. } => search.rows(tx, at, &id, &mut found)?,
            Place::Blocks { id, .. } => search.blocks(tx, &id, &mut found)?,
            Place::Counters { grain, start, .. } => search.counters(tx, grain, start, &mut found)?,
        };
        found.next = Some(place.clone());
        if !found.is_empty() {
            break;
        }
    }
    Ok(found)
}

/// Looks among what is of one name.
struct Search<'a> {
    app: AppId,
    name: i64,
    parameters: &'a [(String, i64)],
    value: &'a str,
    /// An address in the service's own entries: it may stand in any member, and no first occurrence tells of it.
    is_own_address: bool,
}

impl Search<'_> {
    /// Events that name the entity, where it is known that there are any.
    fn rows(&self, tx: &mut Tx<'_>, at: i64, id: &str, found: &mut Found) -> Result<Place> {
        let (app, name) = (self.app, self.name);
        if !self.is_own_address && self.happened(tx)?.is_empty() {
            return Ok(self.before_counters());
        }
        let most = i64::try_from(PAGE).unwrap_or(i64::MAX);
        let page: Vec<(i64, String, String)> = tx.all(ROWS, &args![app, name, at, id, most])?;
        let next = page.last().map(|(at, id, _)| Place::Rows { name, at: *at, id: id.clone() });
        let is_last = page.len() < PAGE;
        for (at, id, before) in page {
            found.rows.extend(self.rewritten(at, id, before)?);
        }
        match next {
            Some(next) if !is_last => Ok(next),
            _ => Ok(Place::Blocks { name, id: String::new() }),
        }
    }

    /// First occurrences of the entity.
    fn happened(&self, tx: &mut Tx<'_>) -> Result<Vec<(String, i64)>> {
        let mut happened = Vec::new();
        for (parameter, _) in self.parameters {
            let entity = entity_digest(parameter, self.value);
            if tx.exists(HAPPENED, &args![self.app.number(), entity, self.name])? {
                happened.push((entity, self.name));
            }
        }
        Ok(happened)
    }

    fn before_counters(&self) -> Place {
        Place::Counters { name: self.name, grain: -1, start: 0 }
    }

    /// The next block, rewritten if it names the entity.
    fn blocks(&self, tx: &mut Tx<'_>, after: &str, found: &mut Found) -> Result<Place> {
        let series = Series { app: self.app, name: self.name };
        let Some(before) = storage::next_block(tx, series, after)? else {
            found.firsts = self.happened(tx)?;
            return Ok(self.before_counters());
        };
        let (block, next) = (before.open(tx)?, Place::Blocks { name: self.name, id: before.id.to_string() });
        let mut is_named = false;
        for (parameter, _) in self.parameters {
            is_named = is_named || block.naming(parameter, self.value)?.contains(&true);
        }
        if !is_named {
            return Ok(next);
        }
        let (mut events, mut rows) = (block.events(self.name)?, Vec::new());
        for event in &mut events {
            let before = std::mem::take(&mut event.parameters);
            let row = self.rewritten(event.at.as_micros(), event.id.to_string(), before.clone())?;
            event.parameters = row.as_ref().map_or(before, |row| row.after.clone());
            rows.extend(row);
        }
        let after = WrittenBlock::of(series, &events)?;
        found.block = after.map(|after| FoundBlock { before, after, rows });
        Ok(next)
    }

    fn rewritten(&self, at: i64, id: String, before: String) -> Result<Option<FoundRow>> {
        let mut event: Map<String, Value> = serde_json::from_str(&before).map_err(Error::internal)?;
        let (mut numbers, mut values) = (Vec::new(), Vec::new());
        for (parameter, number) in self.parameters {
            let Some(held) = event.get_mut(parameter) else { continue };
            if self.is_wanted(parameter, held) {
                numbers.extend(held.is_number().then(|| (*number, crate::parameters::addend(held))));
                values.push((parameter.clone(), std::mem::replace(held, ERASED.into())));
            }
        }
        let after = Value::Object(event).to_string();
        Ok((!values.is_empty()).then_some(FoundRow { id, name: self.name, at, before, after, numbers, values }))
    }

    fn is_wanted(&self, parameter: &str, held: &Value) -> bool {
        match self.is_own_address {
            true => held == self.value,
            false => traced(parameter, held).is_some_and(|held| held == self.value),
        }
    }

    /// Counters of the value, where events of this name have one of the parameters at all.
    fn counters(&self, tx: &mut Tx<'_>, grain: i64, start: i64, found: &mut Found) -> Result<Place> {
        let (app, name) = (self.app, self.name);
        let parameters = self.counted_parameters(tx)?;
        if parameters.is_empty() {
            return Ok(Place::of(name + 1));
        }
        let most = i64::try_from(PAGE).unwrap_or(i64::MAX);
        let page: Vec<(i64, i64)> = tx.all(BUCKETS, &args![app, name, grain, start, most])?;
        let next = page.last().copied().filter(|_| page.len() == PAGE);
        for (grain, start) in page {
            for parameter in &parameters {
                let part = self.counted_in(tx, (grain, start), *parameter)?;
                found.counters.extend(part.map(|part| ((name, grain, start), *parameter, part)));
            }
        }
        Ok(match next {
            Some((grain, start)) => Place::Counters { name, grain, start },
            None => Place::of(name + 1),
        })
    }

    /// The part that has a counter of the value.
    fn counted_in(&self, tx: &mut Tx<'_>, (grain, start): (i64, i64), parameter: i64) -> Result<Option<i64>> {
        let parts: Vec<(i64, String)> =
            tx.all(COUNTED, &args![self.app, self.name, grain, start, parameter, NAMELESS])?;
        let written = serde_json::to_string(self.value).map_err(Error::internal)?;
        for (part, counts) in parts {
            // Most parts do not have it, and reading one takes much longer than looking for a text in it. PostgreSQL may
            // have written characters in another way, but never those of most values.
            let may_have = counts.contains(&written) || counts.contains('\\');
            if may_have && fold::read_part(&counts)?.iter().any(|(value, _)| value == self.value) {
                return Ok(Some(part));
            }
        }
        Ok(None)
    }

    fn counted_parameters(&self, tx: &mut Tx<'_>) -> Result<Vec<i64>> {
        let (app, name, month) = (self.app, self.name, Grain::Month.number());
        let months: Vec<(i64,)> = tx.all(MONTHS, &args![app, name, month])?;
        let mut counted = Vec::new();
        for (_, parameter) in self.parameters {
            for (start,) in &months {
                if tx.exists(USED, &args![app, name, month, *start, *parameter])? {
                    counted.push(*parameter);
                    break;
                }
            }
        }
        Ok(counted)
    }
}
