//! Who comes more than once in a batch. Of everybody only a mark is kept: a batch may be large.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    hash::{BuildHasher as _, RandomState},
};

use vault::passwords::Imported;

/// Enough of a keyed hash to tell a hundred thousand apart. Nobody knows the key, which lives as long as the batch is read.
type Mark = [u64; 2];

#[derive(Default)]
pub(super) struct Doubles {
    key: RandomState,
    /// Everybody in the batch, with the item that they first came in.
    people: HashMap<Mark, usize>,
    /// Further items of people who are in several.
    elsewhere: HashSet<(Mark, usize)>,
    /// The password that somebody first came with.
    passwords: HashMap<Mark, Mark>,
}

/// How often somebody has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Never,
    Elsewhere,
    /// In the same item.
    Here,
}

impl Doubles {
    /// Notes that somebody comes in an item, by the form in which addresses are compared.
    pub(super) fn see(&mut self, key: &str, item: usize) -> Seen {
        let person = self.mark(key.as_bytes());
        match self.people.entry(person) {
            Entry::Vacant(place) => {
                place.insert(item);
                Seen::Never
            }
            Entry::Occupied(first) if *first.get() == item => Seen::Here,
            Entry::Occupied(_) if self.elsewhere.insert((person, item)) => Seen::Elsewhere,
            Entry::Occupied(_) => Seen::Here,
        }
    }

    /// Notes a password; whether it is another one than the person first came with.
    pub(super) fn differs(&mut self, key: &str, password: &Imported) -> bool {
        let Ok(json) = password.to_json() else { return false };
        let (person, password) = (self.mark(key.as_bytes()), self.mark(&json));
        *self.passwords.entry(person).or_insert(password) != password
    }

    fn mark(&self, text: &[u8]) -> Mark {
        [0_u8, 1].map(|half| self.key.hash_one((half, text)))
    }
}

#[cfg(test)]
mod tests {
    use vault::passwords::DigestAlgorithm;

    use super::*;

    #[test]
    fn somebody_is_told_from_others_and_items_from_each_other() {
        let mut doubles = Doubles::default();
        assert_eq!(doubles.see("a", 1), Seen::Never);
        assert_eq!(doubles.see("b", 1), Seen::Never);
        assert_eq!(doubles.see("a", 2), Seen::Elsewhere);
        assert_eq!(doubles.see("a", 3), Seen::Elsewhere);
        // In a table, the rows of workspaces may be mixed.
        for item in [1, 2, 3] {
            assert_eq!(doubles.see("a", item), Seen::Here, "{item}");
        }
        assert_eq!(doubles.see("b", 2), Seen::Elsewhere);
    }

    #[test]
    fn the_first_password_is_what_others_differ_from() {
        let mut doubles = Doubles::default();
        let password =
            |value: &str| Imported { algorithm: DigestAlgorithm::Md5, value: value.to_owned(), pepper: None };
        assert!(!doubles.differs("a", &password("1")));
        assert!(doubles.differs("a", &password("2")));
        assert!(!doubles.differs("a", &password("1")));
        assert!(!doubles.differs("b", &password("2")));
    }
}
