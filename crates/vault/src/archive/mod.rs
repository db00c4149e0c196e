//! What an archive is encrypted with: a header that says how its key is made, then [frames](frames).
//!
//! Every archive has a key of its own, made from a passphrase by argon2id or from a key file, and a random salt.

mod frames;
#[cfg(test)]
mod properties;

use argon2::{Algorithm, Argon2, Params, Version};
use aws_lc_rs::{
    aead::{AES_256_GCM, LessSafeKey, UnboundKey},
    hkdf,
};
use kernel::{Entropy, Error, Result, Secret};

pub use frames::{ArchiveReader, ArchiveWriter, is_refusal};

use crate::MasterKey;

const MAGIC: &[u8; 16] = b"tenantry archive";
/// Raised when a reader of an older release could not make sense of the bytes.
const VERSION: u8 = 1;
const SALT: usize = 16;
/// Magic, version, derivation, three numbers of four bytes, salt.
const HEADER: usize = 16 + 2 + 12 + SALT;
const LABEL: &[u8] = b"tenantry/v1/archive";

/// 64 MiB, three passes, one lane. Whoever has the file can try passphrases for as long as they like.
const MEMORY_KIB: u32 = 64 * 1024;
const PASSES: u32 = 3;
const LANES: u32 = 1;
/// What a header may ask for, which anybody can have written.
const MOST_MEMORY_KIB: u32 = 256 * 1024;
const MOST_PASSES: u32 = 16;
const MOST_LANES: u32 = 8;

/// What opens an archive.
#[derive(Clone)]
pub enum ArchiveKey {
    Passphrase(Secret<String>),
    /// The content of a key file: 32 bytes.
    Key(MasterKey),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Derivation {
    Key = 0,
    Passphrase = 1,
}

/// The first bytes of an archive.
#[derive(Clone, Copy)]
struct Header {
    derivation: Derivation,
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: [u8; SALT],
}

impl Header {
    fn new(key: &ArchiveKey, entropy: &Entropy) -> Self {
        let salt = entropy.bytes();
        match key {
            ArchiveKey::Passphrase(_) => {
                Self { derivation: Derivation::Passphrase, memory_kib: MEMORY_KIB, passes: PASSES, lanes: LANES, salt }
            }
            ArchiveKey::Key(_) => Self { derivation: Derivation::Key, memory_kib: 0, passes: 0, lanes: 0, salt },
        }
    }

    fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..16].copy_from_slice(MAGIC);
        (bytes[16], bytes[17]) = (VERSION, self.derivation as u8);
        for (place, number) in [(18, self.memory_kib), (22, self.passes), (26, self.lanes)] {
            bytes[place..place + 4].copy_from_slice(&number.to_be_bytes());
        }
        bytes[30..].copy_from_slice(&self.salt);
        bytes
    }

    fn parse(bytes: &[u8; HEADER]) -> Result<Self, &'static str> {
        if &bytes[..16] != MAGIC {
            return Err("is not an archive of Tenantry");
        }
        match bytes[16] {
            VERSION => {}
            newer if newer > VERSION => return Err("was made by a newer release; use that release or a later one"),
            _ => return Err(ALTERED),
        }
        let number =
            |place: usize| u32::from_be_bytes([bytes[place], bytes[place + 1], bytes[place + 2], bytes[place + 3]]);
        let derivation = match bytes[17] {
            0 => Derivation::Key,
            1 => Derivation::Passphrase,
            _ => return Err(ALTERED),
        };
        let mut salt = [0; SALT];
        salt.copy_from_slice(&bytes[30..]);
        let header = Self { derivation, memory_kib: number(18), passes: number(22), lanes: number(26), salt };
        let within = header.memory_kib <= MOST_MEMORY_KIB && header.passes <= MOST_PASSES && header.lanes <= MOST_LANES;
        if within { Ok(header) } else { Err(ALTERED) }
    }

    fn derive(&self, key: &ArchiveKey) -> Result<LessSafeKey, &'static str> {
        let mut made = [0; 32];
        match (key, self.derivation) {
            (ArchiveKey::Passphrase(passphrase), Derivation::Passphrase) => {
                let params =
                    Params::new(self.memory_kib, self.passes, self.lanes, Some(made.len())).map_err(|_| ALTERED)?;
                Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
                    .hash_password_into(passphrase.expose().as_bytes(), &self.salt, &mut made)
                    .map_err(|_| ALTERED)?;
            }
            (ArchiveKey::Key(key), Derivation::Key) => {
                hkdf::Salt::new(hkdf::HKDF_SHA256, &self.salt)
                    .extract(key.bytes())
                    .expand(&[LABEL], hkdf::HKDF_SHA256)
                    .and_then(|okm| okm.fill(&mut made))
                    .expect("HKDF-SHA256 yields 32 bytes for any label");
            }
            (ArchiveKey::Key(_), Derivation::Passphrase) => return Err("was made with a passphrase, not a key file"),
            (ArchiveKey::Passphrase(_), Derivation::Key) => return Err("was made with a key file, not a passphrase"),
        }
        Ok(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &made).expect("AES-256 takes a key of 32 bytes")))
    }
}

/// What is said of an archive of which any byte is not as it was written.
const ALTERED: &str = "cannot be opened: it was altered or cut off, or the passphrase or key is another one";

/// The refusal of an archive, for whoever sent it.
fn refused(why: &str) -> Error {
    Error::invalid("archive", why)
}
