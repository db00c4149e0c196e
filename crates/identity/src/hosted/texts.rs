//! What the pages say is what translators are told that they say.

use std::{collections::BTreeSet, fs, path::Path};

/// The texts in a source file: what stands in quotes behind a call that translates.
fn texts(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Not written as calls here, because this file is looked through as well.
    for call in ["say", "say_of", ".page"].map(|name| format!("{name}(")) {
        for (at, _) in source.match_indices(&call) {
            let behind = source[at + call.len()..].trim_start();
            if let Some(text) = behind.strip_prefix('"').and_then(|text| text.split_once('"')) {
                found.push(text.0.to_owned());
            }
        }
    }
    found
}

#[test]
fn every_text_is_listed_for_translators() {
    let page = include_str!("../../../../docs/branding.md");
    let pages = page.split_once("\nOn pages:\n").expect("a list of the texts on pages").1;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/hosted");
    let mut missing = BTreeSet::new();
    for entry in fs::read_dir(folder).expect("the folder of the pages") {
        let path = entry.expect("an entry").path();
        if path.is_dir() || path.ends_with("texts.rs") {
            continue;
        }
        let source = fs::read_to_string(path).expect("a source file");
        missing.extend(texts(&source).into_iter().filter(|text| !pages.contains(&format!("\n- {text}\n"))));
    }
    assert_eq!(missing, BTreeSet::new(), "docs/branding.md lacks these texts on pages");
}
