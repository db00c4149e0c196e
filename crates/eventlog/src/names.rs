//! The names of events and parameters, and the numbers that stand for them within an app.

use std::{
    collections::{HashMap, HashSet},
    sync::{PoisonError, RwLock},
};

use kernel::{AppId, Result};
use store::{Db, Tx, args};
use tenancy::locks::Lock;

/// The service's own events begin so, and nobody else's.
pub const OWN_PREFIX: &str = "tenantry.";
/// How many names an app may have beside the service's own.
pub const MOST_NAMES: i64 = 10_000;

const FIND: &str = "SELECT id FROM event_names WHERE app_id = $1 AND name = $2";
const FIND_ALL: &str = "SELECT name, id FROM event_names WHERE app_id = $1 AND name = ANY($2)";
const BY_ID: &str = "SELECT id, name FROM event_names WHERE app_id = $1 AND id = ANY($2)";
const COUNT: &str = "SELECT count(*), coalesce(max(id), 0), \
                     count(*) FILTER (WHERE substr(name, 1, 9) <> 'tenantry.') FROM event_names WHERE app_id = $1";
const INSERT: &str = "INSERT INTO event_names (app_id, name, id) VALUES ($1, $2, $3)";
const PARAMETERS: &str = "SELECT name, id FROM event_parameters WHERE app_id = $1 AND name = ANY($2)";
const PARAMETERS_BY_ID: &str = "SELECT id, name FROM event_parameters WHERE app_id = $1 AND id = ANY($2)";
const ALL_PARAMETERS: &str = "SELECT name, id FROM event_parameters WHERE app_id = $1";
const LAST_PARAMETER: &str = "SELECT coalesce(max(id), 0) FROM event_parameters WHERE app_id = $1";
const INSERT_PARAMETERS: &str =
    "INSERT INTO event_parameters (app_id, name, id) SELECT app_id, name, id FROM {rows} WHERE true";

/// The number of an event's name; `None` when the app never had such an event.
pub fn find(tx: &mut Tx<'_>, app: AppId, name: &str) -> Result<Option<i64>> {
    Ok(tx.opt::<(i64,)>(FIND, &args![app, name])?.map(|(id,)| id))
}

pub fn find_all(tx: &mut Tx<'_>, app: AppId, names: &[String]) -> Result<Vec<(String, i64)>> {
    tx.all(FIND_ALL, &args![app, *names])
}

pub fn by_id(tx: &mut Tx<'_>, app: AppId, ids: &[i64]) -> Result<HashMap<i64, String>> {
    Ok(tx.all::<(i64, String)>(BY_ID, &args![app, *ids])?.into_iter().collect())
}

/// Makes the names known, in their order; those that the app may not have any more are answered.
pub fn register<'a>(tx: &mut Tx<'_>, app: AppId, names: &[&'a str]) -> Result<HashSet<&'a str>> {
    let mut refused = HashSet::new();
    let mut unknown = Vec::new();
    for name in names {
        if find(tx, app, name)?.is_none() {
            unknown.push(*name);
        }
    }
    if unknown.is_empty() {
        return Ok(refused);
    }
    tx.lock(&Lock::EventNames(app))?;
    let (_, mut last, mut outside) = tx.one::<(i64, i64, i64)>(COUNT, &args![app])?;
    for name in unknown {
        // Somebody else may have been faster.
        if find(tx, app, name)?.is_some() {
            continue;
        }
        let own = name.starts_with(OWN_PREFIX);
        if !own && outside >= MOST_NAMES {
            refused.insert(name);
            continue;
        }
        last += 1;
        outside += i64::from(!own);
        tx.run(INSERT, &args![app, name, last])?;
    }
    Ok(refused)
}

pub fn parameters(tx: &mut Tx<'_>, app: AppId, names: &[String]) -> Result<Vec<(String, i64)>> {
    tx.all(PARAMETERS, &args![app, *names])
}

pub fn parameters_by_id(tx: &mut Tx<'_>, app: AppId, ids: &[i64]) -> Result<HashMap<i64, String>> {
    Ok(tx.all::<(i64, String)>(PARAMETERS_BY_ID, &args![app, *ids])?.into_iter().collect())
}

pub fn all_parameters(tx: &mut Tx<'_>, app: AppId) -> Result<Vec<(String, i64)>> {
    tx.all(ALL_PARAMETERS, &args![app])
}

pub fn last_parameter(tx: &mut Tx<'_>, app: AppId) -> Result<i64> {
    tx.one::<(i64,)>(LAST_PARAMETER, &args![app]).map(|(last,)| last)
}

/// For whoever holds the app's fold.
pub fn insert_parameters(tx: &mut Tx<'_>, app: AppId, new: &[(String, i64)]) -> Result<()> {
    let rows: Vec<_> = new.iter().map(|(name, id)| (app, name.as_str(), *id)).collect();
    tx.insert_all(INSERT_PARAMETERS, ["app_id", "name", "id"], &rows)
}

/// Names that this node knows to be registered, so that most events need not ask.
#[derive(Default)]
pub struct KnownNames(RwLock<HashSet<(AppId, String)>>);

/// More than this many are forgotten all at once.
const MOST_KNOWN: usize = 100_000;

impl KnownNames {
    pub async fn contains(&self, db: &Db, app: AppId, name: &str) -> Result<bool> {
        let wanted = (app, name.to_owned());
        if self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&wanted) {
            return Ok(true);
        }
        let found = db.get_one::<(i64,)>(FIND, &args![app, name]).await?.is_some();
        if found {
            let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MOST_KNOWN {
                known.clear();
            }
            known.insert(wanted);
        }
        Ok(found)
    }
}
