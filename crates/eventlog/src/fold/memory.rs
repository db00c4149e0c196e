//! What a folding node remembers of an app: numbers of names and parameters, and which values have counters of their own
//! in the buckets that are busy. It is worth something only as long as nobody else has folded the app.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use kernel::{AppId, Error, Result};

use super::{
    plan::{Arrival, Event},
    store::{Loaded, NamedValues},
};
use crate::{
    grain::Grain,
    ingest::ArrivedEvent,
    parameters::{Feed, OTHER, feed},
};

/// Values with counters of their own in a bucket, per parameter, beside [`OTHER`].
pub const MOST_VALUES: usize = 1_000;
/// Beyond so many remembered texts everything is forgotten, and read again where it is needed.
const MOST_TEXTS: usize = 400_000;

/// A bucket: the event's name, the grain's number and the start.
pub type Bucket = (i64, i64, i64);

/// Arrivals that are remembered in part, each of some megabytes at most.
const MOST_HAD: usize = 4;
/// Events that one fold hardly takes.
const ENOUGH: usize = 200;

/// The events of an arrival that is folded in part, so that they need not be read for each part.
pub struct Had {
    pub arrival: String,
    pub events: Arc<Vec<ArrivedEvent>>,
}

impl Had {
    /// Whether one fold can be made of what is left of it.
    pub fn is_enough(&self, folded: i64) -> bool {
        self.events.len().saturating_sub(usize::try_from(folded).unwrap_or(usize::MAX)) >= ENOUGH
    }
}

#[derive(Default)]
pub struct Memory {
    apps: HashMap<AppId, Known>,
    texts: usize,
    had: HashMap<AppId, Arc<Had>>,
}

impl Memory {
    pub fn take(&mut self, app: AppId) -> Option<Known> {
        let known = self.apps.remove(&app)?;
        self.texts -= known.texts;
        Some(known)
    }

    /// What is written once never changes, whoever folds it.
    pub fn had(&self, app: AppId) -> Option<Arc<Had>> {
        self.had.get(&app).cloned()
    }

    pub fn keep(&mut self, app: AppId, begun: Option<&Arrival>) {
        self.had.remove(&app);
        let Some(begun) = begun else { return };
        if self.had.len() >= MOST_HAD {
            self.had.clear();
        }
        self.had.insert(app, Arc::new(Had { arrival: begun.id.clone(), events: Arc::clone(&begun.events) }));
    }

    pub fn put(&mut self, app: AppId, known: Known) {
        if self.texts + known.texts > MOST_TEXTS {
            (self.apps, self.texts) = (HashMap::new(), 0);
        }
        if known.texts <= MOST_TEXTS {
            self.texts += known.texts;
            self.apps.insert(app, known);
        }
    }
}

/// What is known of an app as of a revision.
#[derive(Default)]
pub struct Known {
    pub revision: i64,
    pub names: HashMap<String, i64>,
    pub parameters: HashMap<String, i64>,
    pub last_parameter: i64,
    /// The values that are counted by name.
    values: HashMap<Bucket, HashMap<i64, HashSet<Box<str>>>>,
    texts: usize,
}

/// What has to be read before the events can be folded.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub names: Vec<String>,
    pub parameters: Vec<String>,
}

impl Known {
    pub fn missing(&self, events: &[Event]) -> Wanted {
        let names: HashSet<&String> =
            events.iter().map(|event| &event.arrived.name).filter(|name| !self.names.contains_key(*name)).collect();
        let all = events.iter().flat_map(|event| event.parameters.keys());
        let parameters: HashSet<&String> = all.filter(|name| !self.parameters.contains_key(*name)).collect();
        Wanted { names: names.into_iter().cloned().collect(), parameters: parameters.into_iter().cloned().collect() }
    }

    pub fn learn(&mut self, loaded: Loaded) {
        self.texts += loaded.names.len() + loaded.parameters.len();
        self.names.extend(loaded.names);
        self.parameters.extend(loaded.parameters);
        self.last_parameter = self.last_parameter.max(loaded.last_parameter);
    }

    pub fn name(&self, name: &str) -> Result<i64> {
        let id = self.names.get(name).copied();
        id.ok_or_else(|| Error::internal(format!("the event name {name} was not registered")))
    }

    /// The buckets whose values are not known yet.
    pub fn buckets_to_load(&self, events: &[Event]) -> Result<Vec<Bucket>> {
        let mut buckets: HashSet<Bucket> = HashSet::new();
        for event in events.iter().filter(|event| event.parameters.values().any(is_counted)) {
            let name = self.name(&event.arrived.name)?;
            for grain in Grain::ALL {
                let bucket = (name, grain.number(), grain.start(event.arrived.at));
                if !self.values.contains_key(&bucket) {
                    buckets.insert(bucket);
                }
            }
        }
        Ok(buckets.into_iter().collect())
    }

    pub fn learn_values(&mut self, loaded: Vec<NamedValues>) {
        for (bucket, values) in loaded {
            let known = self.values.entry(bucket).or_default();
            self.texts += values.len() + 1;
            for (parameter, value) in values.into_iter().filter(|(_, value)| value != OTHER) {
                known.entry(parameter).or_default().insert(value.into());
            }
        }
    }

    /// What the value is counted as in a bucket: what was once counted by name always is.
    pub fn counted_as<'a>(&mut self, bucket: Bucket, parameter: i64, value: &'a str) -> &'a str {
        if value == OTHER {
            return OTHER;
        }
        let named = self.values.entry(bucket).or_default().entry(parameter).or_default();
        if named.contains(value) {
            return value;
        }
        if named.len() >= MOST_VALUES {
            return OTHER;
        }
        named.insert(value.into());
        self.texts += 1;
        value
    }

    /// The number of a parameter, given now if it has none.
    pub fn parameter(&mut self, name: &str, new: &mut Vec<(String, i64)>) -> i64 {
        if let Some(id) = self.parameters.get(name) {
            return *id;
        }
        self.last_parameter += 1;
        self.texts += 1;
        self.parameters.insert(name.to_owned(), self.last_parameter);
        new.push((name.to_owned(), self.last_parameter));
        self.last_parameter
    }
}

fn is_counted(value: &serde_json::Value) -> bool {
    matches!(feed(value), Some(Feed::Value(_)))
}
