//! Randomness as a value: the operating system's in production, a seeded stream in tests.

use std::sync::{Arc, Mutex, PoisonError};

/// A source of random bytes. Cheap to clone; clones of a seeded source share one stream.
#[derive(Clone)]
pub struct Entropy(EntropySource);

#[derive(Clone)]
enum EntropySource {
    Os,
    Seeded(Arc<Mutex<u64>>),
}

impl Entropy {
    /// The operating system's generator: the only one fit for secrets.
    pub const fn os() -> Self {
        Self(EntropySource::Os)
    }

    /// A reproducible stream for tests. Predictable, so never for a running service.
    pub fn seeded_for_tests(seed: u64) -> Self {
        Self(EntropySource::Seeded(Arc::new(Mutex::new(seed))))
    }

    pub fn fill(&self, bytes: &mut [u8]) {
        match &self.0 {
            EntropySource::Os => fill_from_os(bytes),
            EntropySource::Seeded(state) => {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                for chunk in bytes.chunks_mut(8) {
                    let word = split_mix(&mut state).to_be_bytes();
                    chunk.copy_from_slice(&word[..chunk.len()]);
                }
            }
        }
    }

    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// `length` characters of `0-9A-Za-z`, each equally likely: about 5.95 bits a character.
    pub fn base62(&self, length: usize) -> String {
        const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut text = String::with_capacity(length);
        while text.len() < length {
            for byte in self.bytes::<32>() {
                // 248 is the largest multiple of 62 in a byte; what lies above would favour the first characters.
                if byte < 248 && text.len() < length {
                    text.push(char::from(ALPHABET[usize::from(byte % 62)]));
                }
            }
        }
        text
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one home of the operating system's randomness")]
fn fill_from_os(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system provides random bytes");
}

/// SplitMix64: small, and good enough to look random in a test.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::Entropy;

    #[test]
    fn seeded_streams_repeat_and_advance() {
        let (one, other) = (Entropy::seeded_for_tests(7), Entropy::seeded_for_tests(7));
        let first = one.bytes::<16>();
        assert_eq!(first, other.bytes::<16>());
        assert_ne!(first, one.bytes::<16>());
    }

    /// A remainder of 62 would give the first eight characters a quarter more.
    #[test]
    fn every_character_of_base62_is_equally_likely() {
        let text = Entropy::seeded_for_tests(1).base62(62 * 10_000);
        for letter in ('0'..='9').chain('A'..='Z').chain('a'..='z') {
            let count = text.matches(letter).count();
            assert!((9_500..10_500).contains(&count), "{letter} {count} times");
        }
    }

    #[test]
    fn base62_has_the_asked_length_and_alphabet() {
        let text = Entropy::os().base62(43);
        assert_eq!(text.len(), 43);
        assert!(text.chars().all(|c| c.is_ascii_alphanumeric()));
    }
}
