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

/// A key of HMAC-SHA-256, ready for many messages: to prepare it takes as long as a short one. The library wipes it from memory when
/// it is dropped.
#[derive(Clone)]
pub struct MacKey(hmac::Key);

impl MacKey {
    pub fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// Of a message that is given in pieces.
    pub fn sign(&self, pieces: &[&[u8]]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.0);
        pieces.iter().for_each(|piece| context.update(piece));
        let mut tag = [0; 32];
        tag.copy_from_slice(context.sign().as_ref());
        tag
    }

    /// The same in lower-case hex.
    pub fn sign_hex(&self, pieces: &[&[u8]]) -> String {
        hex(&self.sign(pieces))
    }
}

/// HMAC-SHA-256.
pub fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    MacKey::new(key).sign(&[message])
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
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
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
    fn a_key_signs_many_messages_however_they_are_cut() {
        let key = MacKey::new(b"Jefe");
        let whole = hmac_sha256_hex(b"Jefe", b"what do ya want for nothing?");
        let cuts: [&[&[u8]]; 2] = [&[b"what do ya want for nothing?"], &[b"what do ya want", b"", b" for nothing?"]];
        assert_eq!(cuts.map(|pieces| key.sign_hex(pieces)), [whole.clone(), whole]);
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
