//! First occurrences that nothing is left of.
//!
//! When an entity was last seen is in no index, since the fold would have to write that with every new entity. So all that
//! began long enough ago is looked through, some thousand at a time, and once a day where they are many.

use std::{collections::HashMap, sync::Arc, time::Duration};

use kernel::{AppId, Result, Timestamp};
use store::{Db, Tx, args};
use tokio::sync::Mutex;

use super::BATCH;

/// First occurrences that are looked at in one go.
const PAGE: i64 = 2_000;
/// So few are looked through whenever somebody asks, and of many so many at a time.
const FEW: usize = 5_000;
/// Between the ends of what is looked for in two looks through many.
const A_DAY: Duration = Duration::from_hours(24);

/// By name and parameter, one after the other.
const NEXT: &str = "SELECT name_id, parameter_id FROM event_firsts WHERE app_number = $1 \
     AND (name_id, parameter_id) > ($2, $3) ORDER BY name_id, parameter_id LIMIT 1";
const BEGUN: &str = "SELECT first_at, entity_digest, coalesce(last_at, first_at) FROM event_firsts \
     WHERE app_number = $1 AND name_id = $2 AND parameter_id = $3 AND first_at < $4 AND (first_at, entity_digest) > ($5, $6) \
     ORDER BY first_at, entity_digest LIMIT $7";
const SWEEP: &str = "DELETE FROM event_firsts WHERE app_number = $1 AND entity_digest = ANY($2) AND name_id = $3 \
     AND coalesce(last_at, first_at) < $4";

/// How far this node has looked, by app. What it does not know it looks through once more.
#[derive(Default)]
pub struct Looks(Mutex<HashMap<AppId, Look>>);

#[derive(Clone, Default)]
struct Look {
    /// What the last look, which came to its end, looked for, and among how many.
    done: Option<(Timestamp, usize)>,
    under_way: Option<UnderWay>,
}

/// A look that has not come to its end.
#[derive(Clone)]
struct UnderWay {
    before: Timestamp,
    looked_at: usize,
    name: i64,
    parameter: i64,
    /// Of this name and parameter, what comes after it is still to be looked at.
    after: (Timestamp, Arc<str>),
}

impl UnderWay {
    fn of(before: Timestamp) -> Self {
        Self { before, looked_at: 0, name: i64::MIN, parameter: i64::MIN, after: beginning() }
    }
}

fn beginning() -> (Timestamp, Arc<str>) {
    (Timestamp::MIN, Arc::from(""))
}

impl Looks {
    /// Looks on among an app's first occurrences for entities that were last seen before then; whether there is more to look
    /// at.
    pub async fn sweep(&self, db: &Db, app: AppId, before: Timestamp) -> Result<bool> {
        let mut looks = self.0.lock().await;
        let mut look = looks.remove(&app).unwrap_or_default();
        let is_due = look.done.is_none_or(|(done, count)| count <= FEW || before < done || before >= done.plus(A_DAY));
        let mut under_way = match look.under_way.take() {
            Some(under_way) => under_way,
            None if is_due => UnderWay::of(before),
            None => {
                looks.insert(app, look);
                return Ok(false);
            }
        };
        let (end, most) = (under_way.before, under_way.looked_at + FEW);
        look.under_way = loop {
            let looked_at = under_way.looked_at;
            if looked_at >= most {
                break Some(under_way);
            }
            under_way = match step(db, app, under_way).await? {
                Some(next) => next,
                None => {
                    look.done = Some((end, looked_at));
                    break None;
                }
            };
        };
        let is_more = look.under_way.is_some();
        looks.insert(app, look);
        Ok(is_more)
    }
}

/// Looks at one page; `None` when there is none left.
async fn step(db: &Db, app: AppId, mut at: UnderWay) -> Result<Option<UnderWay>> {
    let looked = at.clone();
    let page = db.scan(move |tx| page(tx, app, &looked)).await?;
    let Some((last_at, last)) = page.last().map(|first| (first.first_at, Arc::clone(&first.entity))) else {
        let (name, parameter) = (at.name, at.parameter);
        let next = db.scan(move |tx| tx.opt::<(i64, i64)>(NEXT, &args![app.number(), name, parameter])).await?;
        return Ok(next.map(|(name, parameter)| UnderWay { name, parameter, after: beginning(), ..at }));
    };
    at.looked_at += page.len();
    at.after = (last_at, last);
    let (name, before) = (at.name, at.before);
    let old: Vec<String> =
        page.iter().filter(|first| first.last_at < before).map(|first| first.entity.to_string()).collect();
    for some in old.chunks(BATCH) {
        let some = some.to_vec();
        db.write(move |tx| tx.run(SWEEP, &args![app.number(), some, name, before])).await?;
    }
    Ok(Some(at))
}

/// When an event happened to an entity.
struct FirstOccurrence {
    first_at: Timestamp,
    entity: Arc<str>,
    last_at: Timestamp,
}

fn page(tx: &mut Tx<'_>, app: AppId, at: &UnderWay) -> Result<Vec<FirstOccurrence>> {
    let (after, entity) = &at.after;
    let found: Vec<(Timestamp, String, Timestamp)> =
        tx.all(BEGUN, &args![app.number(), at.name, at.parameter, at.before, *after, &**entity, PAGE])?;
    let first = |(first_at, entity, last_at): (Timestamp, String, Timestamp)| FirstOccurrence {
        first_at,
        entity: entity.into(),
        last_at,
    };
    Ok(found.into_iter().map(first).collect())
}

#[cfg(test)]
mod tests {
    use ::store::{on_both_engines, testing::TestDb};

    use super::*;
    use crate::testing::TABLES;

    on_both_engines!(TABLES: many_are_looked_through_once_a_day_and_only_who_is_gone_goes);

    const APP: AppId = AppId::from_u128(7);
    const HOUR: Duration = Duration::from_hours(1);

    fn at(hours: u32) -> Timestamp {
        Timestamp::from_seconds(0).plus(HOUR * hours)
    }

    /// Of a thousand, one was seen only once, and one was last seen before the others.
    fn store(tx: &mut Tx<'_>) -> Result<()> {
        let row = |number: usize| {
            let last = match number % 1_000 {
                1 => at(1),
                2 => at(99),
                _ => at(200),
            };
            (APP.number(), format!("entity {number:05}"), 1 + i64::from(number.is_multiple_of(2)), 1_i64, at(1), last)
        };
        let insert = "INSERT INTO event_firsts (app_number, entity_digest, name_id, parameter_id, first_at, last_at) \
                      SELECT app_number, entity_digest, name_id, parameter_id, first_at, nullif(last_at, first_at) FROM {rows} \
                      WHERE true";
        let columns = ["app_number", "entity_digest", "name_id", "parameter_id", "first_at", "last_at"];
        tx.insert_all(insert, columns, &(0..6_000).map(row).collect::<Vec<_>>())
    }

    async fn left(db: &Db) -> i64 {
        db.read(|tx| tx.one::<(i64,)>("SELECT count(*) FROM event_firsts", &[])).await.expect("a count").0
    }

    /// Until there is nothing more to look at; how many statements that took.
    async fn sweep(db: &Db, looks: &Looks, before: Timestamp) -> u64 {
        let begun = db.counters().statements;
        while looks.sweep(db, APP, before).await.expect("swept") {}
        db.counters().statements - begun
    }

    async fn many_are_looked_through_once_a_day_and_only_who_is_gone_goes(test: TestDb) {
        let (db, looks) = (test.db, Looks::default());
        db.write(store).await.expect("stored");
        assert!(looks.sweep(&db, APP, at(98)).await.expect("swept"), "in pages");
        assert!(sweep(&db, &looks, at(98)).await > 0);
        assert_eq!(left(&db).await, 5_994);
        // Not again for an hour more, but for a day, and where more is kept than before.
        assert_eq!((sweep(&db, &looks, at(100)).await, left(&db).await), (0, 5_994));
        assert!(sweep(&db, &looks, at(122)).await > 0);
        assert_eq!(left(&db).await, 5_988);
        assert!(sweep(&db, &looks, at(110)).await > 0);
    }
}
