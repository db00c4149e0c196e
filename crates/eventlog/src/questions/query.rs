//! `POST /event-log/query`.

use std::{borrow::Cow, collections::BTreeMap};

use ::store::{Tx, args};
use kernel::{AppId, Label, Problems, Result, Timestamp, Words};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use tenancy::callers::{AppCaller, EventRead};
use web::{Json, State, Valid, Validate};

use super::series::{Piece, Reading, Series};
use crate::{
    EventLog,
    grain::Grain,
    names,
    parameters::{addend, equals, number},
    require_own_app,
    scans::{Allowance, Stop},
    storage::Block,
};

/// How buckets are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GroupBy {
    Hour,
    Day,
    Week,
    Month,
    #[default]
    None,
}

impl GroupBy {
    fn grain(self) -> Option<Grain> {
        match self {
            Self::Hour => Some(Grain::Hour),
            Self::Day => Some(Grain::Day),
            Self::Week => Some(Grain::Week),
            Self::Month => Some(Grain::Month),
            Self::None => None,
        }
    }
}

/// Parameters and the plain values that they must have.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Filters(Map<String, Value>);

impl JsonSchema for Filters {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "EventFilters".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let names = Label::json_schema(generator);
        json_schema!({
            "type": "object",
            "maxProperties": 100,
            "propertyNames": names,
            "additionalProperties": {
                "type": ["string", "number", "boolean", "null"],
                "x-message": "must be a string, a number, a boolean or null",
            },
        })
    }
}

/// The body of `POST /event-log/query`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventQuery {
    app_id: Words,
    event_name: Label,
    from: Timestamp,
    to: Timestamp,
    #[serde(default)]
    filters: Option<Filters>,
    #[serde(default)]
    group_by: Option<GroupBy>,
    /// A parameter whose numbers are summed.
    sum_field: Option<Label>,
}

impl Validate for EventQuery {
    fn validate(&self, problems: &mut Problems) {
        problems.check("from", self.from <= self.to, "must not be after to");
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueryAnswer {
    total_count: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_sum: Option<Number>,
    /// Oldest first, without empty ones; only with `groupBy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    buckets: Option<Vec<QueryBucket>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueryBucket {
    bucket_start: Timestamp,
    count: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<Number>,
}

pub(super) async fn query(
    caller: AppCaller<EventRead>,
    State(log): State<EventLog>,
    Valid(query): Valid<EventQuery>,
) -> Result<Json<QueryAnswer>> {
    let app = caller.app_id();
    require_own_app(app, &query.app_id)?;
    let ask = move |tx: &mut Tx<'_>, allowance: &Allowance| answer(tx, app, &query, allowance);
    Ok(Json(log.scans.ask(&log.db, app, ask).await?))
}

#[derive(Clone, Copy, Debug, Default)]
struct Total {
    count: i64,
    sum: f64,
}

impl Total {
    fn add(&mut self, summand: f64) {
        self.add_all(Self { count: 1, sum: summand });
    }

    fn add_all(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
    }
}

fn answer(tx: &mut Tx<'_>, app: AppId, query: &EventQuery, allowance: &Allowance) -> Result<QueryAnswer, Stop> {
    let grain = query.group_by.unwrap_or_default().grain();
    let totals = match names::find(tx, app, &query.event_name)? {
        Some(name) => totals(tx, Series { app, name }, query, grain, allowance)?,
        None => BTreeMap::new(),
    };
    let sums = query.sum_field.is_some();
    let shown = |sum: f64| sums.then(|| number(sum));
    let buckets = totals.iter().filter(|(_, total)| total.count > 0).map(|(start, total)| QueryBucket {
        bucket_start: Timestamp::from_micros(*start),
        count: total.count,
        total: shown(total.sum),
    });
    Ok(QueryAnswer {
        total_count: totals.values().map(|total| total.count).sum(),
        total_sum: shown(totals.values().map(|total| total.sum).sum()),
        buckets: grain.map(|_| buckets.collect()),
    })
}

/// By the start of their bucket; all under one without a grain.
fn totals(
    tx: &mut Tx<'_>,
    series: Series,
    query: &EventQuery,
    grain: Option<Grain>,
    allowance: &Allowance,
) -> Result<BTreeMap<i64, Total>, Stop> {
    let (from, to) = (query.from.as_micros(), query.to.as_micros() + 1);
    let filters = query.filters.clone().unwrap_or_default().0;
    let pieces = match filters.is_empty() {
        true => series.pieces(tx, grain.unwrap_or(Grain::Day), from, to)?,
        false => vec![Piece::Rows { from, to }],
    };
    let bucket = |at: i64| grain.map_or(0, |grain| grain.start(at));
    let mut totals: BTreeMap<i64, Total> = BTreeMap::new();
    let mut reader = Reading::new(allowance);
    for piece in pieces {
        match piece {
            Piece::Buckets { grain, from, to } => {
                for (start, count) in series.events(tx, grain, from, to, i64::MAX)? {
                    totals.entry(bucket(start)).or_default().count += count;
                }
                for (start, sum) in sums(tx, series, query, (grain, from, to))? {
                    totals.entry(bucket(start)).or_default().sum += sum;
                }
                allowance.check(reader.read)?;
            }
            Piece::Rows { from, to } => {
                reader.each_row(tx, series, (from, to), &mut |at, parameters| {
                    let fits = |(name, wanted): (&String, &Value)| {
                        parameters.get(name).is_some_and(|found| equals(wanted, found))
                    };
                    if filters.iter().all(fits) {
                        totals.entry(bucket(at)).or_default().add(summand(query, &parameters));
                    }
                })?;
                reader.each_block(tx, series, (from, to), &mut |stored, block| {
                    let events = Fitting::of(block, &filters, query.sum_field.as_ref())?;
                    let (first, last) = (stored.first_at.as_micros(), stored.last_at.as_micros());
                    // Where all events of a block count in one bucket, their times make no difference.
                    if from <= first && last < to && bucket(first) == bucket(last) {
                        totals.entry(bucket(first)).or_default().add_all(events.total());
                        return Ok(());
                    }
                    let times = block.times()?;
                    for (row, sum) in events.each() {
                        if (from..to).contains(&times[row]) {
                            totals.entry(bucket(times[row])).or_default().add(sum);
                        }
                    }
                    Ok(())
                })?;
            }
        }
    }
    Ok(totals)
}

/// The events of a block that the filters leave, and what they add to the sum.
struct Fitting {
    fits: Vec<bool>,
    sums: Vec<f64>,
}

impl Fitting {
    /// Only the columns that the question names are read.
    fn of(block: &Block, filters: &Map<String, Value>, sum_field: Option<&Label>) -> Result<Self> {
        let mut fits = vec![true; block.length()];
        for (name, wanted) in filters {
            for (fit, found) in fits.iter_mut().zip(block.matching(name, wanted)?) {
                *fit &= found;
            }
        }
        let sums = match sum_field {
            Some(field) if fits.contains(&true) => block.addends(field.as_str())?,
            _ => vec![0.0; fits.len()],
        };
        Ok(Self { fits, sums })
    }

    fn each(&self) -> impl Iterator<Item = (usize, f64)> {
        let events = self.sums.iter().copied().enumerate().zip(&self.fits);
        events.filter(|(_, fits)| **fits).map(|(event, _)| event)
    }

    /// Without a branch for each event: which of them fit cannot be predicted.
    fn total(&self) -> Total {
        let mut total = Total::default();
        for (fits, sum) in self.fits.iter().zip(&self.sums) {
            total.count += i64::from(*fits);
            total.sum += if *fits { *sum } else { 0.0 };
        }
        total
    }
}

/// What is not a number adds nothing.
fn summand(query: &EventQuery, parameters: &Map<String, Value>) -> f64 {
    let field = query.sum_field.as_ref();
    field.and_then(|field| parameters.get(field.as_str())).map_or(0.0, addend)
}

const SUMS: &str = "SELECT starts_at, total FROM event_sums WHERE app_id = $1 AND name_id = $2 AND grain = $3 \
                    AND starts_at >= $4 AND starts_at < $5 AND parameter_id = $6 ORDER BY starts_at";

fn sums(
    tx: &mut Tx<'_>,
    Series { app, name }: Series,
    query: &EventQuery,
    (grain, from, to): (Grain, i64, i64),
) -> Result<Vec<(i64, f64)>> {
    let Some(field) = &query.sum_field else { return Ok(Vec::new()) };
    let field = field.as_str().to_owned();
    let Some((_, parameter)) = names::parameters(tx, app, &[field])?.pop() else { return Ok(Vec::new()) };
    tx.all(SUMS, &args![app, name, grain.number(), from, to, parameter])
}
