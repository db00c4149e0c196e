//! Looks for entries, newest first.
//!
//! Who or what is asked for is looked up among the first occurrences: they tell which events can name it, and since when.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    fmt,
};

use kernel::{AppId, Error, Result, TenantId, Timestamp};
use serde_json::{Map, Value};
use store::{Tx, args};

use crate::{
    LoggedEventId,
    ingest::OWN_SOURCE,
    names,
    parameters::{ACTORS, entity_digest, extracted, identifier, names_identifier, traced},
    scans::{Allowance, Stop},
    storage::{EventReader, KeptEvent, Naming, Order},
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
    /// Of a workspace: only those that come after this one in the list.
    pub before: Option<Before>,
    pub limit: usize,
    pub offset: usize,
}

impl WantedEntries {
    /// All of a time, both ends included.
    pub fn all(whose: Whose, from: Timestamp, to: Timestamp) -> Self {
        Self { whose, action: None, actor: None, target: None, from, to, before: None, limit: usize::MAX, offset: 0 }
    }
}

/// A place in the list: older than the entry of this time and id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    pub at: Timestamp,
    pub id: LoggedEventId,
}

impl Before {
    pub fn parse(text: &str) -> Option<Self> {
        let (at, id) = text.split_once('.')?;
        Some(Self { at: Timestamp::from_micros(at.parse().ok()?), id: id.parse().ok()? })
    }
}

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at.as_micros(), self.id)
    }
}

/// What was found.
#[derive(Debug)]
pub struct FoundEntry {
    pub at: Timestamp,
    pub name: String,
    pub id: LoggedEventId,
    pub extracted: Map<String, Value>,
}

const OF_WORKSPACE: &str = ::store::sql!(
    "SELECT ",
    KeptEvent::COLUMNS,
    " FROM event_rows WHERE app_id = $1 AND tenant_id = $6 AND happened_at >= $2 AND (happened_at, id) < ($3, $4) \
      ORDER BY happened_at DESC, id DESC LIMIT $5"
);
const FIRSTS: &str = "SELECT name_id, first_at FROM event_firsts WHERE app_number = $1 AND entity_digest = ANY($2)";

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
    let mut found = match wanted.whose {
        Whose::Workspace(tenant) => {
            let action = match &wanted.action {
                Some(action) => match names::find(tx, app, action)? {
                    Some(id) => Some(id),
                    None => return Ok(Vec::new()),
                },
                None => None,
            };
            search.of_workspace(tx, tenant, action)?
        }
        Whose::App => match search.names(tx)? {
            None => search.of_app(tx, None, wanted.from)?,
            Some(names) => {
                let mut found = Vec::new();
                for (name, since) in names {
                    found.extend(search.of_app(tx, Some(name), since.max(wanted.from))?);
                }
                found
            }
        },
    };
    found.sort_by_key(|event| Reverse((event.at, event.id)));
    let found: Vec<KeptEvent> = found.into_iter().skip(wanted.offset).take(wanted.limit).collect();
    Ok(shown(tx, app, found)?)
}

fn shown(tx: &mut Tx<'_>, app: AppId, found: Vec<KeptEvent>) -> Result<Vec<FoundEntry>> {
    let ids: Vec<i64> = found.iter().map(|event| event.name).collect();
    let names: HashMap<i64, String> = names::by_id(tx, app, &ids)?;
    let entry = |event: KeptEvent| {
        let parameters: Map<String, Value> = serde_json::from_str(&event.parameters).map_err(Error::internal)?;
        // Of its own entries the service shows everything.
        let own = event.source.as_deref() == Some(OWN_SOURCE);
        let extracted = if own { parameters } else { extracted(parameters) };
        let name = names.get(&event.name).cloned().unwrap_or_default();
        Ok(FoundEntry { at: event.at, name, id: event.id, extracted })
    };
    found.into_iter().map(entry).collect()
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
            let named = targets(tx, self.app)?;
            let digests: Vec<String> = named.iter().map(|name| entity_digest(name, target)).collect();
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
        for (name, at) in tx.all::<(i64, Timestamp)>(FIRSTS, &args![self.app.number(), *entities])? {
            let first = firsts.entry(name).or_insert(at);
            *first = at.min(*first);
        }
        let Some(possible) = possible else { return Ok(firsts) };
        let both = |(name, since): (i64, Timestamp)| Some((name, since.max(*firsts.get(&name)?)));
        Ok(possible.into_iter().filter_map(both).collect())
    }

    /// The newest entries that fit, as many as the answer can need.
    fn of_app(&mut self, tx: &mut Tx<'_>, name: Option<i64>, since: Timestamp) -> Result<Vec<KeptEvent>, Stop> {
        let order = Order::TrailNewestFirst(self.app, name);
        let naming = self.naming(tx)?;
        let mut reader = EventReader::new(order, (since, self.wanted.to), self.allowance).naming(naming);
        let mut found: Vec<KeptEvent> = Vec::new();
        loop {
            let page = reader.page(tx, PAGE)?;
            let is_last = page.len() < PAGE;
            for event in page {
                if self.fits(&event)? {
                    found.push(event);
                }
            }
            if is_last || found.len() >= self.most() {
                return Ok(found);
            }
        }
    }

    /// Who or what the entries have to name.
    fn naming(&self, tx: &mut Tx<'_>) -> Result<Vec<Naming>> {
        let mut naming = Vec::new();
        if let Some(actor) = &self.wanted.actor {
            let parameters = ACTORS.map(str::to_owned).to_vec();
            naming.push(Naming { parameters, entity: actor.clone() });
        }
        if let Some(target) = &self.wanted.target {
            naming.push(Naming { parameters: targets(tx, self.app)?, entity: target.clone() });
        }
        Ok(naming)
    }

    /// Of a workspace: the service's own entries, which are rows.
    fn of_workspace(&mut self, tx: &mut Tx<'_>, tenant: TenantId, action: Option<i64>) -> Result<Vec<KeptEvent>, Stop> {
        let mut found: Vec<KeptEvent> = Vec::new();
        let (mut at, mut id) = match self.wanted.before.filter(|before| before.at <= self.wanted.to) {
            Some(before) => (before.at, before.id.to_string()),
            None => (self.wanted.to, LAST_ID.to_owned()),
        };
        loop {
            let page: Vec<KeptEvent> =
                tx.all(OF_WORKSPACE, &args![self.app, self.wanted.from, at, id, PAGE as i64, tenant])?;
            let count = page.len();
            if let Some(last) = page.last() {
                (at, id) = (last.at, last.id.to_string());
            }
            for event in page {
                if action.is_none_or(|action| event.name == action) && self.fits(&event)? {
                    found.push(event);
                }
            }
            self.read += count;
            if count < PAGE || found.len() >= self.most() {
                return Ok(found);
            }
            self.allowance.check(self.read)?;
        }
    }

    fn most(&self) -> usize {
        self.wanted.offset.saturating_add(self.wanted.limit)
    }

    fn fits(&self, event: &KeptEvent) -> Result<bool> {
        let WantedEntries { actor, target, .. } = self.wanted;
        if actor.is_none() && target.is_none() {
            return Ok(true);
        }
        let parameters: Map<String, Value> = serde_json::from_str(&event.parameters).map_err(Error::internal)?;
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

/// The parameters that may name a target.
fn targets(tx: &mut Tx<'_>, app: AppId) -> Result<Vec<String>> {
    let all = names::all_parameters(tx, app)?.into_iter().map(|(name, _)| name);
    Ok(all.filter(|name| is_target(name)).collect())
}

/// Any identifier that does not say who acted.
fn is_target(name: &str) -> bool {
    names_identifier(name) && !ACTORS.contains(&name)
}
