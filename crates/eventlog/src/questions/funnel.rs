//! `POST /event-log/funnel`: how many entities got how far.

use std::collections::HashMap;

use ::store::{Tx, args};
use kernel::{AppId, Label, Problems, Result, Timestamp, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::callers::{AppCaller, EventRead};
use web::{Json, State, Valid, Validate};

use super::parameters_of;
use crate::{
    EventLog, names, require_own_app,
    scans::{Allowance, Stop},
};

/// Entities that are read at once.
const PAGE: usize = 1_000;

/// The body of `POST /event-log/funnel`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunnelQuery {
    app_id: Words,
    /// Names of events, in the order in which they should happen.
    #[schemars(length(min = 1, max = 20))]
    steps: Vec<Label>,
    /// A parameter's name or its stem.
    entity_type: Label,
    /// Only entities whose first step lies in this time.
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

impl Validate for FunnelQuery {
    fn validate(&self, problems: &mut Problems) {
        let in_order = self.from.zip(self.to).is_none_or(|(from, to)| from <= to);
        problems.check("from", in_order, "must not be after to");
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Funnel {
    /// In the order of the question.
    steps: Vec<FunnelStep>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunnelStep {
    event_name: String,
    /// Entities whose first occurrences of all steps up to this one lie in their order.
    count: u64,
}

pub(super) async fn funnel(
    caller: AppCaller<EventRead>,
    State(log): State<EventLog>,
    Valid(query): Valid<FunnelQuery>,
) -> Result<Json<Funnel>> {
    let app = caller.app_id();
    require_own_app(app, &query.app_id)?;
    let ask = move |tx: &mut Tx<'_>, allowance: &Allowance| answer(tx, app, &query, allowance);
    Ok(Json(log.scans.ask(&log.db, app, ask).await?))
}

const ENTRANTS: &str = "SELECT first_at, entity_digest FROM event_firsts WHERE app_number = $1 AND name_id = $2 \
     AND parameter_id = $3 AND first_at >= $4 AND first_at <= $5 AND (first_at, entity_digest) > ($6, $7) \
     ORDER BY first_at, entity_digest LIMIT $8";
const LATER: &str = "SELECT entity_digest, name_id, first_at FROM event_firsts \
     WHERE app_number = $1 AND entity_digest = ANY($2) AND name_id = ANY($3)";

fn answer(tx: &mut Tx<'_>, app: AppId, query: &FunnelQuery, allowance: &Allowance) -> Result<Funnel, Stop> {
    let mut counts = vec![0; query.steps.len()];
    // What follows an event that the app never had is not reached either.
    let mut names = Vec::new();
    for step in &query.steps {
        let Some(name) = names::find(tx, app, step)? else { break };
        names.push(name);
    }
    if let Some((first, later)) = names.split_first() {
        let (from, to) = (query.from.unwrap_or(Timestamp::MIN), query.to.unwrap_or(Timestamp::MAX));
        let most = i64::try_from(PAGE).unwrap_or(i64::MAX);
        let mut read = 0;
        for (_, parameter) in parameters_of(tx, app, &query.entity_type)? {
            let (mut last_at, mut last) = (Timestamp::MIN, String::new());
            loop {
                let page: Vec<(Timestamp, String)> =
                    tx.all(ENTRANTS, &args![app.number(), *first, parameter, from, to, last_at, last, most])?;
                let count = page.len();
                read += count * names.len();
                count_page(tx, app, &page, later, &mut counts)?;
                allowance.check(read)?;
                match page.into_iter().next_back() {
                    Some(newest) if count == PAGE => (last_at, last) = newest,
                    _ => break,
                }
            }
        }
    }
    let steps = query.steps.iter().zip(counts);
    Ok(Funnel { steps: steps.map(|(step, count)| FunnelStep { event_name: step.to_string(), count }).collect() })
}

/// Adds entities that took the first step to every step that they reached.
fn count_page(
    tx: &mut Tx<'_>,
    app: AppId,
    entrants: &[(Timestamp, String)],
    later: &[i64],
    counts: &mut [u64],
) -> Result<()> {
    let entities: Vec<String> = entrants.iter().map(|(_, entity)| entity.clone()).collect();
    let mut firsts: HashMap<(String, i64), Timestamp> = HashMap::new();
    if !later.is_empty() && !entities.is_empty() {
        for (entity, name, at) in tx.all::<(String, i64, Timestamp)>(LATER, &args![app.number(), entities, *later])? {
            firsts.insert((entity, name), at);
        }
    }
    for (entered, entity) in entrants {
        let mut reached = *entered;
        counts[0] += 1;
        for (step, name) in later.iter().enumerate() {
            match firsts.get(&(entity.clone(), *name)) {
                Some(at) if *at >= reached => reached = *at,
                _ => break,
            }
            counts[step + 1] += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ::store::{
        DatabaseUrl, EngineName,
        testing::{TestDb, run, sqlite_plans},
    };

    use super::*;
    use crate::testing::TABLES;

    /// SQLite measures nothing, and goes by what it is told of columns.
    #[test]
    fn later_steps_are_found_by_entity() {
        run(EngineName::Sqlite, TABLES, find_later_steps);
    }

    async fn find_later_steps(test: TestDb) {
        let DatabaseUrl::Sqlite(path) = &test.url else { panic!("SQLite is a file") };
        let plans = sqlite_plans(path, &[LATER.to_owned()]);
        assert!(plans[0].contains("app_number=? AND entity_digest=?"), "{}", plans[0]);
    }
}
