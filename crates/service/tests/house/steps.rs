//! Inside `identity` modules stand on each other like steps: a lower one does not use a higher one, so that another way to
//! sign in is added on top and nothing below has to know it. And its SQL stands in `store` files.

use std::collections::BTreeSet;

use service::TABLES;

use crate::{
    sources::{Source, sources, texts},
    tables::named,
};

const ROOM: &str = "identity";

/// From the bottom up. Modules of one step do not use each other.
const STEPS: &[&[&str]] = &[
    &["proof"],
    &["facts"],
    &["announcements"],
    &["sessions"],
    &["tokens"],
    &["authorize", "browser_sessions", "handover"],
    &["mfa"],
    &["login"],
    &["passkeys"],
    &["hosted"],
];

/// What every step may use, and what uses none of them.
const GROUND: &[&str] = &["Identity", "abuse", "browser", "tables"];

fn step(module: &str) -> Option<usize> {
    STEPS.iter().position(|modules| modules.contains(&module))
}

/// The module that a source belongs to: `src/login/http.rs` to `login`.
fn module(source: &Source) -> &str {
    let inside = source.path.strip_prefix("src/").expect("below src");
    inside.split('/').next().expect("a first part").trim_end_matches(".rs")
}

/// The modules that a source names by `crate::…`, also in a group.
fn uses(text: &str) -> BTreeSet<&str> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.scan(0_usize, |depth, line| Some(names_in(line, depth))).flatten().collect()
}

/// The names on a line. `depth` is how many braces of a group that begins with `crate::{` are open.
fn names_in<'a>(line: &'a str, depth: &mut usize) -> Vec<&'a str> {
    let (mut names, mut rest) = (Vec::new(), line);
    let first_word = |text: &'a str| text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    while !rest.is_empty() {
        if *depth == 0 {
            let Some(at) = rest.find("crate::") else { break };
            rest = &rest[at + "crate::".len()..];
            match rest.strip_prefix('{') {
                Some(inside) => (*depth, rest) = (1, inside),
                None => names.push(first_word(rest)),
            }
            continue;
        }
        let letter = rest.chars().next().expect("not empty");
        let word = first_word(rest);
        match letter {
            '{' => *depth += 1,
            '}' => *depth -= 1,
            _ => {}
        }
        // Deeper names, and what follows a path's `::`, belong to a module that was named before.
        if *depth == 1 && !word.is_empty() && !line[..line.len() - rest.len()].ends_with("::") {
            names.push(word);
        }
        rest = &rest[word.len().max(letter.len_utf8())..];
    }
    names
}

#[test]
fn lower_steps_do_not_use_higher_ones() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for source in sources().iter().filter(|source| source.room == ROOM && source.path != "src/lib.rs") {
        let own = module(source);
        assert!(step(own).is_some() || GROUND.contains(&own), "{} has no step yet", source.path);
        for used in uses(&source.text).into_iter().filter(|used| *used != own && !GROUND.contains(used)) {
            seen += 1;
            let stands_above = match (step(own), step(used)) {
                (Some(own), Some(used)) => own > used,
                _ => false,
            };
            if !stands_above {
                wrong.push(format!("{} uses {used}", source.path));
            }
        }
    }
    assert!(seen > 60, "the uses were found: {seen}");
    assert!(wrong.is_empty(), "a lower step uses a higher one:\n{}", wrong.join("\n"));
}

#[test]
fn uses_are_found_in_groups_and_paths() {
    let text = "use crate::{\n    Identity,\n    abuse::{self, Subject},\n    login, // crate::mfa\n    tokens::{\n        codes,\n    },\n};\nfn f(x: crate::hosted::Reply) {}\nuse crate::proof::Method;";
    assert_eq!(uses(text), ["Identity", "abuse", "hosted", "login", "proof", "tokens"].into());
}

#[test]
fn sql_stands_in_store_files() {
    let tables: BTreeSet<&str> = TABLES.iter().flat_map(|(_, tables)| tables.iter().map(|table| table.name)).collect();
    let is_store = |path: &str| path.ends_with("/store.rs") || path.contains("/store/");
    let (mut elsewhere, mut seen) = (BTreeSet::new(), 0);
    for source in sources().into_iter().filter(|source| source.room == ROOM) {
        let texts = texts(&source.text);
        let names = texts.iter().flat_map(|text| named(text)).filter(|name| tables.contains(name)).count();
        match is_store(&source.path) {
            true => seen += names,
            false if names > 0 => drop(elsewhere.insert(source.path)),
            false => {}
        }
    }
    assert!(seen > 40, "the statements were found: {seen}");
    assert!(elsewhere.is_empty(), "SQL belongs into a store file: {elsewhere:?}");
}
