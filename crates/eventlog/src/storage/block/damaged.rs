//! What holds of every block that is not as it was written.

use std::{error::Error as _, fs, path::PathBuf};

use corpus::{edited, edits, replay, seeds};
use kernel::{AppId, Code, Error, Timestamp};
use proptest::prelude::*;
use serde_json::json;

use super::{
    super::{StoredBlock, blocks, digests::digest},
    Block, encode,
    maker::{Made, accepted, refused},
};
use crate::LoggedEventId;

const HOME: &str = env!("CARGO_MANIFEST_DIR");

fn folder(name: &str) -> PathBuf {
    PathBuf::from(HOME).join("tests/corpus/blocks").join(name)
}

fn folders() -> [(&'static str, Vec<Made>); 2] {
    [("accepted", accepted()), ("refused", refused())]
}

/// Reads a block in every way that there is and packs its events again; all that went wrong.
fn read(bytes: &[u8]) -> Vec<Error> {
    let block = match Block::open(bytes.to_vec()) {
        Ok(block) => block,
        Err(error) => return vec![error],
    };
    let mut wrong: Vec<Error> =
        [block.times().err(), block.has(LoggedEventId::from_u128(3)).err(), block.parameters().err()]
            .into_iter()
            .flatten()
            .collect();
    for name in ["userId", "n", "any", "common", "none"] {
        wrong.extend(block.matching(name, &json!("u1")).err());
        wrong.extend(block.matching(name, &json!(1)).err());
        wrong.extend(block.naming(name, "u1").err());
        wrong.extend(block.addends(name).err());
    }
    match block.events(7) {
        Ok(events) => {
            let again = encode(&events).and_then(Block::open).and_then(|block| block.events(7)).expect("packed again");
            assert_eq!(again, events, "what can be read can be packed");
        }
        Err(error) => wrong.push(error),
    }
    wrong
}

fn accepts(bytes: &[u8]) -> bool {
    let wrong = read(bytes);
    for error in &wrong {
        assert_eq!(error.code(), Code::EventsDamaged, "{error:?}");
    }
    wrong.is_empty()
}

#[test]
fn known_inputs_are_judged_as_before() {
    replay(HOME, "blocks", accepts);
}

/// The library would make room for what they promise, as much as there is and more.
#[test]
fn what_promises_too_much_is_refused_before_it_is_believed() {
    let promises = |name: &str| name.starts_with("bomb-") || name.starts_with("schema-") || name.contains("-most");
    let made: Vec<Made> = refused().into_iter().filter(|(name, _)| promises(name)).collect();
    assert!(made.len() > 12);
    for (name, bytes) in made {
        let causes: Vec<String> = read(&bytes).iter().filter_map(|error| Some(error.source()?.to_string())).collect();
        assert!(causes.iter().all(|cause| cause.contains("a block has")), "{name}: {causes:?}");
    }
}

#[test]
fn the_corpus_is_what_its_maker_makes() {
    for (name, made) in folders() {
        for (file, bytes) in &made {
            let stored = fs::read(folder(name).join(file)).unwrap_or_default();
            assert!(stored == *bytes, "{name}/{file} is not what the maker makes");
        }
        assert_eq!(fs::read_dir(folder(name)).expect("a folder").count(), made.len(), "{name}");
    }
}

#[test]
#[ignore = "writes the corpus"]
fn makes_the_corpus() {
    for (name, made) in folders() {
        let folder = folder(name);
        fs::create_dir_all(&folder).expect("a folder");
        for file in fs::read_dir(&folder).expect("a folder") {
            fs::remove_file(file.expect("a file").path()).expect("removed");
        }
        for (file, bytes) in made {
            fs::write(folder.join(file), bytes).expect("written");
        }
    }
}

/// The row of a block.
fn row(bytes: &[u8]) -> StoredBlock {
    StoredBlock {
        id: blocks::BlockId::from_u128(1),
        app: AppId::from_u128(1),
        name: 7,
        first_at: Timestamp::from_micros(0),
        last_at: Timestamp::from_micros(0),
        events: i64::try_from(Block::open(bytes.to_vec()).expect("a good block").length()).expect("few"),
        digest: digest(bytes).to_vec(),
    }
}

#[test]
fn a_row_that_counts_other_events_than_its_block_has_is_damaged() {
    for (name, bytes) in accepted() {
        let row = row(&bytes);
        assert!(row.opened(bytes.clone()).is_ok(), "{name}");
        let other = StoredBlock { events: row.events + 1, ..row };
        assert_eq!(other.opened(bytes).err().map(|error| error.code()), Some(Code::EventsDamaged), "{name}");
    }
}

proptest! {
    /// A digest over all of a block sees to it.
    #[test]
    fn no_change_of_a_stored_block_goes_unnoticed(
        seed in prop::sample::select(seeds(HOME, "blocks")),
        edits in edits(),
    ) {
        let changed = edited(&seed, &edits);
        let opened = row(&seed).opened(changed.clone());
        match changed == seed {
            true => prop_assert!(opened.is_ok()),
            false => prop_assert_eq!(opened.err().map(|error| error.code()), Some(Code::EventsDamaged)),
        }
    }

    /// Of a block that somebody made, and whose digest is right.
    #[test]
    fn a_changed_block_is_damaged_or_reads_as_other_events(
        seed in prop::sample::select(seeds(HOME, "blocks")),
        edits in edits(),
    ) {
        accepts(&edited(&seed, &edits));
    }

    #[test]
    fn random_bytes_are_no_block(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(!accepts(&bytes));
        let framed = [b"PAR1", bytes.as_slice(), &u32::try_from(bytes.len()).expect("short").to_le_bytes(), b"PAR1"].concat();
        prop_assert!(!accepts(&framed));
    }
}
