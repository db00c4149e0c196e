//! How often each value of a parameter occurred in a bucket.
//!
//! The counters of a bucket are stored in parts of about two kilobytes, each a JSON document in a row of its own. A fold
//! writes the parts that it changed: neither a row for every value, nor a thousand values for one that was counted.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kernel::{Error, Result};

use crate::parameters::OTHER;

/// Values with counters of their own in a bucket, per parameter, beside [`OTHER`].
pub const MOST_VALUES: usize = 1_000;

/// The part of [`OTHER`], which is alone there: it grows with every event once there are enough values.
const OTHERS: i64 = 0;
/// A part takes no more values when these, with their counters, are so many bytes.
const FULL: usize = 2_048;
/// What a counter takes beside its value.
const COUNTER: usize = 8;

/// The counters of one parameter in one bucket.
#[derive(Debug, Default)]
pub struct Counters {
    named: HashMap<Box<str>, Counter>,
    others: i64,
    /// Bytes of each part, from the one after [`OTHERS`].
    sizes: Vec<usize>,
    /// Parts that are to be written.
    changed: BTreeSet<i64>,
}

#[derive(Clone, Copy, Debug)]
struct Counter {
    part: i64,
    events: i64,
}

impl Counters {
    /// Reads a part as it is stored.
    pub fn learn(&mut self, part: i64, counts: &str) -> Result<()> {
        for (value, events) in read_part(counts)? {
            if value == OTHER {
                self.others += events;
                continue;
            }
            let place = usize::try_from(part - OTHERS - 1).map_err(Error::internal)?;
            if self.sizes.len() <= place {
                self.sizes.resize(place + 1, 0);
            }
            self.sizes[place] += value.len() + COUNTER;
            self.named.insert(value.into(), Counter { part, events });
        }
        Ok(())
    }

    /// Values with a counter.
    pub fn len(&self) -> usize {
        self.named.len()
    }

    /// Counts an event: what was once counted by name always is. Whether that changes a part that was not changed yet.
    pub fn count(&mut self, value: &str) -> bool {
        let is_named = self.named.contains_key(value);
        if value == OTHER || !is_named && self.named.len() >= MOST_VALUES {
            self.others += 1;
            return self.changed.insert(OTHERS);
        }
        self.add(value, 1)
    }

    /// Adds events to the counter of a value, which it is given if it has none.
    pub fn add(&mut self, value: &str, events: i64) -> bool {
        if let Some(counter) = self.named.get_mut(value) {
            counter.events += events;
            return self.changed.insert(counter.part);
        }
        let place = self.sizes.iter().position(|size| *size < FULL).unwrap_or_else(|| {
            self.sizes.push(0);
            self.sizes.len() - 1
        });
        self.sizes[place] += value.len() + COUNTER;
        let part = OTHERS + 1 + i64::try_from(place).unwrap_or(i64::MAX);
        self.named.insert(value.into(), Counter { part, events });
        self.changed.insert(part)
    }

    /// Takes a counter away and answers what it had counted.
    pub fn take(&mut self, value: &str) -> i64 {
        let Some(Counter { part, events }) = self.named.remove(value) else { return 0 };
        self.changed.insert(part);
        events
    }

    /// The parts that have changed since, as they are stored.
    pub fn written(&mut self) -> Result<Vec<(i64, String)>> {
        let mut parts: BTreeMap<i64, BTreeMap<&str, i64>> =
            std::mem::take(&mut self.changed).into_iter().map(|part| (part, BTreeMap::new())).collect();
        if let Some(others) = parts.get_mut(&OTHERS) {
            others.insert(OTHER, self.others);
        }
        for (value, Counter { part, events }) in &self.named {
            if let Some(counts) = parts.get_mut(part) {
                counts.insert(value, *events);
            }
        }
        let text = |counts: &BTreeMap<&str, i64>| serde_json::to_string(counts).map_err(Error::internal);
        parts.into_iter().map(|(part, counts)| Ok((part, text(&counts)?))).collect()
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
        assert_eq!(again.written().expect("parts"), [(OTHERS, format!("{{\"{OTHER}\":202}}"))]);
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
