//! Inputs that nobody can write by hand, because they are sealed or signed: code makes them, and the files are what it made.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// An input's name and its bytes.
pub type Made = (&'static str, Vec<u8>);

fn folders(home: &str, parser: &str, accepted: Vec<Made>, refused: Vec<Made>) -> [(PathBuf, Vec<Made>); 2] {
    let corpus = Path::new(home).join("tests/corpus").join(parser);
    [(corpus.join("accepted"), accepted), (corpus.join("refused"), refused)]
}

/// Fails unless the checked-in inputs are those that were made.
pub fn check_made(home: &str, parser: &str, accepted: Vec<Made>, refused: Vec<Made>) {
    for (folder, made) in folders(home, parser, accepted, refused) {
        for (file, bytes) in &made {
            let stored = fs::read(folder.join(file)).unwrap_or_default();
            assert!(stored == *bytes, "{}/{file} is not what its maker makes", folder.display());
        }
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), made.len(), "{}", folder.display());
    }
}

/// Puts what was made in the place of the checked-in inputs.
pub fn write_made(home: &str, parser: &str, accepted: Vec<Made>, refused: Vec<Made>) {
    for (folder, made) in folders(home, parser, accepted, refused) {
        fs::create_dir_all(&folder).expect("a folder");
        for file in fs::read_dir(&folder).expect("a folder") {
            fs::remove_file(file.expect("a file").path()).expect("removed");
        }
        for (file, bytes) in made {
            fs::write(folder.join(file), bytes).expect("written");
        }
    }
}
