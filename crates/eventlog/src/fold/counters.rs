//! How often each value of a parameter occurred in a bucket.
//!
//! The counters of a bucket are stored in parts of about two kilobytes, each a JSON document in a row of its own. A fold
//! writes the parts that it changed: neither a row for every value, nor a thousand values for one that was counted.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use kernel::{Error, Result};
use serde::{Serialize, Serializer};

use crate::parameters::OTHER;

/// Values with counters of their own in a bucket, per parameter, beside [`OTHER`].
pub const MOST_VALUES: usize = 1_000;

/// The part of [`OTHER`], which is alone there: it grows with every event once there are enough values.
const OTHERS: usize = 0;
/// A part takes no more values when these, with their counters, are so many bytes.
const FULL: usize = 2_048;
/// What a counter takes beside its value.
const COUNTER: usize = 8;

/// The counters of one parameter in one bucket.
#[derive(Debug, Default)]
pub struct Counters {
    /// Events by value, in the order of their parts; without events where a counter was taken away.
    counters: Vec<(Arc<str>, i64)>,
    places: HashMap<Arc<str>, usize>,
    others: i64,
    /// The first counter of each part after [`OTHERS`].
    starts: Vec<usize>,
    /// Bytes of the last part, the only one that grows.
    size: usize,
    /// Parts that are to be written.
    changed: BTreeSet<usize>,
}

impl Counters {
    /// Reads a part as it is stored, one after the other.
    pub fn learn(&mut self, part: i64, counts: &str) -> Result<()> {
        let part = usize::try_from(part).map_err(Error::internal)?;
        while self.starts.len() < part {
            self.begin_part();
        }
        for (value, events) in read_part(counts)? {
            match value == OTHER {
                true => self.others += events,
                false => self.append(&value, events),
            }
        }
        Ok(())
    }

    /// Values with a counter.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Counts an event: what was once counted by name always is. Whether that changes a part that was not changed yet.
    pub fn count(&mut self, value: &str) -> bool {
        let is_named = self.places.contains_key(value);
        if value == OTHER || !is_named && self.len() >= MOST_VALUES {
            self.others += 1;
            return self.changed.insert(OTHERS);
        }
        self.add(value, 1)
    }

    /// Adds events to the counter of a value, which it is given if it has none.
    pub fn add(&mut self, value: &str, events: i64) -> bool {
        let place = match self.places.get(value) {
            Some(place) => {
                self.counters[*place].1 += events;
                *place
            }
            None => {
                if self.starts.is_empty() || self.size >= FULL {
                    self.begin_part();
                }
                self.append(value, events);
                self.counters.len() - 1
            }
        };
        self.changed.insert(self.part_of(place))
    }

    /// Takes a counter away and answers what it had counted.
    pub fn take(&mut self, value: &str) -> i64 {
        let Some(place) = self.places.remove(value) else { return 0 };
        self.changed.insert(self.part_of(place));
        std::mem::take(&mut self.counters[place].1)
    }

    /// The parts that have changed since, as they are stored.
    pub fn written(&mut self) -> Result<Vec<(i64, String)>> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|part| Ok((i64::try_from(part).map_err(Error::internal)?, self.text(part)?))).collect()
    }

    fn text(&self, part: usize) -> Result<String> {
        let others = [(OTHER.into(), self.others)];
        let counters = match part.checked_sub(OTHERS + 1) {
            None => &others,
            Some(place) => {
                let end = self.starts.get(place + 1).copied().unwrap_or(self.counters.len());
                &self.counters[self.starts[place]..end]
            }
        };
        serde_json::to_string(&Part(counters)).map_err(Error::internal)
    }

    fn begin_part(&mut self) {
        self.starts.push(self.counters.len());
        self.size = 0;
    }

    fn append(&mut self, value: &str, events: i64) {
        let value: Arc<str> = value.into();
        self.size += value.len() + COUNTER;
        self.places.insert(Arc::clone(&value), self.counters.len());
        self.counters.push((value, events));
    }

    fn part_of(&self, place: usize) -> usize {
        OTHERS + self.starts.partition_point(|start| *start <= place)
    }
}

/// A part as it is stored: events by value.
struct Part<'a>(&'a [(Arc<str>, i64)]);

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer
            .collect_map(self.0.iter().filter(|(_, events)| *events > 0).map(|(value, events)| (&**value, events)))
    }
}

/// Events by value, of a part as it is stored.
pub fn read_part(counts: &str) -> Result<BTreeMap<String, i64>> {
    serde_json::from_str(counts).map_err(Error::internal)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is stored after each fold is what the next one knows.
    fn stored(parts: &BTreeMap<i64, String>) -> Counters {
        let mut counters = Counters::default();
        for (part, counts) in parts {
            counters.learn(*part, counts).expect("a part");
        }
        counters
    }

    fn all(parts: &BTreeMap<i64, String>) -> BTreeMap<String, i64> {
        parts.values().flat_map(|counts| read_part(counts).expect("a part")).collect()
    }

    #[test]
    fn the_first_thousand_values_are_counted_by_name_and_the_others_together() {
        let mut counters = Counters::default();
        for number in 0..1_200 {
            counters.count(&format!("v{number}"));
        }
        counters.count("v999");
        counters.count("v1000");
        let parts = counters.written().expect("parts").into_iter().collect();
        let counts = all(&parts);
        assert_eq!((counts.len(), counts["v999"], counts[OTHER]), (1_001, 2, 201));
        assert!(parts.values().all(|part| part.len() < 3 * FULL), "parts are small");
        // Only where something was counted is anything written.
        let mut again = stored(&parts);
        again.count("new");
        assert_eq!(again.written().expect("parts"), [(0, format!("{{\"{OTHER}\":202}}"))]);
    }

    proptest! {
        #[test]
        fn counting_in_folds_is_counting_at_once(
            folds in prop::collection::vec(prop::collection::vec(("[a-f]{1,3}", prop::bool::weighted(0.05)), 0..60), 0..12)
        ) {
            let (mut parts, mut expected) = (BTreeMap::new(), BTreeMap::<String, i64>::new());
            for fold in folds {
                let mut counters = stored(&parts);
                for (value, is_taken) in fold {
                    if is_taken {
                        prop_assert_eq!(counters.take(&value), expected.remove(&value).unwrap_or(0));
                    } else {
                        counters.count(&value);
                        *expected.entry(value).or_default() += 1;
                    }
                }
                parts.extend(counters.written().expect("parts"));
                prop_assert_eq!(&all(&parts), &expected);
            }
        }
    }
}
