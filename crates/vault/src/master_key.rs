//! The operator's master key: 32 random bytes from which every key that seals something is derived.
//!
//! The key itself never encrypts anything and is never stored: what the database keeps are values sealed under
//! its subkeys, its id, and a check value that tells a wrong key apart without revealing the right one.

use std::{fmt, str::FromStr};

use aws_lc_rs::hkdf;
use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
    prelude::BASE64_STANDARD,
};
use kernel::{Entropy, Secret};

use crate::digest::{hex, sha256_hex};

const LENGTH: usize = 32;

/// What a subkey is for. Each purpose yields an unrelated key, so that none can stand in for another.
#[derive(Clone, Copy)]
pub(crate) enum KeyPurpose {
    Seal,
    KeyId,
    CheckValue,
    ShortLivedTokens,
    PageLinks,
    Backups,
}

impl KeyPurpose {
    /// Part of the format of everything stored: never changed.
    const fn label(self) -> &'static [u8] {
        match self {
            Self::Seal => b"tenantry/v1/seal",
            Self::KeyId => b"tenantry/v1/key-id",
            Self::CheckValue => b"tenantry/v1/check-value",
            Self::ShortLivedTokens => b"tenantry/v1/short-lived-tokens",
            Self::PageLinks => b"tenantry/v1/page-links",
            Self::Backups => b"tenantry/v1/backups",
        }
    }
}

/// `TENANTRY_MASTER_KEY`. Reads hex or base64, writes base64.
#[derive(Clone, Debug)]
pub struct MasterKey(Secret<[u8; LENGTH]>);

impl MasterKey {
    pub fn generate(entropy: &Entropy) -> Self {
        Self(Secret::new(entropy.bytes()))
    }

    /// The text an operator keeps: base64, read back by `parse`.
    pub fn to_text(&self) -> Secret<String> {
        Secret::new(BASE64_STANDARD.encode(self.0.expose()))
    }

    pub(crate) fn bytes(&self) -> &[u8; LENGTH] {
        self.0.expose()
    }

    /// Names the key in sealed values and messages, and says nothing about its bytes.
    pub fn id(&self) -> String {
        let mut id = sha256_hex(&self.subkey(KeyPurpose::KeyId));
        id.truncate(8);
        id
    }

    /// What the store keeps so that a start with another key is noticed.
    pub(crate) fn check_value(&self) -> String {
        format!("c1.{}.{}", self.id(), hex(&self.subkey(KeyPurpose::CheckValue)))
    }

    pub(crate) fn subkey(&self, purpose: KeyPurpose) -> [u8; LENGTH] {
        let mut subkey = [0; LENGTH];
        hkdf::Salt::new(hkdf::HKDF_SHA256, b"tenantry master key")
            .extract(self.0.expose())
            .expand(&[purpose.label()], hkdf::HKDF_SHA256)
            .and_then(|okm| okm.fill(&mut subkey))
            .expect("HKDF-SHA256 yields 32 bytes for any label");
        subkey
    }
}

/// Why a text is not a master key. Never quotes the text, which may be most of a real key.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidMasterKey;

impl fmt::Display for InvalidMasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be 32 bytes as 64 hexadecimal digits or as base64 (make one with `openssl rand -base64 32`)")
    }
}

impl std::error::Error for InvalidMasterKey {}

impl FromStr for MasterKey {
    type Err = InvalidMasterKey;

    fn from_str(text: &str) -> Result<Self, InvalidMasterKey> {
        let text = text.trim();
        let bytes = if text.len() == 2 * LENGTH { from_hex(text) } else { from_base64(text) };
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(InvalidMasterKey)?;
        Ok(Self(Secret::new(bytes)))
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |character: u8| char::from(character).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    text.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// Either alphabet, padded or not: keys are pasted from many tools.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    [STANDARD, URL_SAFE].iter().find_map(|alphabet| GeneralPurpose::new(alphabet, config).decode(text).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_read_in_every_usual_spelling() {
        let key = MasterKey(Secret::new([0xFB; 32]));
        let base64 = key.to_text().into_exposed();
        let url_safe = base64.replace('+', "-").replace('/', "_").replace('=', "");
        for text in [hex(&[0xFB; 32]), "FB".repeat(32), format!("{base64}\n"), base64, url_safe] {
            assert_eq!(text.parse::<MasterKey>().map(|key| key.0.into_exposed()), Ok([0xFB; 32]), "{text}");
        }
    }

    #[test]
    fn anything_but_32_bytes_is_refused() {
        let too_long = BASE64_STANDARD.encode([1; 33]);
        for text in ["", "secret", "00", &"0g".repeat(32), &"é".repeat(32), &"ab".repeat(31), &too_long] {
            assert_eq!(text.parse::<MasterKey>().map(|_| ()), Err(InvalidMasterKey), "{text}");
        }
    }

    #[test]
    fn the_id_and_check_value_are_stable() {
        // Computed by another HKDF. Stored values depend on these: a change would make every installation refuse its key.
        let key = MasterKey(Secret::new([7; 32]));
        assert_eq!(key.id(), "e3243827");
        assert_eq!(key.check_value(), "c1.e3243827.9f1b3efb810a0efd6dc4c65f04dd1084b6957f3c70f1ffdaa0af57acd932b04f");
        assert_eq!(format!("{key:?}"), "MasterKey(Secret(…))");
    }
}
