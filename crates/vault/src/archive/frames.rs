//! Frames under AES-256-GCM. Each is bound to the header, to its number and to whether it is the last, so that one that
//! is altered, missing, repeated, moved or taken from another archive does not open; nor does what ends before the last.

use std::{
    fmt,
    io::{self, Read, Write},
    sync::Arc,
};

use aws_lc_rs::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};
use kernel::{Entropy, Error, Result};

use super::{ALTERED, ArchiveKey, HEADER, Header, refused};

/// Of a frame with its length and its tag.
const MOST_BYTES: usize = 1 << 20;
const LENGTH: usize = 4;
const TAG: usize = 16;
/// What one frame holds at most.
const MOST_IN_FRAME: usize = MOST_BYTES - LENGTH - TAG;
/// In a frame's length: there is none after it.
const LAST: u32 = 1 << 31;

/// The key and the place in the row of frames.
struct Frames {
    key: Arc<LessSafeKey>,
    header: [u8; HEADER],
    number: u64,
}

impl Frames {
    /// The number is never used twice under a key, which belongs to one archive.
    fn next(&mut self, last: bool) -> (Nonce, Aad<[u8; HEADER]>) {
        let mut nonce = [0; NONCE_LEN];
        nonce[3] = last.into();
        nonce[4..].copy_from_slice(&self.number.to_be_bytes());
        self.number += 1;
        (Nonce::assume_unique_for_key(nonce), Aad::from(self.header))
    }
}

/// Encrypts what is written into it. Without [`ArchiveWriter::finish`] nobody will read it.
pub struct ArchiveWriter<W> {
    out: W,
    frames: Frames,
    waiting: Vec<u8>,
}

impl<W: Write> ArchiveWriter<W> {
    /// Takes some hundred milliseconds with a passphrase.
    pub fn new(mut out: W, key: &ArchiveKey, entropy: &Entropy) -> Result<Self> {
        let header = Header::new(key, entropy);
        let (key, header) = (header.derive(key).map_err(refused)?, header.to_bytes());
        out.write_all(&header).map_err(Error::internal)?;
        Ok(Self { out, frames: Frames { key: Arc::new(key), header, number: 0 }, waiting: Vec::new() })
    }

    pub fn finish(mut self) -> io::Result<W> {
        self.seal(true)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// A frame that is shorter than it could be.
    #[cfg(test)]
    pub(super) fn end_frame(&mut self) -> io::Result<()> {
        self.seal(false)
    }

    fn seal(&mut self, last: bool) -> io::Result<()> {
        let mut frame = std::mem::take(&mut self.waiting);
        let (nonce, aad) = self.frames.next(last);
        self.frames.key.seal_in_place_append_tag(nonce, aad, &mut frame).expect("AES-GCM seals anything below 64 GiB");
        let length = u32::try_from(frame.len()).expect("a frame is at most 1 MiB");
        self.out.write_all(&(if last { length | LAST } else { length }).to_be_bytes())?;
        self.out.write_all(&frame)?;
        frame.clear();
        self.waiting = frame;
        Ok(())
    }
}

impl<W: Write> Write for ArchiveWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full frame waits until more comes: it may be the last.
        if self.waiting.len() == MOST_IN_FRAME {
            self.seal(false)?;
        }
        let taken = bytes.len().min(MOST_IN_FRAME - self.waiting.len());
        self.waiting.extend(&bytes[..taken]);
        Ok(taken)
    }

    /// A frame is written when it is full or the last.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads what an [`ArchiveWriter`] wrote. What it hands out is as it was written; its end is the writer's end.
pub struct ArchiveReader<R> {
    from: R,
    frames: Frames,
    frame: Vec<u8>,
    read: usize,
    ended: bool,
}

impl<R: Read> ArchiveReader<R> {
    /// Takes some hundred milliseconds with a passphrase.
    pub fn new(mut from: R, key: &ArchiveKey) -> Result<Self> {
        let mut header = [0; HEADER];
        from.read_exact(&mut header).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => refused("is not an archive of Tenantry"),
            _ => Error::internal(error),
        })?;
        let key = Header::parse(&header).and_then(|header| header.derive(key)).map_err(refused)?;
        let frames = Frames { key: Arc::new(key), header, number: 0 };
        Ok(Self { from, frames, frame: Vec::new(), read: 0, ended: false })
    }

    /// The same archive from its first frame on, by another reader of the same bytes: the key is made once.
    pub fn again<A: Read>(&self, mut from: A) -> Result<ArchiveReader<A>> {
        let mut header = [0; HEADER];
        from.read_exact(&mut header).map_err(Error::internal)?;
        if header != self.frames.header {
            return Err(refused(ALTERED));
        }
        let frames = Frames { key: Arc::clone(&self.frames.key), header, number: 0 };
        Ok(ArchiveReader { from, frames, frame: Vec::new(), read: 0, ended: false })
    }

    fn open_next(&mut self) -> io::Result<()> {
        let mut length = [0; LENGTH];
        self.from.read_exact(&mut length).map_err(cut_off)?;
        let length = u32::from_be_bytes(length);
        let (last, length) = (length & LAST != 0, (length & !LAST) as usize);
        if !(TAG..=MOST_IN_FRAME + TAG).contains(&length) {
            return Err(altered());
        }
        self.frame.resize(length, 0);
        self.from.read_exact(&mut self.frame).map_err(cut_off)?;
        let (nonce, aad) = self.frames.next(last);
        let opened = self.frames.key.open_in_place(nonce, aad, &mut self.frame).map_err(|_| altered())?.len();
        self.frame.truncate(opened);
        (self.read, self.ended) = (0, last);
        if last && self.from.read(&mut [0])? != 0 {
            return Err(altered());
        }
        Ok(())
    }
}

impl<R: Read> Read for ArchiveReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.read == self.frame.len() && !self.ended {
            self.open_next()?;
        }
        let taken = into.len().min(self.frame.len() - self.read);
        into[..taken].copy_from_slice(&self.frame[self.read..self.read + taken]);
        self.read += taken;
        Ok(taken)
    }
}

/// The archive itself is to blame, not the machine.
#[derive(Debug)]
struct Refusal;

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ALTERED)
    }
}

impl std::error::Error for Refusal {}

fn altered() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Refusal)
}

fn cut_off(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof { altered() } else { error }
}

/// Whether a failed read says that the archive is not as it was written.
pub fn is_refusal(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|cause| cause.is::<Refusal>())
}

#[cfg(test)]
mod tests {
    use kernel::Secret;
    use proptest::prelude::*;

    use super::*;
    use crate::MasterKey;

    fn key(seed: u64) -> ArchiveKey {
        ArchiveKey::Key(MasterKey::generate(&Entropy::seeded_for_tests(seed)))
    }

    fn passphrase(text: &str) -> ArchiveKey {
        ArchiveKey::Passphrase(Secret::new(text.to_owned()))
    }

    fn written(content: &[u8], key: &ArchiveKey) -> Vec<u8> {
        let mut writer = ArchiveWriter::new(Vec::new(), key, &Entropy::os()).expect("a writer");
        writer.write_all(content).expect("written");
        writer.finish().expect("finished")
    }

    fn read(bytes: &[u8], key: &ArchiveKey) -> Result<Vec<u8>, String> {
        let mut reader = ArchiveReader::new(bytes, key).map_err(|error| error.public().to_owned())?;
        let mut content = Vec::new();
        match reader.read_to_end(&mut content) {
            Ok(_) => Ok(content),
            Err(error) => {
                assert!(is_refusal(&error), "{error:?}");
                Err(error.to_string())
            }
        }
    }

    /// Three frames and a bit.
    fn large() -> Vec<u8> {
        (0..3 * MOST_IN_FRAME + 1000).map(|n| (n % 251) as u8).collect()
    }

    /// Where each frame begins, and the end.
    fn frames(archive: &[u8]) -> Vec<usize> {
        let mut places = vec![HEADER];
        while let Some(&at) = places.last().filter(|at| **at < archive.len()) {
            let length = u32::from_be_bytes(archive[at..at + 4].try_into().expect("four bytes")) & !LAST;
            places.push(at + 4 + length as usize);
        }
        places
    }

    #[test]
    fn what_was_written_is_read_with_the_same_key_only() {
        for size in [0, 1, MOST_IN_FRAME - 1, MOST_IN_FRAME, MOST_IN_FRAME + 1, 2 * MOST_IN_FRAME] {
            let content = &large()[..size];
            let archive = written(content, &key(1));
            assert!(frames(&archive).windows(2).all(|frame| frame[1] - frame[0] <= MOST_BYTES));
            assert_eq!(read(&archive, &key(1)).as_deref(), Ok(content), "{size}");
            assert!(read(&archive, &key(2)).is_err(), "{size}");
        }
    }

    #[test]
    fn a_passphrase_opens_what_it_closed() {
        let archive = written(b"secrets", &passphrase("correct horse"));
        assert!(!archive.windows(7).any(|bytes| bytes == b"secrets"));
        assert_eq!(read(&archive, &passphrase("correct horse")).as_deref(), Ok(b"secrets".as_slice()));
        assert!(read(&archive, &passphrase("correct horsf")).expect_err("wrong").contains("passphrase"));
        assert!(read(&archive, &key(1)).expect_err("no key").contains("made with a passphrase"));
        assert!(read(&written(b"x", &key(1)), &passphrase("x")).expect_err("no passphrase").contains("key file"));
    }

    #[test]
    fn a_newer_version_and_a_costly_header_are_refused() {
        let mut archive = written(b"x", &passphrase("p"));
        archive[16] = 2;
        assert!(read(&archive, &passphrase("p")).expect_err("newer").contains("newer release"));
        archive[16] = 1;
        archive[18] = 0xff;
        assert!(read(&archive, &passphrase("p")).is_err(), "terabytes of memory");
        assert!(read(b"PK\x03\x04", &key(1)).expect_err("a zip").contains("not an archive"));
    }

    #[test]
    fn frames_that_are_missing_repeated_or_moved_are_noticed() {
        let (archive, key) = (written(&large(), &key(1)), key(1));
        let places = frames(&archive);
        let frame = |n: usize| &archive[places[n]..places[n + 1]];
        let of = |order: &[usize]| -> Vec<u8> {
            let body = order.iter().flat_map(|n| frame(*n).iter().copied());
            archive[..HEADER].iter().copied().chain(body).collect()
        };
        assert_eq!(places.len(), 5, "four frames");
        assert_eq!(read(&of(&[0, 1, 2, 3]), &key), Ok(large()));
        for left_out in 0..4 {
            let rest: Vec<usize> = (0..4).filter(|n| *n != left_out).collect();
            assert!(read(&of(&rest), &key).is_err(), "without {left_out}");
            let mut twice: Vec<usize> = (0..4).collect();
            twice.insert(left_out, left_out);
            assert!(read(&of(&twice), &key).is_err(), "{left_out} twice");
            for other in 0..left_out {
                let mut swapped: Vec<usize> = (0..4).collect();
                swapped.swap(left_out, other);
                assert!(read(&of(&swapped), &key).is_err(), "{left_out} and {other} swapped");
            }
        }
        let foreign = written(&large(), &key);
        let mixed = [&archive[..places[1]], &foreign[places[1]..]].concat();
        assert!(read(&mixed, &key).is_err(), "frames of two archives");
        assert!(read(&[&archive[..], b"x"].concat(), &key).is_err(), "something after the end");
        let (mut unmarked, mut marked) = (archive.clone(), archive.clone());
        unmarked[places[3]] ^= 0x80;
        marked[places[0]] ^= 0x80;
        assert!(read(&unmarked, &key).is_err() && read(&marked, &key).is_err(), "another last frame");
        let mut shortened = archive[..places[2]].to_vec();
        shortened[places[1]] ^= 0x80;
        assert!(read(&shortened, &key).is_err(), "cut off behind a frame that is marked as the last");
    }

    proptest! {
        #[test]
        fn no_altered_byte_and_no_cut_is_overlooked(at in any::<prop::sample::Index>(), bit in 0..8u8) {
            let archive = written(&large()[..5000], &key(1));
            let at = at.index(archive.len());
            prop_assert!(read(&archive[..at], &key(1)).is_err(), "cut at {at}");
            let mut altered = archive.clone();
            altered[at] ^= 1 << bit;
            prop_assert!(read(&altered, &key(1)).is_err(), "altered at {at}");
        }

        #[test]
        fn no_bytes_make_the_reader_fail_otherwise(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(read(&bytes, &key(1)).is_err());
            let header = &written(b"", &key(1))[..HEADER];
            prop_assert!(read(&[header, &bytes].concat(), &key(1)).is_err());
        }
    }
}
