//! Checked-in inputs: `tests/corpus/<parser>/accepted/*` and `tests/corpus/<parser>/refused/*` of a crate, one per file.

use std::{fs, path::Path};

struct Case {
    name: String,
    accepted: bool,
    bytes: Vec<u8>,
}

/// Shows every checked-in input to the parser and fails with a list of those that it judged otherwise than its folder
/// says. `home` is the crate's `env!("CARGO_MANIFEST_DIR")`.
pub fn replay(home: &str, parser: &str, accepts: impl Fn(&[u8]) -> bool) {
    let cases = read(home, parser);
    assert!(cases.iter().any(|case| case.accepted), "{parser}: nothing to accept");
    assert!(cases.iter().any(|case| !case.accepted), "{parser}: nothing to refuse");
    let misjudged: Vec<&str> =
        cases.iter().filter(|case| accepts(&case.bytes) != case.accepted).map(|case| case.name.as_str()).collect();
    assert!(misjudged.is_empty(), "{parser}: judged otherwise than their folder says: {misjudged:?}");
}

/// The inputs that the parser accepts, to be changed.
pub fn seeds(home: &str, parser: &str) -> Vec<Vec<u8>> {
    let seeds: Vec<_> = read(home, parser).into_iter().filter(|case| case.accepted).map(|case| case.bytes).collect();
    assert!(!seeds.is_empty(), "{parser}: nothing to change");
    seeds
}

fn read(home: &str, parser: &str) -> Vec<Case> {
    let corpus = Path::new(home).join("tests/corpus").join(parser);
    let mut cases = Vec::new();
    for (folder, accepted) in [("accepted", true), ("refused", false)] {
        let files = fs::read_dir(corpus.join(folder)).expect("a folder of inputs");
        for file in files {
            let path = file.expect("can be listed").path();
            let name = format!("{folder}/{}", path.file_name().unwrap_or_default().to_string_lossy());
            cases.push(Case { name, accepted, bytes: fs::read(&path).expect("can be read") });
        }
    }
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    cases
}
