//! What a folding node remembers of an app: numbers of names and parameters, and the counters of values in the buckets that
//! are busy. It is worth something only as long as nobody else has folded the app.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use kernel::{AppId, Error, Result, Tick, Ticker};
use spine::Pace;

use super::{
    counters::Counters,
    plan::{Arrival, Event},
    store::{Loaded, StoredParts},
};
use crate::ingest::ArrivedEvent;

/// Beyond so many remembered texts everything is forgotten, and read again where it is needed. Each takes some hundred bytes.
const MOST_TEXTS: usize = 200_000;
/// What the counters of a parameter in a bucket take beside their values, in texts.
const COUNTERS: usize = 2;

/// A bucket: the event's name, the grain's number and the start.
pub type Bucket = (i64, i64, i64);

/// Rows that one transaction may write, at least and at most, unless a single event writes more: some milliseconds of
/// SQLite's writer.
const ROWS: (i64, i64) = (1_000, 8_000);
/// The same while nobody else has to wait. The more events are folded at once, the more of them change the same row, and the
/// same page: sixteen times as many cost less than half each.
const ROWS_ALONE: (i64, i64) = (1_000, 16_000);
const LONGEST_ALONE: Duration = Duration::from_millis(60);
/// Others are thought to be done when none of them has had to wait for so long.
const QUIET: Duration = Duration::from_secs(5);
/// Beyond so many apps all paces begin anew.
const MOST_PACES: usize = 10_000;

/// Arrivals that are remembered in part, each of some megabytes at most.
const MOST_HAD: usize = 4;
/// So many events make a fold.
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
    paces: HashMap<AppId, Paces>,
    pub others: Others,
}

/// Of one app.
struct Paces {
    beside_others: Pace,
    alone: Pace,
}

impl Paces {
    fn new() -> Self {
        Self { beside_others: Pace::new(ROWS.0, ROWS), alone: Pace::within(LONGEST_ALONE, ROWS_ALONE.0, ROWS_ALONE) }
    }
}

/// Who else writes to the store.
pub struct Others {
    /// When one of them last had to wait for a fold.
    waited: Tick,
}

impl Default for Others {
    fn default() -> Self {
        Self { waited: Ticker.now() }
    }
}

impl Others {
    /// Whether none of them has had to wait for a while.
    pub fn are_quiet(&self, now: Tick) -> bool {
        now.since(self.waited) >= QUIET
    }

    /// After a fold for which somebody waited.
    pub fn have_waited(&mut self, now: Tick) {
        self.waited = now;
    }
}

impl Memory {
    /// How many rows a fold of the app may write: one app's events cost more than another's.
    pub fn pace(&mut self, app: AppId, is_alone: bool) -> &Pace {
        if self.paces.len() >= MOST_PACES && !self.paces.contains_key(&app) {
            self.paces.clear();
        }
        let paces = self.paces.entry(app).or_insert_with(Paces::new);
        if is_alone { &paces.alone } else { &paces.beside_others }
    }

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
    /// By bucket and parameter.
    counters: HashMap<Bucket, HashMap<i64, Counters>>,
    texts: usize,
}

/// What has to be read before the events can be folded.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub names: Vec<String>,
    pub parameters: Vec<String>,
}

impl Wanted {
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.parameters.is_empty()
    }
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

    /// The buckets whose counters are not known yet, in the order of the events.
    pub fn buckets_to_load(&self, events: &[Event]) -> Result<Vec<Bucket>> {
        let (mut buckets, mut seen) = (Vec::new(), HashSet::new());
        for event in events.iter().filter(|event| event.is_counted()) {
            for bucket in event.buckets(self.name(&event.arrived.name)?) {
                if !self.counters.contains_key(&bucket) && seen.insert(bucket) {
                    buckets.push(bucket);
                }
            }
        }
        Ok(buckets)
    }

    /// Leaves the first events, until one whose counters are not known.
    pub fn keep_countable(&self, events: &mut Vec<Event>) -> Result<()> {
        for place in 0..events.len() {
            let event = &events[place];
            let buckets = event.buckets(self.name(&event.arrived.name)?);
            if event.is_counted() && !buckets.iter().all(|bucket| self.counters.contains_key(bucket)) {
                events.truncate(place);
                break;
            }
        }
        Ok(())
    }

    pub fn learn_counters(&mut self, loaded: Vec<StoredParts>) -> Result<()> {
        for (bucket, parts) in loaded {
            let known = self.counters.entry(bucket).or_default();
            for (parameter, part, counts) in parts {
                known.entry(parameter).or_default().learn(part, &counts)?;
            }
            self.texts += 1 + known.values().map(|counters| COUNTERS + counters.len()).sum::<usize>();
        }
        Ok(())
    }

    pub fn counters(&mut self, bucket: Bucket, parameter: i64) -> &mut Counters {
        self.counters.entry(bucket).or_default().entry(parameter).or_default()
    }

    /// Counts a value; whether that changes a part of the counters that was not changed yet.
    pub fn count(&mut self, bucket: Bucket, parameter: i64, value: &str) -> bool {
        let counters = match self.counters.entry(bucket).or_default().entry(parameter) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                self.texts += COUNTERS;
                new.insert(Counters::default())
            }
        };
        let before = counters.len();
        let changes = counters.count(value);
        self.texts += counters.len() - before;
        changes
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

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::LoggedEventId;

    const HOUR: i64 = 3_600_000_000;

    fn event(hour: i64, parameters: &serde_json::Value) -> Event {
        let parameters: Map<_, _> = parameters.as_object().cloned().unwrap_or_default();
        let arrived = ArrivedEvent {
            id: LoggedEventId::from_u128(7),
            name: "order".to_owned(),
            at: hour * HOUR,
            source: None,
            ingest_id: None,
            tenant: None,
            parameters: String::new(),
        };
        Event { arrival: 0, arrived, parameters }
    }

    #[test]
    fn a_fold_ends_before_the_first_event_whose_counters_were_not_read() {
        let mut known = Known { names: HashMap::from([("order".to_owned(), 1)]), ..Known::default() };
        let mut events = vec![
            event(0, &json!({ "plan": "pro" })),
            event(1, &json!({ "total": 3 })),
            event(1, &json!({ "plan": "pro" })),
            event(0, &json!({ "plan": "free" })),
        ];
        let buckets = known.buckets_to_load(&events).expect("known names");
        // Two hours of one day, week and month; what is only added up needs none.
        assert_eq!(buckets.len(), 5);
        let loaded = buckets.into_iter().take(4).map(|bucket| (bucket, Vec::new())).collect();
        known.learn_counters(loaded).expect("nothing is wrong with nothing");
        known.keep_countable(&mut events).expect("known names");
        assert_eq!(events.len(), 2);
    }

    #[test]
    fn the_pace_of_one_app_says_nothing_about_another() {
        let mut memory = Memory::default();
        let (quick, other) = (AppId::from_u128(1), AppId::from_u128(2));
        memory.pace(quick, false).took(Duration::ZERO, true);
        assert_eq!((memory.pace(quick, false).rows(), memory.pace(other, false).rows()), (2 * ROWS.0, ROWS.0));
        // Nor does what a fold may do alone about what it may do beside others.
        assert_eq!(memory.pace(quick, true).rows(), ROWS.0);
    }

    #[test]
    fn folds_are_alone_once_nobody_has_waited_for_a_while() {
        let mut others = Others::default();
        assert!(!others.are_quiet(Ticker.now()), "somebody may have waited before");
        let begun = Ticker.now().plus(QUIET);
        assert!(others.are_quiet(begun));
        others.have_waited(begun);
        let after = |millis| others.are_quiet(begun.plus(Duration::from_millis(millis)));
        assert_eq!((after(0), after(4_999), after(5_000)), (false, false, true));
    }

    #[test]
    fn counters_that_name_no_value_take_room_too() {
        let mut known = Known::default();
        for start in 0..100 {
            known.count((1, 0, start), 1, crate::parameters::OTHER);
        }
        assert_eq!(known.texts, 100 * COUNTERS);
        let mut memory = Memory::default();
        known.texts = MOST_TEXTS;
        memory.put(AppId::from_u128(1), known);
        assert!(memory.take(AppId::from_u128(1)).is_some() && memory.texts == 0);
        memory.put(AppId::from_u128(1), Known { texts: MOST_TEXTS + 1, ..Known::default() });
        assert!(memory.take(AppId::from_u128(1)).is_none());
    }
}
