//! The sources of all crates, and the texts in them.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// One source file.
pub struct Source {
    /// The crate's folder: `tenancy`.
    pub room: String,
    /// From the crate's folder on: `src/people/store.rs`.
    pub path: String,
    pub text: String,
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates' folder").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files below a folder that end like this, in the order of their names.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("a folder's entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Makes rows for tests that no route makes, and looks at them.
const FOR_TESTS: &str = "testkit";

/// What is compiled into the program: the `src` of every crate.
pub fn sources() -> Vec<Source> {
    let mut sources = Vec::new();
    for room in fs::read_dir(crates()).expect("the crates' folder can be read") {
        let folder = room.expect("a folder's entry can be read").path();
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        if name == FOR_TESTS {
            continue;
        }
        for path in files(&folder.join("src"), ".rs") {
            let inside = path.strip_prefix(&folder).expect("below its crate").to_string_lossy().into_owned();
            sources.push(Source { room: name.clone(), path: inside, text: read(&path) });
        }
    }
    assert!(sources.len() > 100, "the sources were found");
    sources
}

/// The texts that a source holds between quotes. Those that follow each other with nothing but a comma between them, as in
/// `concat!("a", "b")`, are one.
pub fn texts(source: &str) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let (mut rest, mut joins) = (source, false);
    while let Some(first) = rest.chars().next() {
        let (taken, text) = match first {
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), None),
            '/' if rest.starts_with("/*") => (rest.find("*/").map_or(rest.len(), |end| end + 2), None),
            '\'' => (quoted_character(rest), None),
            '"' => plain_text(rest),
            'r' if rest.starts_with("r\"") || rest.starts_with("r#") => raw_text(rest),
            letter => (letter.len_utf8(), None),
        };
        match text {
            Some(text) if joins => texts.last_mut().expect("one that it follows").push_str(&text),
            Some(text) => texts.push(text),
            None => joins = joins && (first.is_whitespace() || first == ',' || first == '/'),
        }
        joins = joins || first == '"';
        rest = &rest[taken..];
    }
    texts
}

/// `'a'` and `'\n'`, but not the `'` of a lifetime.
fn quoted_character(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    match letters.next() {
        Some((_, '\\')) => rest[3..].find('\'').map_or(1, |end| end + 4),
        Some((at, letter)) if rest[at + letter.len_utf8()..].starts_with('\'') => at + letter.len_utf8() + 1,
        _ => 1,
    }
}

fn plain_text(rest: &str) -> (usize, Option<String>) {
    let (mut text, mut letters) = (String::new(), rest.char_indices().skip(1));
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (at + 1, Some(text)),
            // Whatever is escaped parts words, the end of a line too.
            '\\' => {
                letters.next();
                text.push(' ');
            }
            other => text.push(other),
        }
    }
    panic!("a text without an end");
}

fn raw_text(rest: &str) -> (usize, Option<String>) {
    let hashes = rest[1..].chars().take_while(|letter| *letter == '#').count();
    let begin = 1 + hashes;
    if !rest[begin..].starts_with('"') {
        return (1, None);
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let length = rest[begin + 1..].find(&end).expect("a raw text has an end");
    (begin + 1 + length + end.len(), Some(rest[begin + 1..begin + 1 + length].to_owned()))
}

#[test]
fn texts_are_found_and_nothing_else() {
    let source = concat!(
        "// \"no\"\nlet a = \"one \\\n  more\"; b('\"', 'x', \"two\");\n",
        "concat!(\"SELECT 1 FROM \", /* not */ \"users\"); fn f<'a>(x: &'a str) {} r#\"thr\"ee\"#; c(\"four\\\"\")"
    );
    assert_eq!(texts(source), ["one    more", "two", "SELECT 1 FROM users", "thr\"ee", "four "]);
}
