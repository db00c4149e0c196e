//! Looks for entries, newest first.
//!
//! Who or what is asked for is looked up among the first occurrences: they tell which events can name it, and since when.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use kernel::{AppId, Error, Result, TenantId, Timestamp};
use serde_json::{Map, Value};
use store::{Tx, args};

use crate::{
    EventId,
    ingest::OWN_SOURCE,
    names,
    parameters::{ACTORS, entity_digest, extracted, identifier, names_identifier, traced},
    questions::{Allowance, Stop},
};

/// Whose entries.
#[derive(Clone, Copy, Debug)]
pub enum Whose {
    App,
    /// The service's own entries of a workspace.
    Workspace(TenantId),
}

/// Which entries.
#[derive(Clone, Debug)]
pub struct WantedEntries {
    pub whose: Whose,
    pub action: Option<String>,
    pub actor: Option<String>,
    pub target: Option<String>,
    pub from: Timestamp,
    pub to: Timestamp,
    pub limit: usize,
    pub offset: usize,
}

/// What was found.
#[derive(Debug)]
pub struct FoundEntry {
    pub at: Timestamp,
    pub name: String,
    pub id: EventId,
    pub extracted: Map<String, Value>,
}

type EntryRow = (Timestamp, EventId, i64, Option<String>, String);

const COLUMNS: &str = "happened_at, id, name_id, ingest_source, parameters FROM event_rows";
const OF_APP: &str = ::store::sql!(
    "SELECT ",
    COLUMNS,
    " WHERE app_id = $1 AND audited AND happened_at >= $2 AND (happened_at, id) < ($3, $4) \
      ORDER BY happened_at DESC, id DESC LIMIT $5"
);
const OF_NAME: &str = ::store::sql!(
    "SELECT ",
    COLUMNS,
    " WHERE app_id = $1 AND audited AND happened_at >= $2 AND (happened_at, id) < ($3, $4) AND name_id = $6 \
      ORDER BY happened_at DESC, id DESC LIMIT $5"
);
const OF_WORKSPACE: &str = ::store::sql!(
    "SELECT ",
    COLUMNS,
    " WHERE app_id = $1 AND tenant_id = $6 AND happened_at >= $2 AND (happened_at, id) < ($3, $4) \
      ORDER BY happened_at DESC, id DESC LIMIT $5"
);
const FIRSTS: &str = "SELECT name_id, first_at FROM event_firsts WHERE app_id = $1 AND entity_digest = ANY($2)";

const PAGE: usize = 500;
/// Sorts after every id.
const LAST_ID: &str = "~";

/// The part of the trail that is asked for.
pub fn find(
    tx: &mut Tx<'_>,
    app: AppId,
    wanted: &WantedEntries,
    allowance: &Allowance,
) -> Result<Vec<FoundEntry>, Stop> {
    let mut search = Search { app, wanted, allowance, read: 0 };
    let mut rows = match wanted.whose {
        Whose::Workspace(tenant) => {
            let action = match &wanted.action {
                Some(action) => match names::find(tx, app, action)? {
                    Some(id) => Some(id),
                    None => return Ok(Vec::new()),
                },
                None => None,
            };
            search.pages(tx, OF_WORKSPACE, Some(&Subject::Workspace(tenant)), wanted.from, action)?
        }
        Whose::App => match search.names(tx)? {
            None => search.pages(tx, OF_APP, None, wanted.from, None)?,
            Some(names) => {
                let mut rows = Vec::new();
                for (name, since) in names {
                    rows.extend(search.pages(tx, OF_NAME, Some(&Subject::Name(name)), since.max(wanted.from), None)?);
                }
                rows
            }
        },
    };
    rows.sort_by_key(|(at, id, ..)| Reverse((*at, *id)));
    let rows: Vec<EntryRow> = rows.into_iter().skip(wanted.offset).take(wanted.limit).collect();
    Ok(shown(tx, app, rows)?)
}

fn shown(tx: &mut Tx<'_>, app: AppId, rows: Vec<EntryRow>) -> Result<Vec<FoundEntry>> {
    let ids: Vec<i64> = rows.iter().map(|(_, _, name, ..)| *name).collect();
    let names: HashMap<i64, String> = names::by_id(tx, app, &ids)?;
    let entry = |(at, id, name, source, parameters): EntryRow| {
        let parameters: Map<String, Value> = serde_json::from_str(&parameters).map_err(Error::internal)?;
        // Of its own entries the service shows everything.
        let own = source.as_deref() == Some(OWN_SOURCE);
        let extracted = if own { parameters } else { extracted(parameters) };
        Ok(FoundEntry { at, name: names.get(&name).cloned().unwrap_or_default(), id, extracted })
    };
    rows.into_iter().map(entry).collect()
}

/// What the pages of a search are of: an event's name, or a workspace.
enum Subject {
    Name(i64),
    Workspace(TenantId),
}

struct Search<'a> {
    app: AppId,
    wanted: &'a WantedEntries,
    allowance: &'a Allowance,
    read: usize,
}

impl Search<'_> {
    /// The events that can be meant, each with when it can first be; `None` for all.
    fn names(&self, tx: &mut Tx<'_>) -> Result<Option<BTreeMap<i64, Timestamp>>> {
        let mut possible: Option<BTreeMap<i64, Timestamp>> = None;
        if let Some(action) = &self.wanted.action {
            let found = names::find(tx, self.app, action)?;
            possible = Some(found.into_iter().map(|id| (id, Timestamp::MIN)).collect());
        }
        if let Some(actor) = &self.wanted.actor {
            let digests: Vec<String> = ACTORS.iter().map(|name| entity_digest(name, actor)).collect();
            possible = Some(self.narrow(tx, possible, &digests)?);
        }
        if let Some(target) = &self.wanted.target {
            let all = names::all_parameters(tx, self.app)?;
            let digests: Vec<String> =
                all.iter().filter(|(name, _)| is_target(name)).map(|(name, _)| entity_digest(name, target)).collect();
            possible = Some(self.narrow(tx, possible, &digests)?);
        }
        Ok(possible)
    }

    /// Leaves the events that have happened to one of the entities.
    fn narrow(
        &self,
        tx: &mut Tx<'_>,
        possible: Option<BTreeMap<i64, Timestamp>>,
        entities: &[String],
    ) -> Result<BTreeMap<i64, Timestamp>> {
        let mut firsts: BTreeMap<i64, Timestamp> = BTreeMap::new();
        for (name, at) in tx.all::<(i64, Timestamp)>(FIRSTS, &args![self.app, *entities])? {
            let first = firsts.entry(name).or_insert(at);
            *first = at.min(*first);
        }
        let Some(possible) = possible else { return Ok(firsts) };
        let both = |(name, since): (i64, Timestamp)| Some((name, since.max(*firsts.get(&name)?)));
        Ok(possible.into_iter().filter_map(both).collect())
    }

    /// The newest rows that fit, as many as the answer can need.
    fn pages(
        &mut self,
        tx: &mut Tx<'_>,
        statement: &'static str,
        of: Option<&Subject>,
        since: Timestamp,
        action: Option<i64>,
    ) -> Result<Vec<EntryRow>, Stop> {
        let wanted = self.wanted.offset.saturating_add(self.wanted.limit);
        let mut found: Vec<EntryRow> = Vec::new();
        let (mut at, mut id) = (self.wanted.to, LAST_ID.to_owned());
        let most = i64::try_from(PAGE).unwrap_or(i64::MAX);
        loop {
            let page: Vec<EntryRow> = match of {
                None => tx.all(statement, &args![self.app, since, at, id, most])?,
                Some(Subject::Name(name)) => tx.all(statement, &args![self.app, since, at, id, most, *name])?,
                Some(Subject::Workspace(tenant)) => {
                    tx.all(statement, &args![self.app, since, at, id, most, *tenant])?
                }
            };
            let count = page.len();
            if let Some((last_at, last_id, ..)) = page.last() {
                (at, id) = (*last_at, last_id.to_string());
            }
            for row in page {
                if action.is_none_or(|action| row.2 == action) && self.fits(&row)? {
                    found.push(row);
                }
            }
            self.read += count;
            if count < PAGE || found.len() >= wanted {
                return Ok(found);
            }
            self.allowance.check(self.read)?;
        }
    }

    fn fits(&self, (_, _, _, _, parameters): &EntryRow) -> Result<bool> {
        let WantedEntries { actor, target, .. } = self.wanted;
        if actor.is_none() && target.is_none() {
            return Ok(true);
        }
        let parameters: Map<String, Value> = serde_json::from_str(parameters).map_err(Error::internal)?;
        let by = |actor: &String| {
            ACTORS.iter().any(|name| {
                parameters.get(*name).and_then(|value| traced(name, value)).is_some_and(|value| value == *actor)
            })
        };
        let on = |target: &String| {
            let others = parameters.iter().filter(|(name, _)| is_target(name));
            others.filter_map(|(name, value)| identifier(name, value)).any(|value| value == *target)
        };
        Ok(actor.as_ref().is_none_or(by) && target.as_ref().is_none_or(on))
    }
}

/// Any identifier that does not say who acted.
fn is_target(name: &str) -> bool {
    names_identifier(name) && !ACTORS.contains(&name)
}
