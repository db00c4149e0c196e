//! Digests of things that are already hard to guess, and comparisons that take the same time whatever they find.
//!
//! Nothing here is fit for passwords: a plain SHA-256 protects only what has enough entropy of its own.

use aws_lc_rs::{constant_time, digest, hmac};

/// What the database keeps of a random token (API key, link, code of 128 bits or more): SHA-256 in lower-case hex.
pub fn hash_token(token: &str) -> String {
    sha256_hex(token.as_bytes())
}

/// SHA-256 in lower-case hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// SHA-256.
pub fn sha256_bytes(bytes: &[u8]) -> [u8; 32] {
    let mut made = [0; 32];
    made.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    made
}

/// SHA-256 of what comes in pieces.
pub struct Sha256(digest::Context);

impl Sha256 {
    pub fn new() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// In lower-case hex.
    pub fn finish_hex(self) -> String {
        hex(self.0.finish().as_ref())
    }
}

impl Default for Sha256 {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether both are equal, in a time that depends on their lengths only.
pub fn same(a: &[u8], b: &[u8]) -> bool {
    constant_time::verify_slices_are_equal(a, b).is_ok()
}

/// HMAC-SHA-256.
pub fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message);
    let mut bytes = [0; 32];
    bytes.copy_from_slice(tag.as_ref());
    bytes
}

/// HMAC-SHA-256 in lower-case hex, as webhook signature headers carry it.
pub fn hmac_sha256_hex(key: &[u8], message: &[u8]) -> String {
    hex(&hmac_sha256(key, message))
}

/// Whether `signature` is the lower-case hex HMAC-SHA-256 of `message`, compared in constant time.
pub fn verify_hmac_sha256_hex(key: &[u8], message: &[u8], signature: &str) -> bool {
    same(hmac_sha256_hex(key, message).as_bytes(), signature.as_bytes())
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_match_published_vectors() {
        assert_eq!(hash_token("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        // RFC 4231, test case 2.
        let tag = hmac_sha256_hex(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(tag, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn a_signature_verifies_only_for_its_key_and_message() {
        let tag = hmac_sha256_hex(b"key", b"message");
        assert!(verify_hmac_sha256_hex(b"key", b"message", &tag));
        assert!(!verify_hmac_sha256_hex(b"other", b"message", &tag));
        assert!(!verify_hmac_sha256_hex(b"key", b"massage", &tag));
        assert!(!verify_hmac_sha256_hex(b"key", b"message", &tag[..63]));
        assert!(!verify_hmac_sha256_hex(b"key", b"message", ""));
    }
}
