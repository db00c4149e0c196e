//! A name means one thing: no two types that the rest of a crate can see share a name, so that searching for one finds it.
//! And what `docs/words.md` says to hold a word exists.

use std::collections::{BTreeMap, BTreeSet};

use service::TABLES;

use crate::sources::{Source, sources};

/// Every declared type, with whether others may see it.
fn types(source: &Source) -> impl Iterator<Item = (bool, &str)> {
    source.text.lines().filter_map(|line| {
        let line = line.trim_start();
        let (visible, rest) = match line.strip_prefix("pub") {
            Some(rest) if rest.starts_with('(') => (true, rest.split_once(") ")?.1),
            Some(rest) => (true, rest.strip_prefix(' ')?),
            None => (false, line),
        };
        let (kind, rest) = rest.split_once(' ')?;
        let name = rest.split(|letter: char| !letter.is_alphanumeric()).next()?;
        // A macro names its types by a parameter: `$name`.
        let declares = matches!(kind, "struct" | "enum" | "trait" | "type" | "union") && !name.is_empty();
        declares.then_some((visible, name))
    })
}

#[test]
fn no_two_types_of_a_crate_share_a_name() {
    let sources = sources();
    let mut places: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for source in &sources {
        for (_, name) in types(source).filter(|(visible, _)| *visible) {
            places.entry((&source.room, name)).or_default().push(&source.path);
        }
    }
    assert!(places.len() > 300, "the types were found: {}", places.len());
    places.retain(|_, places| places.len() > 1);
    assert!(places.is_empty(), "name each by its thing: {places:#?}");
}

#[test]
fn what_holds_a_word_exists() {
    let sources = sources();
    let mut known: BTreeSet<&str> = sources.iter().flat_map(types).map(|(_, name)| name).collect();
    known.extend(TABLES.iter().flat_map(|(_, tables)| tables.iter().map(|table| table.name)));
    let page = include_str!("../../../../docs/words.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| **")).collect();
    assert!(rows.len() >= 20, "the words were found: {}", rows.len());
    let holders = rows.iter().map(|row| row.split('|').nth(3).expect("three columns"));
    let names = holders.flat_map(|holders| holders.split('`').skip(1).step_by(2));
    let missing: BTreeSet<&str> = names.filter(|name| !known.contains(name)).collect();
    assert!(missing.is_empty(), "docs/words.md names what does not exist: {missing:?}");
}
