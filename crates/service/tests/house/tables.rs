//! A table is named only in the SQL of its owner's crate: what others want to know or change they ask its owner for, by a
//! function or by a condition to put into their own statements (`tenancy::app_exists!`). So a rule about rows has one place.

use std::collections::{BTreeMap, BTreeSet};

use service::TABLES;

use crate::sources::{sources, texts};

/// A source, a table of another crate that its SQL names, and why that is better than asking the owner.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "identity/src/login/store.rs",
        "users",
        "a person and their password are found by one statement, so that known and unknown accounts cost the same",
    ),
    (
        "tenancy/src/tables.rs",
        "refresh_tokens",
        "a login is swept once no refresh token belongs to it, which one statement has to see",
    ),
];

fn is_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// The names that stand where SQL names a table.
pub fn named(text: &str) -> Vec<&str> {
    let words: Vec<&str> = text.split(|c: char| !is_name(c)).filter(|word| !word.is_empty()).collect();
    let after = |pair: &[&str]| matches!(pair[0], "FROM" | "JOIN" | "INTO" | "UPDATE" | "TABLE" | "EXISTS");
    words.windows(2).filter(|pair| after(pair)).map(|pair| pair[1]).collect()
}

#[test]
fn a_table_is_named_only_by_its_owner() {
    let owner: BTreeMap<&str, &str> =
        TABLES.iter().flat_map(|(room, tables)| tables.iter().map(move |table| (table.name, *room))).collect();
    let (mut foreign, mut excused) = (Vec::new(), BTreeSet::new());
    for source in sources() {
        let place = format!("{}/{}", source.room, source.path);
        for text in texts(&source.text) {
            for table in named(&text) {
                let Some(owner) = owner.get(table).filter(|owner| **owner != source.room) else { continue };
                match EXCEPTIONS.iter().position(|(path, excepted, _)| *path == place && *excepted == table) {
                    Some(exception) => drop(excused.insert(exception)),
                    None => foreign.push(format!("{place} names {table}, which {owner} owns")),
                }
            }
        }
    }
    assert!(foreign.is_empty(), "ask the owner instead:\n{}", foreign.join("\n"));
    assert_eq!(excused.len(), EXCEPTIONS.len(), "an exception that is no longer needed: used are {excused:?}");
}
