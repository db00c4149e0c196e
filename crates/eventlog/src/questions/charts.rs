//! `GET /event-log/charts`.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use ::store::{Tx, args};
use kernel::{AppId, Error, Label, Result, Timestamp, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use tenancy::callers::{AppCaller, EventRead};
use web::{Json, Params, State};

use super::series::{Piece, Reading, Series};
use crate::{
    EventLog,
    fold::{MOST_VALUES, read_part},
    grain::Grain,
    names,
    parameters::{ERASED, Feed, OTHER, feed, number},
    require_own_app,
    scans::{Allowance, Stop, too_wide},
};

/// Values that one answer holds at most.
const MOST_IN_ANSWER: usize = 500_000;
/// Parts of counters that are read at once.
const PARTS_OF_PAGE: i64 = 1_000;
const DEFAULT_LIMIT: u32 = 500;

/// The query of `GET /event-log/charts`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartQuery {
    app_id: Words,
    event_name: Label,
    interval: Grain,
    from: Timestamp,
    to: Timestamp,
    /// 500 unless given; the newest are kept.
    #[schemars(range(min = 1, max = 1_000))]
    limit: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartBucket {
    bucket_start: Timestamp,
    count: i64,
    /// How often each value of a string or boolean parameter occurred.
    parameter_counts: BTreeMap<String, BTreeMap<String, i64>>,
    /// The sums of numeric parameters.
    parameter_sums: BTreeMap<String, Number>,
}

pub(super) async fn charts(
    caller: AppCaller<EventRead>,
    State(log): State<EventLog>,
    Params(query): Params<ChartQuery>,
) -> Result<Json<Vec<ChartBucket>>> {
    let app = caller.app_id();
    if query.from > query.to {
        return Err(Error::invalid("from", "must not be after to"));
    }
    require_own_app(app, &query.app_id)?;
    let ask = move |tx: &mut Tx<'_>, allowance: &Allowance| answer(tx, app, &query, allowance);
    Ok(Json(log.scans.ask(&log.db, app, ask).await?))
}

/// What a bucket holds, by the numbers of parameters.
#[derive(Default)]
struct Tally {
    count: i64,
    values: BTreeMap<i64, BTreeMap<String, i64>>,
    sums: BTreeMap<i64, f64>,
}

impl Tally {
    /// The counters of a bucket.
    fn count_values(&mut self, parameter: i64, counters: Vec<(String, i64)>) {
        match self.values.entry(parameter) {
            // Nearly always: sorting them at once takes much less than looking for the place of each.
            Entry::Vacant(none) => {
                none.insert(counters.into_iter().collect());
            }
            Entry::Occupied(_) => {
                counters.into_iter().for_each(|(value, count)| self.count_value(parameter, value, count));
            }
        }
    }

    /// A bucket that is put together from parts names no more values than others.
    fn count_value(&mut self, parameter: i64, value: String, count: i64) {
        let counts = self.values.entry(parameter).or_default();
        let named = || counts.len() - [OTHER, ERASED].iter().filter(|value| counts.contains_key(**value)).count();
        let is_full = counts.len() >= MOST_VALUES && named() >= MOST_VALUES;
        let is_other = is_full && value != ERASED && !counts.contains_key(&value);
        *counts.entry(if is_other { OTHER.to_owned() } else { value }).or_default() += count;
    }

    fn add(&mut self, parameters: &Map<String, Value>, ids: &BTreeMap<String, i64>) {
        self.count += 1;
        for (name, value) in parameters {
            let Some(id) = ids.get(name) else { continue };
            match feed(value) {
                Some(Feed::Value(text)) => self.count_value(*id, text.to_owned(), 1),
                Some(Feed::Number(number)) => *self.sums.entry(*id).or_default() += number,
                None => {}
            }
        }
    }
}

fn answer(tx: &mut Tx<'_>, app: AppId, query: &ChartQuery, allowance: &Allowance) -> Result<Vec<ChartBucket>, Stop> {
    let Some(name) = names::find(tx, app, &query.event_name)? else { return Ok(Vec::new()) };
    let (series, interval) = (Series { app, name }, query.interval);
    let limit = usize::try_from(query.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
    let mut tallies: BTreeMap<i64, Tally> = BTreeMap::new();
    let mut filling = Filling { series, interval, limit, reader: Reading::new(allowance), values: 0 };
    let pieces = series.pieces(tx, interval, query.from.as_micros(), query.to.as_micros() + 1)?;
    for piece in pieces.into_iter().rev() {
        let bucket = interval.start(piece.from());
        tallies.retain(|_, tally| tally.count > 0);
        if tallies.len() >= limit && !tallies.contains_key(&bucket) {
            break;
        }
        filling.add(tx, piece, &mut tallies)?;
        allowance.check(filling.reader.read)?;
    }
    tallies.retain(|_, tally| tally.count > 0);
    let ids: BTreeSet<i64> =
        tallies.values().flat_map(|tally| tally.values.keys().chain(tally.sums.keys())).copied().collect();
    let ids: Vec<i64> = ids.into_iter().collect();
    let names = names::parameters_by_id(tx, app, &ids)?;
    let named = |id: i64| names.get(&id).cloned().unwrap_or_default();
    let shown = |(start, tally): (i64, Tally)| ChartBucket {
        bucket_start: Timestamp::from_micros(start),
        count: tally.count,
        parameter_counts: tally.values.into_iter().map(|(id, counts)| (named(id), counts)).collect(),
        parameter_sums: tally.sums.into_iter().map(|(id, sum)| (named(id), number(sum))).collect(),
    };
    Ok(tallies.into_iter().map(shown).collect())
}

struct Filling<'a> {
    series: Series,
    interval: Grain,
    limit: usize,
    reader: Reading<'a>,
    /// How many values were read.
    values: usize,
}

const SUMS: &str = "SELECT starts_at, parameter_id, total FROM event_sums WHERE app_id = $1 AND name_id = $2 \
                    AND grain = $3 AND starts_at >= $4 AND starts_at < $5";
const COUNTS: &str = "SELECT starts_at, parameter_id, part, counts FROM event_counts WHERE app_id = $1 AND name_id = $2 \
                      AND grain = $3 AND (starts_at, parameter_id, part) > ($4, $5, $6) AND starts_at < $7 \
                      ORDER BY starts_at, parameter_id, part LIMIT $8";

impl Filling<'_> {
    fn add(&mut self, tx: &mut Tx<'_>, piece: Piece, tallies: &mut BTreeMap<i64, Tally>) -> Result<(), Stop> {
        match piece {
            Piece::Buckets { grain, from, to } => self.add_buckets(tx, grain, (from, to), tallies),
            Piece::Rows { from, to } => self.add_rows(tx, (from, to), tallies),
        }
    }

    fn add_buckets(
        &mut self,
        tx: &mut Tx<'_>,
        grain: Grain,
        (from, to): (i64, i64),
        tallies: &mut BTreeMap<i64, Tally>,
    ) -> Result<(), Stop> {
        let (Series { app, name }, interval) = (self.series, self.interval);
        // Smaller ones are parts of one bucket.
        let most = if grain == interval { self.limit.saturating_sub(tallies.len()) } else { usize::MAX };
        let counts = self.series.events(tx, grain, from, to, i64::try_from(most).unwrap_or(i64::MAX))?;
        let Some((oldest, _)) = counts.last().copied() else { return Ok(()) };
        for (start, count) in counts {
            tallies.entry(interval.start(start)).or_default().count += count;
        }
        let sums: Vec<(i64, i64, f64)> = tx.all(SUMS, &args![app, name, grain.number(), oldest, to])?;
        for (start, parameter, sum) in sums {
            *tallies.entry(interval.start(start)).or_default().sums.entry(parameter).or_default() += sum;
        }
        self.add_counts(tx, grain, (oldest, to), tallies)
    }

    fn add_counts(
        &mut self,
        tx: &mut Tx<'_>,
        grain: Grain,
        (from, to): (i64, i64),
        tallies: &mut BTreeMap<i64, Tally>,
    ) -> Result<(), Stop> {
        let (Series { app, name }, grain) = (self.series, grain.number());
        let mut last = (from, i64::MIN, i64::MIN);
        loop {
            let page: Vec<(i64, i64, i64, String)> =
                tx.all(COUNTS, &args![app, name, grain, last.0, last.1, last.2, to, PARTS_OF_PAGE])?;
            let count = page.len();
            for parts in page.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
                let mut counters = Vec::new();
                for (start, parameter, part, counts) in parts {
                    counters.extend(read_part(counts)?);
                    last = (*start, *parameter, *part);
                }
                self.values += counters.len();
                tallies.entry(self.interval.start(last.0)).or_default().count_values(last.1, counters);
            }
            if self.values > MOST_IN_ANSWER {
                return Err(Stop::Failed(too_wide()));
            }
            if i64::try_from(count).unwrap_or(i64::MAX) < PARTS_OF_PAGE {
                return Ok(());
            }
        }
    }

    fn add_rows(
        &mut self,
        tx: &mut Tx<'_>,
        (from, to): (i64, i64),
        tallies: &mut BTreeMap<i64, Tally>,
    ) -> Result<(), Stop> {
        let mut rows: Vec<Map<String, Value>> = Vec::new();
        self.reader.each(tx, self.series, (from, to), &mut |_, parameters| rows.push(parameters))?;
        let used: BTreeSet<&String> = rows.iter().flat_map(Map::keys).collect();
        let used: Vec<String> = used.into_iter().cloned().collect();
        let ids: BTreeMap<String, i64> = names::parameters(tx, self.series.app, &used)?.into_iter().collect();
        let tally = tallies.entry(self.interval.start(from)).or_default();
        rows.iter().for_each(|parameters| tally.add(parameters, &ids));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_are_read_in_two_pieces_count_as_those_of_one() {
        let counters = |numbers: std::ops::Range<i64>| numbers.map(|number| (format!("v{number}"), 1)).collect();
        let mut tally = Tally::default();
        tally.count_values(1, counters(0..700));
        tally.count_values(1, counters(600..1_200));
        tally.count_values(2, counters(0..3));
        let (values, others) = (&tally.values[&1], &tally.values[&2]);
        assert_eq!((values.len(), values["v0"], values["v650"], values["v999"], others.len()), (1_001, 1, 2, 1, 3));
        assert_eq!((values.get("v1000"), values[OTHER]), (None, 200));
    }
}
