//! What holds for every file that somebody may hand in as an archive.

use std::{
    io::{Read as _, Write as _},
    sync::LazyLock,
};

use corpus::{Made, check_made, edited, edits, replay, seeds, write_made};
use kernel::{Entropy, Ticker};
use proptest::prelude::*;

use super::*;

const HOME: &str = env!("CARGO_MANIFEST_DIR");
/// Where a header has its version, its way to make the key, and what that costs.
const AT_VERSION: usize = 16;
const AT_DERIVATION: usize = 17;
const AT_MEMORY: usize = 18;
const AT_PASSES: usize = 22;
const AT_LANES: usize = 26;

static KEY: LazyLock<ArchiveKey> = LazyLock::new(|| key(1));

fn key(seed: u64) -> ArchiveKey {
    ArchiveKey::Key(MasterKey::generate(&Entropy::seeded_for_tests(seed)))
}

fn passphrase() -> ArchiveKey {
    ArchiveKey::Passphrase(Secret::new("correct horse".to_owned()))
}

/// The archive's content. Nothing of it is believed before it was checked, so no refusal says anything else.
fn read(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut reader = ArchiveReader::new(bytes, &KEY).map_err(|error| error.public().to_owned())?;
    let mut content = Vec::new();
    match reader.read_to_end(&mut content) {
        Ok(_) => Ok(content),
        Err(error) => {
            assert!(is_refusal(&error), "{error:?}");
            assert!(content.len() <= bytes.len(), "more came out than went in");
            Err(error.to_string())
        }
    }
}

fn written(content: &[u8], seed: u64) -> Vec<u8> {
    let mut writer = ArchiveWriter::new(Vec::new(), &KEY, &Entropy::seeded_for_tests(seed)).expect("a writer");
    writer.write_all(content).expect("written");
    writer.finish().expect("finished")
}

/// Short frames, which no writer of today makes but every reader takes.
fn in_frames(contents: &[&[u8]], seed: u64) -> Vec<u8> {
    let mut writer = ArchiveWriter::new(Vec::new(), &KEY, &Entropy::seeded_for_tests(seed)).expect("a writer");
    for content in contents {
        writer.write_all(content).expect("written");
        writer.end_frame().expect("sealed");
    }
    writer.finish().expect("finished")
}

fn accepted() -> Vec<Made> {
    vec![
        ("empty", written(b"", 2)),
        ("one-byte", written(b"x", 3)),
        ("text", written(&b"rows and files".repeat(20), 4)),
        ("three-frames", in_frames(&[b"one", b"two"], 5)),
        ("empty-frames", in_frames(&[b"", b"", b"x", b""], 5)),
    ]
}

fn refused_ones() -> Vec<Made> {
    let good = in_frames(&[b"one", b"two"], 5);
    let changed = |at: usize, bytes: &[u8]| {
        let mut archive = good.clone();
        archive[at..at + bytes.len()].copy_from_slice(bytes);
        archive
    };
    let first = HEADER + 4 + 3 + 16;
    let (one, two) = (&good[HEADER..first], &good[first..first + one_frame()]);
    let last = &good[first + one_frame()..];
    let of = |frames: &[&[u8]]| [&good[..HEADER], &frames.concat()].concat();
    let length = |length: u32| changed(HEADER, &length.to_be_bytes());
    let with_passphrase = |memory: u32, passes: u32, lanes: u32| {
        let mut archive = changed(AT_DERIVATION, &[1]);
        for (at, number) in [(AT_MEMORY, memory), (AT_PASSES, passes), (AT_LANES, lanes)] {
            archive[at..at + 4].copy_from_slice(&number.to_be_bytes());
        }
        archive
    };
    vec![
        ("nothing", Vec::new()),
        ("zip", b"PK\x03\x04".repeat(30)),
        ("zeros", vec![0; 200]),
        ("magic-only", good[..16].to_vec()),
        ("magic-in-other-case", changed(0, b"Tenantry")),
        ("version-none", changed(AT_VERSION, &[0])),
        ("version-next", changed(AT_VERSION, &[2])),
        ("version-last", changed(AT_VERSION, &[255])),
        ("derivation-unknown", changed(AT_DERIVATION, &[2])),
        ("derivation-other", changed(AT_DERIVATION, &[1])),
        ("cost-altered", changed(AT_LANES + 3, &[1])),
        ("memory-most", with_passphrase(u32::MAX, 3, 1)),
        ("memory-beyond", with_passphrase(MOST_MEMORY_KIB + 1, 3, 1)),
        ("memory-none", with_passphrase(0, 3, 1)),
        ("passes-most", with_passphrase(MEMORY_KIB, u32::MAX, 1)),
        ("passes-none", with_passphrase(MEMORY_KIB, 0, 1)),
        ("lanes-most", with_passphrase(MEMORY_KIB, 3, u32::MAX)),
        ("lanes-none", with_passphrase(MEMORY_KIB, 3, 0)),
        ("salt-altered", changed(HEADER - 1, &[0])),
        ("header-cut", good[..HEADER - 1].to_vec()),
        ("header-only", good[..HEADER].to_vec()),
        ("header-twice", [&good[..HEADER], &good].concat()),
        ("length-cut", good[..HEADER + 3].to_vec()),
        ("length-none", length(0)),
        ("length-less-than-a-tag", length(15)),
        ("length-of-a-tag", length(16)),
        ("length-shorter", length(18)),
        ("length-longer", length(20)),
        ("length-all", length(u32::try_from(good.len()).expect("short"))),
        ("length-largest", length(1 << 20)),
        ("length-beyond", length((1 << 20) + 1)),
        ("length-most", length(u32::MAX)),
        ("marked-as-last", length(19 | 1 << 31)),
        ("frame-cut", good[..first - 1].to_vec()),
        ("tag-altered", changed(first - 1, &[good[first - 1] ^ 1])),
        ("content-altered", changed(HEADER + 4, &[good[HEADER + 4] ^ 1])),
        ("last-missing", of(&[one, two])),
        ("first-missing", of(&[two, last])),
        ("middle-missing", of(&[one, last])),
        ("swapped", of(&[two, one, last])),
        ("repeated", of(&[one, one, two, last])),
        ("last-twice", of(&[one, two, last, last])),
        ("behind-the-end", [&good[..], b"x"].concat()),
        ("of-another-key", {
            let mut writer = ArchiveWriter::new(Vec::new(), &key(2), &Entropy::seeded_for_tests(6)).expect("a writer");
            writer.write_all(b"x").expect("written");
            writer.finish().expect("finished")
        }),
        ("of-two-archives", [&good[..first], &in_frames(&[b"one", b"two"], 10)[first..]].concat()),
        ("header-of-another", [&written(b"", 9)[..HEADER], &good[HEADER..]].concat()),
    ]
}

/// A frame of three bytes, with its length and its tag.
const fn one_frame() -> usize {
    4 + 3 + 16
}

#[test]
fn known_inputs_are_judged_as_before() {
    replay(HOME, "archives", |archive| read(archive).is_ok());
}

#[test]
fn the_corpus_is_what_its_maker_makes() {
    check_made(HOME, "archives", accepted(), refused_ones());
}

#[test]
#[ignore = "writes the corpus"]
fn makes_the_corpus() {
    write_made(HOME, "archives", accepted(), refused_ones());
}

/// A header that anybody can have written asks for no more than is bounded, before any memory or time is spent.
#[test]
fn no_header_is_expensive() {
    let started = Ticker.now();
    let costly =
        ["memory-most", "memory-beyond", "passes-most", "lanes-most", "memory-none", "passes-none", "lanes-none"];
    let archives: Vec<Made> = refused_ones().into_iter().filter(|(name, _)| costly.contains(name)).collect();
    assert_eq!(archives.len(), costly.len());
    for (name, archive) in archives {
        let refusal = ArchiveReader::new(&archive[..], &passphrase()).err().expect(name);
        assert!(refusal.public().contains(ALTERED), "{name}: {refusal:?}");
    }
    assert!(Ticker.since(started).as_secs() < 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn no_changed_archive_opens(seed in prop::sample::select(seeds(HOME, "archives")), edits in edits()) {
        let changed = edited(&seed, &edits);
        prop_assert_eq!(read(&changed).is_ok(), changed == seed);
    }

    #[test]
    fn what_is_written_in_any_frames_is_read(
        contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..6),
    ) {
        let contents: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
        prop_assert_eq!(read(&in_frames(&contents, 5)), Ok(contents.concat()));
    }

    /// What a header says is what was read in it, and what it may ask for is bounded.
    #[test]
    fn any_header_is_written_as_it_was_read(
        bytes in prop::array::uniform32(any::<u8>()),
        numbers in prop::array::uniform3(prop_oneof![0..64_u32, 0..300_000_u32, any::<u32>()]),
        derivation in 0..3_u8,
    ) {
        let mut header = [0; HEADER];
        header[..16].copy_from_slice(MAGIC);
        header[16..].copy_from_slice(&bytes[..HEADER - 16]);
        (header[AT_VERSION], header[AT_DERIVATION]) = (VERSION, derivation);
        for (at, number) in [AT_MEMORY, AT_PASSES, AT_LANES].into_iter().zip(numbers) {
            header[at..at + 4].copy_from_slice(&number.to_be_bytes());
        }
        match Header::parse(&header) {
            Ok(read) => {
                prop_assert_eq!(read.to_bytes(), header);
                prop_assert!(read.memory_kib <= MOST_MEMORY_KIB && read.passes <= MOST_PASSES && read.lanes <= MOST_LANES);
            }
            Err(_) => {
                let within = numbers[0] <= MOST_MEMORY_KIB && numbers[1] <= MOST_PASSES && numbers[2] <= MOST_LANES;
                prop_assert!(!within || derivation > 1);
            }
        }
    }
}
