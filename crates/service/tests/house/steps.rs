//! Inside the large rooms modules stand on each other like steps: a lower one does not use a higher one, so that another
//! way to sign in, or another part of an app, is added on top and nothing below has to know it. And identity's SQL stands
//! in `store` files.

use std::collections::BTreeSet;

use service::TABLES;

use crate::{
    sources::{Source, sources, texts},
    tables::named,
};

/// A room's modules from the bottom up.
struct Staircase {
    room: &'static str,
    steps: &'static [Step],
    /// What every step may use, and what uses none of them.
    ground: &'static [&'static str],
    /// Lists of the whole room, which name everybody's ids and tables.
    lists: &'static [&'static str],
}

enum Step {
    /// Modules that do not use each other.
    Apart(&'static [&'static str]),
    /// Modules that make sense only together.
    Together(&'static [&'static str]),
}
use Step::{Apart, Together};

const STAIRCASES: [Staircase; 2] = [
    Staircase {
        room: "identity",
        steps: &[
            Apart(&["proof"]),
            Apart(&["facts"]),
            Apart(&["announcements"]),
            Apart(&["sessions"]),
            Apart(&["tokens"]),
            Apart(&["authorize", "browser_sessions", "handover"]),
            Apart(&["mfa"]),
            Apart(&["login"]),
            Apart(&["passkeys"]),
            Apart(&["hosted"]),
            Apart(&["federation"]),
            Apart(&["me"]),
        ],
        ground: &["Identity", "abuse", "browser", "tables"],
        lists: &[],
    },
    Staircase {
        room: "tenancy",
        steps: &[
            Apart(&["apps", "links", "logins", "people"]),
            Apart(&["branding", "federation", "standing"]),
            Apart(&["mails"]),
            // Who somebody is, what they may do, and what it is done to.
            Together(&[
                "Authority",
                "api_tokens",
                "authority",
                "callers",
                "credentials",
                "keys",
                "members",
                "roles",
                "scim_tokens",
                "workspaces",
            ]),
            Apart(&["alerts", "app_lifecycle", ROUTES]),
        ],
        ground: &[
            "App",
            "AppDirectory",
            "OperatorKey",
            "Tenancy",
            "facts",
            "locks",
            "operator_key",
            "paths",
            "sessions_not_ended",
        ],
        lists: &["facts", "tables"],
    },
];

/// Files that declare routes stand on top, whatever they are about: routes ask for callers.
const ROUTES: &str = "http";

impl Staircase {
    fn step(&self, module: &str) -> Option<(usize, &Step)> {
        self.steps.iter().enumerate().find(|(_, Apart(modules) | Together(modules))| modules.contains(&module))
    }

    fn may_use(&self, own: &str, used: &str) -> bool {
        match (self.step(own), self.step(used)) {
            (Some((own, Together(_))), Some((used, _))) => own >= used,
            (Some((own, Apart(_))), Some((used, _))) => own > used,
            _ => false,
        }
    }
}

/// The module that a source belongs to: `src/login/flows.rs` to `login`.
fn module<'a>(staircase: &Staircase, source: &'a Source) -> &'a str {
    let inside = source.path.strip_prefix("src/").expect("below src");
    if staircase.step(ROUTES).is_some() && inside.contains("/http") {
        return ROUTES;
    }
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
    for staircase in &STAIRCASES {
        let (mut wrong, mut seen) = (Vec::new(), 0);
        let inside = |source: &&Source| source.room == staircase.room && source.path != "src/lib.rs";
        for source in sources().iter().filter(inside) {
            let own = module(staircase, source);
            if staircase.lists.contains(&own) {
                continue;
            }
            let known = staircase.step(own).is_some() || staircase.ground.contains(&own);
            assert!(known, "{} has no step yet", source.path);
            for used in uses(&source.text).into_iter().filter(|used| *used != own && !staircase.ground.contains(used)) {
                seen += 1;
                if !staircase.may_use(own, used) {
                    wrong.push(format!("{} uses {used}", source.path));
                }
            }
        }
        assert!(seen > 60, "the uses in {} were found: {seen}", staircase.room);
        assert!(wrong.is_empty(), "a lower step of {} uses a higher one:\n{}", staircase.room, wrong.join("\n"));
    }
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
    for source in sources().into_iter().filter(|source| source.room == "identity") {
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
