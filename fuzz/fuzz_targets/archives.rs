//! Archives: whatever is not as it was written is refused, and nothing else goes wrong with it.
#![no_main]

use std::{
    io::{Read as _, Write as _},
    sync::LazyLock,
};

use kernel::{Code, Entropy};
use libfuzzer_sys::fuzz_target;
use vault::{ArchiveKey, ArchiveReader, ArchiveWriter, MasterKey, is_refusal};

/// As in the tests of `vault`, whose corpus is the seed. With a key file: a passphrase takes a tenth of a second.
static KEY: LazyLock<ArchiveKey> =
    LazyLock::new(|| ArchiveKey::Key(MasterKey::generate(&Entropy::seeded_for_tests(1))));

fn read(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut reader = match ArchiveReader::new(bytes, &KEY) {
        Ok(reader) => reader,
        Err(error) => {
            assert_eq!(error.code(), Code::ValidationFailed, "{error:?}");
            return None;
        }
    };
    let mut content = Vec::new();
    match reader.read_to_end(&mut content) {
        Ok(_) => Some(content),
        Err(error) => {
            assert!(is_refusal(&error) && content.len() <= bytes.len(), "{error:?}");
            None
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Some(content) = read(bytes) {
        // Only the corpus's own: nobody guesses a tag.
        assert!(content.len() < 300);
    }
    let mut writer = ArchiveWriter::new(Vec::new(), &KEY, &Entropy::seeded_for_tests(2)).expect("a writer");
    writer.write_all(bytes).expect("written");
    let archive = writer.finish().expect("finished");
    assert_eq!(read(&archive).as_deref(), Some(bytes));
    for cut in [archive.len() - 1, archive.len() / 2] {
        assert_eq!(read(&archive[..cut]), None);
    }
    assert_eq!(read(&[&archive[..], bytes, b"x"].concat()), None);
});
