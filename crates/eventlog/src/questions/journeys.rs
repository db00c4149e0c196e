//! `GET /event-log/entities/{entity_type}/{entity_value}` and `GET /event-log/journeys/stats`: the first occurrences of
//! events, by entity.

use ::store::{Tx, args};
use kernel::{AppId, Error, Label, Result, Timestamp, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Map;
use tenancy::callers::{AppCaller, EventRead};
use web::{Json, Params, Path, State};

use crate::{
    EventLog, names,
    parameters::{entity_digest, names_identifier},
    require_own_app,
    scans::{Allowance, Stop, too_wide},
};

/// Pairs grow with the square: an entity with more events than this is not described.
const MOST_EVENTS: usize = 1_000;
/// Journeys that are read at once.
const PAGE: i64 = 5_000;

/// The query of an entity's journey.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntityQuery {
    app_id: Words,
}

/// A journey.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Journey {
    /// When each event first happened.
    #[schemars(with = "std::collections::BTreeMap<String, Timestamp>")]
    events: Map<String, serde_json::Value>,
    /// Milliseconds from each event to each later one, as `<a>_to_<b>`.
    #[schemars(with = "std::collections::BTreeMap<String, i64>")]
    durations: Map<String, serde_json::Value>,
}

/// What a path names an entity by.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct EntityPath {
    entity_type: String,
    entity_value: String,
}

pub(super) async fn entity(
    caller: AppCaller<EventRead>,
    State(log): State<EventLog>,
    Path(EntityPath { entity_type, entity_value }): Path<EntityPath>,
    Params(query): Params<EntityQuery>,
) -> Result<Json<Journey>> {
    let app = caller.app_id();
    require_own_app(app, &query.app_id)?;
    let read = move |tx: &mut Tx<'_>| firsts(tx, app, &entity_type, &entity_value);
    let firsts = log.db.snapshot(read).await?;
    match firsts.len() {
        0 => Err(Error::not_found("entity with events")),
        count if count > MOST_EVENTS => Err(too_wide()),
        _ => Ok(Json(journey(&firsts))),
    }
}

/// Events in the order of their first times.
fn journey(firsts: &[(String, Timestamp)]) -> Journey {
    let events = firsts.iter().map(|(name, at)| (name.clone(), at.to_string().into())).collect();
    let mut durations = Map::new();
    for (place, (earlier, from)) in firsts.iter().enumerate() {
        for (later, to) in &firsts[place + 1..] {
            durations.insert(format!("{earlier}_to_{later}"), (to.as_millis() - from.as_millis()).into());
        }
    }
    Journey { events, durations }
}

const FIRSTS: &str = "SELECT name_id, first_at FROM event_firsts WHERE app_number = $1 AND entity_digest = $2";

/// What an entity type stands for: the parameter of that name or, if there is none, those of that stem.
pub(crate) fn parameters_of(tx: &mut Tx<'_>, app: AppId, entity_type: &str) -> Result<Vec<(String, i64)>> {
    let exact = names::parameters(tx, app, &[entity_type.to_owned()])?;
    let found = match exact.is_empty() {
        false => exact,
        true => {
            let of_stem = ["Id", "_id", "id"].map(|end| format!("{entity_type}{end}"));
            names::parameters(tx, app, &of_stem)?
        }
    };
    Ok(found.into_iter().filter(|(name, _)| names_identifier(name)).collect())
}

fn firsts(tx: &mut Tx<'_>, app: AppId, entity_type: &str, value: &str) -> Result<Vec<(String, Timestamp)>> {
    let mut firsts: std::collections::HashMap<i64, Timestamp> = std::collections::HashMap::new();
    for (parameter, _) in parameters_of(tx, app, entity_type)? {
        let digest = entity_digest(&parameter, value);
        for (name, at) in tx.all::<(i64, Timestamp)>(FIRSTS, &args![app.number(), digest])? {
            let first = firsts.entry(name).or_insert(at);
            *first = at.min(*first);
        }
    }
    let ids: Vec<i64> = firsts.keys().copied().collect();
    let names = names::by_id(tx, app, &ids)?;
    let mut sorted: Vec<(Timestamp, i64)> = firsts.into_iter().map(|(name, at)| (at, name)).collect();
    sorted.sort_unstable();
    Ok(sorted.into_iter().filter_map(|(at, id)| Some((names.get(&id)?.clone(), at))).collect())
}

/// The query of `GET /event-log/journeys/stats`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatsQuery {
    app_id: Words,
    start_event: Label,
    end_event: Label,
    /// All types unless given.
    entity_type: Option<Label>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

/// How long journeys take, in milliseconds; all 0 when there are none.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JourneyStats {
    count: i64,
    average_ms: i64,
    median_ms: i64,
    min_ms: i64,
    max_ms: i64,
}

pub(super) async fn stats(
    caller: AppCaller<EventRead>,
    State(log): State<EventLog>,
    Params(query): Params<StatsQuery>,
) -> Result<Json<JourneyStats>> {
    let app = caller.app_id();
    if query.from.zip(query.to).is_some_and(|(from, to)| from > to) {
        return Err(Error::invalid("from", "must not be after to"));
    }
    require_own_app(app, &query.app_id)?;
    let ask = move |tx: &mut Tx<'_>, allowance: &Allowance| durations(tx, app, &query, allowance);
    Ok(Json(stats_of(log.scans.ask(&log.db, app, ask).await?)))
}

const JOURNEYS: &str = "SELECT ends.first_at, ends.entity_digest, starts.first_at FROM event_firsts AS ends \
     JOIN event_firsts AS starts ON starts.app_number = ends.app_number AND starts.entity_digest = ends.entity_digest \
     AND starts.name_id = $3 AND starts.first_at <= ends.first_at \
     WHERE ends.app_number = $1 AND ends.name_id = $2 AND ends.parameter_id = $4 \
     AND ends.first_at >= $5 AND ends.first_at <= $6 AND (ends.first_at, ends.entity_digest) > ($7, $8) \
     ORDER BY ends.first_at, ends.entity_digest LIMIT $9";

/// Of every entity that had both events in their order.
fn durations(tx: &mut Tx<'_>, app: AppId, query: &StatsQuery, allowance: &Allowance) -> Result<Vec<i64>, Stop> {
    let start = names::find(tx, app, &query.start_event)?;
    let end = names::find(tx, app, &query.end_event)?;
    let (Some(start), Some(end)) = (start, end) else { return Ok(Vec::new()) };
    let (from, to) = (query.from.unwrap_or(Timestamp::MIN), query.to.unwrap_or(Timestamp::MAX));
    let mut durations = Vec::new();
    for parameter in parameters_wanted(tx, app, query.entity_type.as_deref())? {
        let (mut last_at, mut last_entity) = (Timestamp::MIN, String::new());
        loop {
            let page: Vec<(Timestamp, String, Timestamp)> =
                tx.all(JOURNEYS, &args![app.number(), end, start, parameter, from, to, last_at, last_entity, PAGE])?;
            let count = page.len();
            for (ended, entity, started) in page {
                durations.push(ended.as_millis() - started.as_millis());
                (last_at, last_entity) = (ended, entity);
            }
            allowance.check(durations.len())?;
            if i64::try_from(count).unwrap_or(i64::MAX) < PAGE {
                break;
            }
        }
    }
    Ok(durations)
}

/// The numbers of the identifiers to look at.
fn parameters_wanted(tx: &mut Tx<'_>, app: AppId, entity_type: Option<&str>) -> Result<Vec<i64>> {
    let found = match entity_type {
        Some(entity_type) => parameters_of(tx, app, entity_type)?,
        None => names::all_parameters(tx, app)?.into_iter().filter(|(name, _)| names_identifier(name)).collect(),
    };
    Ok(found.into_iter().map(|(_, id)| id).collect())
}

fn stats_of(mut durations: Vec<i64>) -> JourneyStats {
    durations.sort_unstable();
    let (Some(min), Some(max)) = (durations.first().copied(), durations.last().copied()) else {
        return JourneyStats::default();
    };
    let middle = durations.len() / 2;
    let median = match durations.len() % 2 {
        1 => durations[middle],
        _ => rounded(i128::from(durations[middle - 1]) + i128::from(durations[middle]), 2),
    };
    let count = i64::try_from(durations.len()).unwrap_or(i64::MAX);
    let sum: i128 = durations.iter().copied().map(i128::from).sum();
    JourneyStats { count, average_ms: rounded(sum, count), median_ms: median, min_ms: min, max_ms: max }
}

/// Half up; durations are not negative.
fn rounded(sum: i128, count: i64) -> i64 {
    let count = i128::from(count);
    i64::try_from((sum * 2 + count) / (count * 2)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_and_medians_are_rounded_half_up() {
        let stats = |durations: &[i64]| {
            let stats = stats_of(durations.to_vec());
            (stats.count, stats.average_ms, stats.median_ms, stats.min_ms, stats.max_ms)
        };
        assert_eq!(stats(&[]), (0, 0, 0, 0, 0));
        assert_eq!(stats(&[3, 0]), (2, 2, 2, 0, 3));
        assert_eq!(stats(&[10, 1, 3]), (3, 5, 3, 1, 10));
        assert_eq!(stats(&[1, 1, 2]), (3, 1, 1, 1, 2));
    }
}
