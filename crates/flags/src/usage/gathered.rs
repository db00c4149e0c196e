//! What was gathered since the last write, within bounds that no caller can push: in bytes, for each app and in all.
//! What finds no room is dropped, and whoever reported it is told so.

use std::collections::{HashMap, hash_map::Entry};

use kernel::{AppId, Timestamp};

use super::report::{Sighting, Told, UsageReport};

/// Keys without a flag that are kept per app, here and in the store. Up to twice as many wait here, so that making room
/// is rare.
pub(super) const MAX_DISCOVERIES: usize = 1_000;
/// Call sites that are kept per flag, here and in the store: the most recently seen.
pub(super) const MAX_CALL_SITES: usize = 100;

const MAX_BYTES_OF_APP: usize = 1024 * 1024;
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// What an entry costs beside its texts.
const ENTRY: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Gathered {
    apps: HashMap<AppId, OfApp>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct OfApp {
    bytes: usize,
    waiting: Waiting,
}

#[derive(Debug, Default)]
struct Waiting {
    discoveries: HashMap<String, Sighting>,
    uses: HashMap<String, Timestamp>,
    evaluations: HashMap<(String, i32, i64), i64>,
    call_sites: HashMap<String, HashMap<(String, i64), Timestamp>>,
}

/// What is left for one app.
struct Room<'a> {
    all: &'a mut usize,
    of_app: &'a mut usize,
}

impl Room<'_> {
    fn take(&mut self, texts: usize) -> bool {
        let cost = texts + ENTRY;
        let fits = *self.of_app + cost <= MAX_BYTES_OF_APP && *self.all + cost <= MAX_BYTES;
        if fits {
            *self.of_app += cost;
            *self.all += cost;
        }
        fits
    }

    fn give_back(&mut self, texts: usize) {
        *self.of_app -= texts + ENTRY;
        *self.all -= texts + ENTRY;
    }
}

impl Gathered {
    /// Whether there was room for it.
    pub(super) fn take(&mut self, UsageReport { app, key, told }: UsageReport) -> bool {
        match told {
            Told::Sighted(sighting) => self.see(app, key, sighting),
            Told::Used(at) => self.used(app, &key, at),
            Told::Evaluated { variant, day, count } => self.evaluated(app, key, variant, day, count),
            Told::CalledFrom { file, line, at } => self.called_from(app, key, file, line, at),
        }
    }

    /// The hot path: nothing is copied when the flag was used before.
    pub(super) fn used(&mut self, app: AppId, key: &str, at: Timestamp) -> bool {
        let (waiting, mut room) = self.of(app);
        if let Some(known) = waiting.uses.get_mut(key) {
            *known = (*known).max(at);
            return true;
        }
        let taken = room.take(key.len());
        if taken {
            waiting.uses.insert(key.to_owned(), at);
        }
        taken
    }

    fn of(&mut self, app: AppId) -> (&mut Waiting, Room<'_>) {
        let OfApp { bytes, waiting } = self.apps.entry(app).or_default();
        (waiting, Room { all: &mut self.bytes, of_app: bytes })
    }

    fn see(&mut self, app: AppId, key: String, sighting: Sighting) -> bool {
        let (Waiting { discoveries: keys, .. }, mut room) = self.of(app);
        if keys.len() >= 2 * MAX_DISCOVERIES && !keys.contains_key(&key) {
            forget_all_but_the_newest(keys, MAX_DISCOVERIES, &mut room);
        }
        let cost = key.len();
        add(keys.entry(key), sighting, &mut room, cost, |known| {
            known.value_type = sighting.value_type.or(known.value_type);
            known.first = known.first.min(sighting.first);
            known.last = known.last.max(sighting.last);
            known.count = known.count.saturating_add(sighting.count);
        })
    }

    fn evaluated(&mut self, app: AppId, key: String, variant: i32, day: i64, count: i64) -> bool {
        let (Waiting { evaluations, .. }, mut room) = self.of(app);
        let cost = key.len();
        add(evaluations.entry((key, variant, day)), count, &mut room, cost, |known| {
            *known = known.saturating_add(count);
        })
    }

    fn called_from(&mut self, app: AppId, key: String, file: String, line: i64, at: Timestamp) -> bool {
        let (Waiting { call_sites, .. }, mut room) = self.of(app);
        let place = (file, line);
        let flag = key.len();
        let sites = call_sites.entry(key).or_default();
        if sites.len() >= MAX_CALL_SITES
            && !sites.contains_key(&place)
            && let Some(oldest) = sites.iter().min_by_key(|(_, at)| **at).map(|(place, _)| place.clone())
        {
            room.give_back(flag + oldest.0.len());
            sites.remove(&oldest);
        }
        let cost = flag + place.0.len();
        add(sites.entry(place), at, &mut room, cost, |known| *known = (*known).max(at))
    }

    /// Takes out what waits: of one app, or of all.
    pub(super) fn take_out(&mut self, only: Option<AppId>) -> impl Iterator<Item = UsageReport> + Send + use<> {
        let apps: Vec<(AppId, OfApp)> = match only {
            Some(app) => self.apps.remove_entry(&app).into_iter().collect(),
            None => self.apps.drain().collect(),
        };
        self.bytes -= apps.iter().map(|(_, of_app)| of_app.bytes).sum::<usize>();
        apps.into_iter().flat_map(|(app, of_app)| of_app.waiting.reports(app))
    }
}

impl Waiting {
    fn reports(self, app: AppId) -> Vec<UsageReport> {
        let report = move |key, told| UsageReport { app, key, told };
        let seen = self.discoveries.into_iter().map(|(key, sighting)| report(key, Told::Sighted(sighting)));
        let uses = self.uses.into_iter().map(|(key, at)| report(key, Told::Used(at)));
        let counts = self.evaluations.into_iter();
        let counts = counts.map(|((key, variant, day), count)| report(key, Told::Evaluated { variant, day, count }));
        let sites = self.call_sites.into_iter().flat_map(|(key, sites)| {
            let of_flag = move |((file, line), at)| report(key.clone(), Told::CalledFrom { file, line, at });
            sites.into_iter().map(of_flag)
        });
        seen.chain(uses).chain(counts).chain(sites).collect()
    }
}

/// Adds to what is known, or takes a new entry if there is room for it.
fn add<K, V>(entry: Entry<'_, K, V>, new: V, room: &mut Room<'_>, cost: usize, merge: impl FnOnce(&mut V)) -> bool {
    match entry {
        Entry::Occupied(mut known) => merge(known.get_mut()),
        Entry::Vacant(place) if room.take(cost) => drop(place.insert(new)),
        Entry::Vacant(_) => return false,
    }
    true
}

fn forget_all_but_the_newest(keys: &mut HashMap<String, Sighting>, kept: usize, room: &mut Room<'_>) {
    let mut by_sight: Vec<(Timestamp, String)> = keys.iter().map(|(key, seen)| (seen.last, key.clone())).collect();
    by_sight.sort_unstable();
    for (_, key) in &by_sight[..by_sight.len().saturating_sub(kept)] {
        room.give_back(key.len());
        keys.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ValueType;

    const APP: AppId = AppId::from_u128(1);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    fn seen(key: &str, value_type: Option<ValueType>, now: Timestamp) -> UsageReport {
        UsageReport::sighted(APP, key, value_type, now).expect("a key")
    }

    fn site(app: AppId, key: &str, file: String, at: Timestamp) -> UsageReport {
        UsageReport { app, key: key.to_owned(), told: Told::CalledFrom { file, line: 1, at } }
    }

    #[test]
    fn the_least_recently_seen_keys_make_room() {
        let mut gathered = Gathered::default();
        for number in 0..2_000 {
            assert!(gathered.take(seen(&format!("key-{number}"), None, at(number))));
        }
        gathered.take(seen("key-0", Some(ValueType::Number), at(3_000)));
        gathered.take(seen("one-more", None, at(3_001)));
        let keys = &gathered.apps[&APP].waiting.discoveries;
        assert_eq!(keys.len(), 1_001);
        assert!(keys.contains_key("key-0") && keys.contains_key("one-more") && !keys.contains_key("key-1"));
        assert_eq!((keys["key-0"].count, keys["key-0"].value_type), (2, Some(ValueType::Number)));
    }

    #[test]
    fn what_waits_is_bounded_in_bytes_for_each_app_and_in_all() {
        let mut gathered = Gathered::default();
        let file = |number: usize| format!("{number:06}{}", "x".repeat(1_000));
        let fill = |gathered: &mut Gathered, app: u128| {
            let sites = (0..2_000)
                .map(|number| site(AppId::from_u128(app), &format!("flag-{}", number / 50), file(number), at(0)));
            sites.filter(|report| gathered.take(report.clone())).count()
        };
        let taken = fill(&mut gathered, 1);
        assert!((850..950).contains(&taken), "{taken}");
        assert_eq!(fill(&mut gathered, 2), taken, "one app's reports leave the others' room alone");
        for app in 3..=40 {
            fill(&mut gathered, app);
        }
        assert!(gathered.bytes <= MAX_BYTES && gathered.bytes > MAX_BYTES - 2_048, "{}", gathered.bytes);
        assert_eq!(fill(&mut gathered, 41), 0);
        assert_eq!(gathered.take_out(Some(AppId::from_u128(1))).count(), taken);
        assert_eq!(fill(&mut gathered, 41), taken);
        assert!(gathered.take_out(None).count() > taken);
        assert_eq!((gathered.bytes, gathered.apps.len()), (0, 0));
    }

    #[test]
    fn a_flag_has_a_hundred_call_sites_the_newest() {
        let mut gathered = Gathered::default();
        for number in 0..250 {
            assert!(gathered.take(site(APP, "f", format!("{number}.ts"), at(number))));
        }
        let sites = &gathered.apps[&APP].waiting.call_sites["f"];
        assert_eq!(sites.len(), 100);
        assert!(sites.values().all(|seen| *seen >= at(150)));
        assert_eq!(gathered.bytes, 100 * (ENTRY + "f".len() + "150.ts".len()));
    }

    #[test]
    fn a_batch_that_could_not_be_written_is_added_to_what_came_since() {
        let mut gathered = Gathered::default();
        let evaluated = |count| UsageReport::evaluated(APP, "f", 0, at(90_000), count);
        gathered.take(evaluated(3));
        let batch: Vec<UsageReport> = gathered.take_out(None).collect();
        gathered.take(evaluated(4));
        assert!(batch.into_iter().all(|report| gathered.take(report)));
        assert_eq!(gathered.apps[&APP].waiting.evaluations[&("f".to_owned(), 0, 1)], 7);
    }
}
