//! How often each value of a parameter occurred in a bucket.
//!
//! The counters of a bucket are stored in parts of about two kilobytes, each a JSON document in a row of its own. A fold
//! writes the parts that it changed: neither a row for every value, nor a thousand values for one that was counted.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use kernel::{Error, Result};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};

use crate::parameters::{ERASED, OTHER};

/// Values with counters of their own in a bucket, per parameter, beside [`OTHER`] and [`ERASED`].
pub const MOST_VALUES: usize = 1_000;

/// The part of [`OTHER`] and [`ERASED`], and of nothing else: whoever adds to these reads and writes this part alone.
pub const NAMELESS: i64 = 0;
/// A part takes no more values when these, with their counters, are so many bytes.
const FULL: usize = 2_048;
/// What a counter takes beside its value.
const COUNTER: usize = 8;

/// The counters of one parameter in one bucket.
#[derive(Debug, Default)]
pub struct Counters {
    /// Events by value, in the order of their parts.
    counters: Vec<(Arc<str>, i64)>,
    places: HashMap<Arc<str>, usize>,
    nameless: Nameless,
    /// The first counter of each part after [`NAMELESS`].
    starts: Vec<usize>,
    /// Bytes of the last part, the only one that grows.
    size: usize,
    /// Parts that are to be written.
    changed: BTreeSet<usize>,
}

/// Events whose values have no counters of their own.
#[derive(Clone, Copy, Debug, Default)]
struct Nameless {
    others: i64,
    erased: i64,
}

impl Nameless {
    fn of(counts: Vec<(String, i64)>) -> Result<Self> {
        let mut nameless = Self::default();
        for (value, events) in counts {
            match &*value {
                OTHER => nameless.others = events,
                ERASED => nameless.erased = events,
                _ => return Err(damaged()),
            }
        }
        Ok(nameless)
    }

    fn written(self) -> Result<String> {
        let counters = [(OTHER, self.others), (ERASED, self.erased)];
        let counters: Vec<_> = counters.into_iter().filter(|(_, events)| *events > 0).collect();
        write_part(&counters)
    }
}

impl Counters {
    /// Reads a part as it is stored, one after the other.
    pub fn learn(&mut self, part: i64, counts: &str) -> Result<()> {
        let counts = read_part(counts)?;
        if part == NAMELESS {
            self.nameless = Nameless::of(counts)?;
            return Ok(());
        }
        self.begin_part();
        if usize::try_from(part) != Ok(self.starts.len()) {
            return Err(damaged());
        }
        counts.into_iter().for_each(|(value, events)| self.append(&value, events));
        Ok(())
    }

    /// Values with a counter.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Counts an event: what was once counted by name always is. Whether that changes a part that was not changed yet.
    pub fn count(&mut self, value: &str) -> bool {
        let place = match self.places.get(value) {
            Some(place) => {
                let events = &mut self.counters[*place].1;
                *events = events.saturating_add(1);
                *place
            }
            None if value == ERASED => return self.count_nameless(|nameless| &mut nameless.erased),
            None if value == OTHER || self.len() >= MOST_VALUES => {
                return self.count_nameless(|nameless| &mut nameless.others);
            }
            None => {
                if self.starts.is_empty() || self.size >= FULL {
                    self.begin_part();
                }
                self.append(value, 1);
                self.counters.len() - 1
            }
        };
        self.changed.insert(self.starts.partition_point(|start| *start <= place))
    }

    fn count_nameless(&mut self, counter: impl FnOnce(&mut Nameless) -> &mut i64) -> bool {
        let events = counter(&mut self.nameless);
        *events = events.saturating_add(1);
        self.changed.insert(0)
    }

    /// The parts that have changed since, as they are stored.
    pub fn written(&mut self) -> Result<Vec<(i64, String)>> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|part| Ok((i64::try_from(part).map_err(Error::internal)?, self.text(part)?))).collect()
    }

    fn text(&self, part: usize) -> Result<String> {
        let Some(place) = part.checked_sub(1) else { return self.nameless.written() };
        let end = self.starts.get(part).copied().unwrap_or(self.counters.len());
        write_part(&self.counters[self.starts[place]..end])
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
}

/// A part without a value, and how often that was counted; `None` where it is not in the part.
pub fn without(counts: &str, value: &str) -> Result<Option<(String, i64)>> {
    let mut counts = read_part(counts)?;
    let Some(place) = counts.iter().position(|(counted, _)| counted == value) else { return Ok(None) };
    let (_, events) = counts.remove(place);
    Ok(Some((write_part(&counts)?, events)))
}

/// The part [`NAMELESS`] with more events whose value was erased.
pub fn with_erased(counts: Option<&str>, events: i64) -> Result<String> {
    let mut nameless = counts.map(read_part).transpose()?.map(Nameless::of).transpose()?.unwrap_or_default();
    nameless.erased = nameless.erased.saturating_add(events);
    nameless.written()
}

/// A part as it is stored: events by value.
struct Part<'a, V>(&'a [(V, i64)]);

impl<V: AsRef<str>> Serialize for Part<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(value, events)| (value.as_ref(), events)))
    }
}

fn write_part(counters: &[(impl AsRef<str>, i64)]) -> Result<String> {
    serde_json::to_string(&Part(counters)).map_err(Error::internal)
}

/// Events by value, of a part as it is stored.
pub fn read_part(counts: &str) -> Result<Vec<(String, i64)>> {
    serde_json::from_str(counts).map(|ReadPart(counters)| counters).map_err(Error::internal)
}

/// A list: a chart reads thousands of parts, and to sort each by itself would be most of its work.
struct ReadPart(Vec<(String, i64)>);

impl<'de> Deserialize<'de> for ReadPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PartVisitor)
    }
}

struct PartVisitor;

impl<'de> Visitor<'de> for PartVisitor {
    type Value = ReadPart;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("events by value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut counters = Vec::new();
        while let Some(counter) = map.next_entry()? {
            counters.push(counter);
        }
        Ok(ReadPart(counters))
    }
}

fn damaged() -> Error {
    Error::internal("counters of values are not as they were written")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Parts = BTreeMap<i64, String>;

    /// What is stored after each fold is what the next one knows.
    fn stored(parts: &Parts) -> Counters {
        let mut counters = Counters::default();
        for (part, counts) in parts {
            counters.learn(*part, counts).expect("a part");
        }
        counters
    }

    fn all(parts: &Parts) -> BTreeMap<String, i64> {
        parts.values().flat_map(|counts| read_part(counts).expect("a part")).collect()
    }

    fn count(parts: &mut Parts, values: impl IntoIterator<Item = String>) {
        let mut counters = stored(parts);
        for value in values {
            counters.count(&value);
        }
        parts.extend(counters.written().expect("parts"));
    }

    /// As an erasure does it.
    fn erase(parts: &mut Parts, value: &str) -> i64 {
        let mut found = 0;
        for counts in parts.values_mut() {
            if let Some((without, events)) = without(counts, value).expect("a part") {
                (*counts, found) = (without, events);
            }
        }
        let nameless = with_erased(parts.get(&NAMELESS).map(String::as_str), found).expect("a part");
        parts.insert(NAMELESS, nameless);
        found
    }

    #[test]
    fn the_first_thousand_values_are_counted_by_name_and_the_others_together() {
        let mut parts = Parts::new();
        count(&mut parts, (0..1_200).chain([999, 1_000]).map(|number| format!("v{number}")));
        let counts = all(&parts);
        assert_eq!((counts.len(), counts["v999"], counts[OTHER]), (1_001, 2, 201));
        assert!(parts.values().all(|part| part.len() < 3 * FULL), "parts are small");
        // Only where something was counted is anything written.
        let mut again = stored(&parts);
        again.count("new");
        assert_eq!(again.written().expect("parts"), [(NAMELESS, format!("{{\"{OTHER}\":202}}"))]);
    }

    #[test]
    fn an_erased_value_makes_room_for_another_one_and_all_others_keep_their_counters() {
        let mut parts = Parts::new();
        count(&mut parts, (0..1_001).map(|number| format!("v{number}")));
        assert_eq!(erase(&mut parts, "v7"), 1);
        count(&mut parts, ["new", "newer", "v999"].map(str::to_owned));
        let counts = all(&parts);
        assert_eq!((counts.len(), counts["new"], counts["v999"]), (1_002, 1, 2));
        assert_eq!((counts[OTHER], counts[ERASED]), (2, 1));
        assert!(!counts.contains_key("v7") && !counts.contains_key("newer"));
    }

    #[test]
    fn what_was_never_written_like_that_is_refused() {
        let refused = |parts: &[(i64, &str)]| {
            let mut counters = Counters::default();
            parts.iter().any(|(part, counts)| counters.learn(*part, counts).is_err())
        };
        assert!(!refused(&[(0, r#"{"__other__":1}"#), (1, r#"{"a":1}"#), (2, "{}")]));
        for (part, counts) in [(i64::MAX, "{}"), (-1, "{}"), (2, "{}"), (0, r#"{"a":1}"#), (1, "[]"), (1, "")] {
            assert!(refused(&[(part, counts)]), "{part} {counts}");
        }
    }

    proptest! {
        #[test]
        fn counting_in_folds_is_counting_at_once(
            folds in prop::collection::vec(
                (prop::collection::vec("[a-f]{1,3}|__erased__|__other__", 0..60), prop::option::of("[a-f]{1,2}")),
                0..12,
            )
        ) {
            let (mut parts, mut expected) = (Parts::new(), BTreeMap::<String, i64>::new());
            for (values, erased) in folds {
                for value in &values {
                    *expected.entry(value.clone()).or_default() += 1;
                }
                count(&mut parts, values);
                if let Some(value) = erased {
                    let events = expected.remove(&value).unwrap_or(0);
                    prop_assert_eq!(erase(&mut parts, &value), events);
                    if events > 0 {
                        *expected.entry(ERASED.to_owned()).or_default() += events;
                    }
                }
                prop_assert_eq!(&all(&parts), &expected);
            }
        }
    }
}
