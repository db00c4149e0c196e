//! Where secrets live: values sealed at rest, digests of tokens, signed tokens and the keys that sign them.
//!
//! This room knows how something is kept secret or proven genuine, never who may do what. Whether a token has expired
//! is for its verifier to judge by `kernel::Clock`; only the signing keys' own life cycle looks at the time.

mod archive;
mod digest;
mod foreign_jwt;
mod jwks;
pub mod jwt;
mod master_key;
pub mod passwords;
mod pem;
mod reseal;
mod rsa;
mod seal;
mod signing_keys;
mod tables;

#[cfg(test)]
mod properties;

pub use archive::{ArchiveKey, ArchiveReader, ArchiveWriter, is_refusal};
pub use digest::{
    MacKey, Sha256, hash_token, hmac_sha256, hmac_sha256_hex, same, sha256_bytes, sha256_hex, verify_hmac_sha256_hex,
};
pub use foreign_jwt::{ForeignKeys, ForeignRefusal};
pub use jwks::{Jwk, JwkSet, Jwks};
pub use jwt::InvalidToken;
pub use master_key::{InvalidMasterKey, MasterKey};
pub use pem::{is_certificate, is_signing_key};
pub use reseal::reseal;
pub use rsa::{PrivateKey, PublicKey};
pub use seal::{Keyring, Place};
pub use signing_keys::{
    JWKS_MAX_AGE, NewKey, PUBLICATION_DELAY, Revocation, Rotation, SigningKey, SigningKeyId, SigningKeys,
};
pub use tables::TABLES;
