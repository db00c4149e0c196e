//! The events of one name in a time: which parts of it are whole buckets, and which have to be read row by row.

use ::store::{Tx, args};
use kernel::{Error, Result};
use serde_json::{Map, Value};

pub use crate::storage::Series;
use crate::{
    grain::Grain,
    scans::{Allowance, Stop},
    storage::{self, Block, StoredBlock},
};

/// A part of a time; both from the first instant, without the last, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    Buckets { grain: Grain, from: i64, to: i64 },
    Rows { from: i64, to: i64 },
}

impl Piece {
    pub fn from(self) -> i64 {
        match self {
            Self::Buckets { from, .. } | Self::Rows { from, .. } => from,
        }
    }
}

const PAGE: &str = "SELECT happened_at, id, parameters FROM event_rows WHERE app_id = $1 AND name_id = $2 \
                    AND (happened_at, id) > ($3, $4) AND happened_at < $5 ORDER BY happened_at, id LIMIT $6";
const EVENTS: &str = "SELECT starts_at, events FROM event_buckets WHERE app_id = $1 AND name_id = $2 AND grain = $3 \
                      AND starts_at >= $4 AND starts_at < $5 ORDER BY starts_at DESC LIMIT $6";

const ROWS_OF_PAGE: usize = 1_000;

impl Series {
    /// The time in whole buckets of this length, and its ends in smaller ones or rows. A bucket that is cut off where
    /// nothing happened is as good as whole.
    pub fn pieces(self, tx: &mut Tx<'_>, grain: Grain, from: i64, to: i64) -> Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        self.add_pieces(tx, grain, (from, to), &mut pieces)?;
        Ok(pieces)
    }

    fn add_pieces(self, tx: &mut Tx<'_>, grain: Grain, time: (i64, i64), pieces: &mut Vec<Piece>) -> Result<()> {
        let (mut from, mut to) = time;
        if from >= to {
            return Ok(());
        }
        let start = grain.start(from);
        if start < from && !storage::any(tx, self, (start, from))? {
            from = start;
        }
        let end = grain.end(grain.start(to - 1));
        if to < end && !storage::any(tx, self, (to, end))? {
            to = end;
        }
        let whole_from = if grain.start(from) == from { from } else { grain.end(grain.start(from)) };
        let whole_to = grain.start(to);
        if whole_from > whole_to {
            return self.add_part(tx, grain, (from, to), pieces);
        }
        self.add_part(tx, grain, (from, whole_from), pieces)?;
        if whole_from < whole_to {
            pieces.push(Piece::Buckets { grain, from: whole_from, to: whole_to });
        }
        self.add_part(tx, grain, (whole_to, to), pieces)
    }

    fn add_part(self, tx: &mut Tx<'_>, grain: Grain, (from, to): (i64, i64), pieces: &mut Vec<Piece>) -> Result<()> {
        match grain.finer() {
            _ if from >= to => Ok(()),
            Some(finer) => self.add_pieces(tx, finer, (from, to), pieces),
            None => {
                pieces.push(Piece::Rows { from, to });
                Ok(())
            }
        }
    }

    /// Starts and counts of the newest buckets of a piece, at most so many, newest first.
    pub fn events(self, tx: &mut Tx<'_>, grain: Grain, from: i64, to: i64, most: i64) -> Result<Vec<(i64, i64)>> {
        tx.all(EVENTS, &args![self.app, self.name, grain.number(), from, to, most])
    }
}

/// Reads events in any order, as many as are allowed.
pub struct Reading<'a> {
    pub allowance: &'a Allowance,
    /// About how many rows were read.
    pub read: usize,
}

impl<'a> Reading<'a> {
    pub fn new(allowance: &'a Allowance) -> Self {
        Self { allowance, read: 0 }
    }

    /// Calls `visit` with the time and the parameters of each event.
    pub fn each(
        &mut self,
        tx: &mut Tx<'_>,
        series: Series,
        (from, to): (i64, i64),
        visit: &mut dyn FnMut(i64, Map<String, Value>),
    ) -> Result<(), Stop> {
        self.each_row(tx, series, (from, to), visit)?;
        self.each_block(tx, series, (from, to), &mut |_, block| {
            let events = block.times()?.into_iter().zip(block.parameters()?);
            events.filter(|(at, _)| (from..to).contains(at)).for_each(|(at, parameters)| visit(at, parameters));
            Ok(())
        })
    }

    /// The blocks in which some of the events are, others beside them.
    pub fn each_block(
        &mut self,
        tx: &mut Tx<'_>,
        series: Series,
        time: (i64, i64),
        visit: &mut dyn FnMut(&StoredBlock, &Block) -> Result<()>,
    ) -> Result<(), Stop> {
        storage::each_block(tx, series, time, &mut |stored, block, price| {
            self.read += price;
            self.allowance.check(self.read)?;
            Ok(visit(stored, block)?)
        })
    }

    /// The events that are in no block.
    pub fn each_row(
        &mut self,
        tx: &mut Tx<'_>,
        series: Series,
        (from, to): (i64, i64),
        visit: &mut dyn FnMut(i64, Map<String, Value>),
    ) -> Result<(), Stop> {
        let (mut at, mut id) = (from, String::new());
        loop {
            let most = i64::try_from(ROWS_OF_PAGE).unwrap_or(i64::MAX);
            let page: Vec<(i64, String, String)> = tx.all(PAGE, &args![series.app, series.name, at, id, to, most])?;
            let count = page.len();
            for (happened_at, event, parameters) in page {
                visit(happened_at, serde_json::from_str(&parameters).map_err(Error::internal)?);
                (at, id) = (happened_at, event);
            }
            self.read += count;
            self.allowance.check(self.read)?;
            if count < ROWS_OF_PAGE {
                return Ok(());
            }
        }
    }
}
