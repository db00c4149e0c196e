//! What was gathered since the last write, within bounds that no caller can push.

use std::collections::{HashMap, hash_map::Entry};

use kernel::{AppId, Timestamp};

use crate::model::{FlagKey, ValueType};

/// Keys without a flag that are kept per app, here and in the store.
pub(super) const MAX_DISCOVERIES: usize = 1_000;
/// Counts and call sites that may wait; beyond that what is new is dropped until the next write.
const MAX_WAITING: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) discoveries: HashMap<AppId, HashMap<String, Sighting>>,
    pub(super) uses: HashMap<(AppId, String), Timestamp>,
    pub(super) evaluations: HashMap<(AppId, String, i32, i64), i64>,
    pub(super) call_sites: HashMap<(AppId, String, String, i64), Timestamp>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sighting {
    pub(super) value_type: Option<ValueType>,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    pub(super) count: i64,
}

impl Gathered {
    pub(super) fn is_empty(&self) -> bool {
        self.discoveries.is_empty() && self.uses.is_empty() && self.evaluations.is_empty() && self.call_sites.is_empty()
    }

    /// Keys that could not be a flag's are not worth listing.
    pub(super) fn discover(&mut self, app: AppId, key: &str, value_type: Option<ValueType>, now: Timestamp) {
        if FlagKey::problem(key).is_none() {
            self.see(app, key, Sighting { value_type, first: now, last: now, count: 1 });
        }
    }

    fn see(&mut self, app: AppId, key: &str, sighting: Sighting) {
        let keys = self.discoveries.entry(app).or_default();
        if let Some(known) = keys.get_mut(key) {
            known.value_type = sighting.value_type.or(known.value_type);
            known.first = known.first.min(sighting.first);
            known.last = known.last.max(sighting.last);
            known.count = known.count.saturating_add(sighting.count);
            return;
        }
        if keys.len() >= MAX_DISCOVERIES {
            let least_recent = keys.iter().min_by_key(|(_, sighting)| sighting.last).map(|(key, _)| key.clone());
            least_recent.and_then(|key| keys.remove(&key));
        }
        keys.insert(key.to_owned(), sighting);
    }

    pub(super) fn used(&mut self, app: AppId, key: &str, at: Timestamp) {
        let room = self.uses.len() < MAX_WAITING;
        raise(self.uses.entry((app, key.to_owned())), at, room);
    }

    pub(super) fn evaluated(&mut self, app: AppId, key: &str, variant: i32, at: Timestamp, count: i64) {
        self.used(app, key, at);
        let day = at.as_seconds().div_euclid(86_400);
        let room = self.evaluations.len() < MAX_WAITING;
        match self.evaluations.entry((app, key.to_owned(), variant, day)) {
            Entry::Occupied(mut known) => *known.get_mut() = known.get().saturating_add(count),
            Entry::Vacant(place) if room => drop(place.insert(count)),
            Entry::Vacant(_) => {}
        }
    }

    pub(super) fn called_from(&mut self, app: AppId, key: &str, file: &str, line: i64, now: Timestamp) {
        let room = self.call_sites.len() < MAX_WAITING;
        raise(self.call_sites.entry((app, key.to_owned(), file.to_owned(), line)), now, room);
    }

    /// Puts a batch back that could not be written.
    pub(super) fn take_back(&mut self, batch: &Self) {
        for (app, keys) in &batch.discoveries {
            keys.iter().for_each(|(key, sighting)| self.see(*app, key, *sighting));
        }
        for ((app, key), at) in &batch.uses {
            self.used(*app, key, *at);
        }
        for ((app, key, variant, day), count) in &batch.evaluations {
            let at = Timestamp::from_seconds(day.saturating_mul(86_400));
            self.evaluated(*app, key, *variant, at, *count);
        }
        for ((app, key, file, line), at) in &batch.call_sites {
            self.called_from(*app, key, file, *line, *at);
        }
    }
}

fn raise<K>(entry: Entry<'_, K, Timestamp>, at: Timestamp, room: bool) {
    match entry {
        Entry::Occupied(mut known) => *known.get_mut() = (*known.get()).max(at),
        Entry::Vacant(place) if room => drop(place.insert(at)),
        Entry::Vacant(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_seen_key_makes_room() {
        let (mut gathered, app) = (Gathered::default(), AppId::from_u128(1));
        for number in 0..1_000 {
            gathered.discover(app, &format!("key-{number}"), None, Timestamp::from_seconds(number));
        }
        gathered.discover(app, "key-0", Some(ValueType::Number), Timestamp::from_seconds(2_000));
        gathered.discover(app, "one-more", None, Timestamp::from_seconds(2_001));
        gathered.discover(app, "not a key", None, Timestamp::from_seconds(2_002));
        let keys = &gathered.discoveries[&app];
        assert_eq!(keys.len(), 1_000);
        assert!(keys.contains_key("key-0") && keys.contains_key("one-more") && !keys.contains_key("key-1"));
        assert_eq!((keys["key-0"].count, keys["key-0"].value_type), (2, Some(ValueType::Number)));
    }

    #[test]
    fn a_batch_that_could_not_be_written_is_added_to_what_came_since() {
        let (mut gathered, app, at) = (Gathered::default(), AppId::from_u128(1), Timestamp::from_seconds(90_000));
        gathered.evaluated(app, "f", 0, at, 3);
        let batch = std::mem::take(&mut gathered);
        gathered.evaluated(app, "f", 0, at, 4);
        gathered.take_back(&batch);
        assert_eq!(gathered.evaluations[&(app, "f".to_owned(), 0, 1)], 7);
        assert_eq!(gathered.uses[&(app, "f".to_owned())], at);
    }
}
