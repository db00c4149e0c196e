//! Reads the log, whatever form its events are in.

use std::{cmp::Reverse, collections::HashMap, rc::Rc};

use ::store::Tx;
use kernel::{AppId, Result, Timestamp};

use super::{Block, BlockId, KeptEvent, LogPlace, Series, StoredBlock, blocks, rows};
use crate::{
    LoggedEventId,
    scans::{Allowance, Stop},
};

/// After every id.
const LAST_ID: &str = "~";

/// So many events of a block are as dear as a row. They cost less, but a question that needs several blocks should not begin
/// where it cannot end.
const EVENTS_PER_ROW: i64 = 2;

/// Which events are read, and from which end.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::enum_variant_names, reason = "each says which end comes first")]
pub enum Order {
    OldestFirst(Series),
    NewestFirst(Series),
    /// Entries of the audit trail, of one name or of all.
    TrailNewestFirst(AppId, Option<i64>),
}

impl Order {
    fn is_ascending(self) -> bool {
        matches!(self, Self::OldestFirst(_))
    }
}

/// Reads events in their order, a page at a time.
pub struct EventReader<'a> {
    order: Order,
    /// Both inclusive.
    from: Timestamp,
    to: Timestamp,
    /// The last event that was read.
    after: Option<LogPlace>,
    /// Blocks in which nobody is named in one of these ways are passed over.
    naming: Vec<Naming>,
    allowance: &'a Allowance,
    /// About how many rows were read.
    read: usize,
    /// Blocks that the last page was in.
    open: HashMap<BlockId, Rc<Vec<KeptEvent>>>,
}

/// An entity, and the parameters that may name it.
pub struct Naming {
    pub parameters: Vec<String>,
    pub entity: String,
}

impl<'a> EventReader<'a> {
    pub fn new(order: Order, (from, to): (Timestamp, Timestamp), allowance: &'a Allowance) -> Self {
        Self { order, from, to, after: None, naming: Vec::new(), allowance, read: 0, open: HashMap::new() }
    }

    #[must_use]
    pub fn after(self, place: LogPlace) -> Self {
        Self { after: Some(place), ..self }
    }

    /// Leaves out blocks without events that fit; those of the others are read, whether they fit or not.
    #[must_use]
    pub fn naming(self, naming: Vec<Naming>) -> Self {
        Self { naming, ..self }
    }

    /// The next events; fewer than `most` only at the end.
    pub fn page(&mut self, tx: &mut Tx<'_>, most: usize) -> Result<Vec<KeptEvent>, Stop> {
        let mut page = self.rows(tx, most)?;
        self.spend(page.len())?;
        let mut used = HashMap::new();
        let mut last: Option<StoredBlock> = None;
        'blocks: loop {
            let found = self.blocks(tx, last.as_ref())?;
            for block in &found {
                if page.len() >= most && page.last().is_none_or(|last| self.begins_behind(block, last)) {
                    break 'blocks;
                }
                let events = self.events_of(tx, block)?;
                page.extend(events.iter().filter(|event| self.is_wanted(event)).cloned());
                used.insert(block.id, events);
                self.sort(&mut page);
                page.truncate(most);
            }
            if found.len() < blocks::PAGE {
                break;
            }
            last = found.into_iter().last();
        }
        self.open = used;
        self.after = page.last().map(KeptEvent::place).or(self.after.take());
        Ok(page)
    }

    fn rows(&self, tx: &mut Tx<'_>, most: usize) -> Result<Vec<KeptEvent>> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let start = self.after.clone().unwrap_or_else(|| match self.order.is_ascending() {
            true => LogPlace { at: self.from, id: String::new() },
            false => LogPlace { at: self.to, id: LAST_ID.to_owned() },
        });
        match self.order {
            Order::OldestFirst(series) => rows::after(tx, series, &start, self.to, most),
            Order::NewestFirst(series) => rows::before(tx, series, &start, self.from, most),
            Order::TrailNewestFirst(app, name) => rows::audited_before(tx, (app, name), &start, self.from, most),
        }
    }

    /// Those in which the next events may be.
    fn blocks(&self, tx: &mut Tx<'_>, last: Option<&StoredBlock>) -> Result<Vec<StoredBlock>> {
        let reached = self.after.as_ref().map(|place| place.at);
        let (from, to) = match self.order.is_ascending() {
            true => (reached.unwrap_or(self.from), self.to),
            false => (self.from, reached.unwrap_or(self.to)),
        };
        match self.order {
            Order::OldestFirst(series) => blocks::ascending(tx, series, (from, to), last),
            Order::NewestFirst(Series { app, name }) => blocks::descending(tx, (app, Some(name)), (from, to), last),
            Order::TrailNewestFirst(app, name) => blocks::descending(tx, (app, name), (from, to), last),
        }
    }

    /// Whether all events of a block, and of those after it, come after this one.
    fn begins_behind(&self, block: &StoredBlock, event: &KeptEvent) -> bool {
        if self.order.is_ascending() { block.first_at > event.at } else { block.last_at < event.at }
    }

    fn is_wanted(&self, event: &KeptEvent) -> bool {
        let place = event.place();
        let is_next = self.after.as_ref().is_none_or(|after| match self.order.is_ascending() {
            true => place > *after,
            false => place < *after,
        });
        let is_trail = matches!(self.order, Order::TrailNewestFirst(..));
        is_next && event.at >= self.from && event.at <= self.to && (event.audited || !is_trail)
    }

    fn sort(&self, page: &mut [KeptEvent]) {
        match self.order.is_ascending() {
            true => page.sort_by_key(|event| (event.at, event.id)),
            false => page.sort_by_key(|event| Reverse((event.at, event.id))),
        }
    }

    fn events_of(&mut self, tx: &mut Tx<'_>, block: &StoredBlock) -> Result<Rc<Vec<KeptEvent>>, Stop> {
        if let Some(open) = self.open.get(&block.id) {
            return Ok(Rc::clone(open));
        }
        self.spend(price(block))?;
        let open = block.open(tx)?;
        for Naming { parameters, entity } in &self.naming {
            let mut is_named = false;
            for parameter in parameters {
                is_named = is_named || open.naming(parameter, entity)?.contains(&true);
            }
            if !is_named {
                return Ok(Rc::default());
            }
        }
        Ok(Rc::new(open.events(block.name)?))
    }

    fn spend(&mut self, rows: usize) -> Result<(), Stop> {
        self.read += rows;
        self.allowance.check(self.read)
    }
}

fn price(block: &StoredBlock) -> usize {
    usize::try_from(block.events / EVENTS_PER_ROW + 1).unwrap_or(usize::MAX)
}

/// Whether there are events from the first instant to before the last, in microseconds.
pub fn any(tx: &mut Tx<'_>, series: Series, (from, to): (i64, i64)) -> Result<bool> {
    if rows::any(tx, series, (from, to))? {
        return Ok(true);
    }
    let time = (Timestamp::from_micros(from), Timestamp::from_micros(to - 1));
    let mut last: Option<StoredBlock> = None;
    loop {
        let found = blocks::ascending(tx, series, time, last.as_ref())?;
        for block in &found {
            let inside = |at: Timestamp| at >= time.0 && at <= time.1;
            if inside(block.first_at) || inside(block.last_at) {
                return Ok(true);
            }
            if block.open(tx)?.times()?.into_iter().any(|at| (from..to).contains(&at)) {
                return Ok(true);
            }
        }
        if found.len() < blocks::PAGE {
            return Ok(false);
        }
        last = found.into_iter().last();
    }
}

/// Calls `visit` with each block that has events from the first instant to before the last, in microseconds, and its price.
pub fn each_block(
    tx: &mut Tx<'_>,
    series: Series,
    (from, to): (i64, i64),
    visit: &mut dyn FnMut(&StoredBlock, &Block, usize) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let time = (Timestamp::from_micros(from), Timestamp::from_micros(to - 1));
    let mut last: Option<StoredBlock> = None;
    loop {
        let found = blocks::ascending(tx, series, time, last.as_ref())?;
        for block in &found {
            visit(block, &block.open(tx)?, price(block))?;
        }
        if found.len() < blocks::PAGE {
            return Ok(());
        }
        last = found.into_iter().last();
    }
}

/// The event of this id.
pub fn find(tx: &mut Tx<'_>, app: AppId, id: LoggedEventId, allowance: &Allowance) -> Result<Option<KeptEvent>, Stop> {
    if let Some(row) = rows::find(tx, app, id)? {
        return Ok(Some(row));
    }
    let mut read = 0;
    for block in blocks::holding(tx, app, id)? {
        read += price(&block);
        allowance.check(read)?;
        let open = block.open(tx)?;
        if open.has(id)? {
            return Ok(open.events(block.name)?.into_iter().find(|event| event.id == id));
        }
    }
    Ok(None)
}
