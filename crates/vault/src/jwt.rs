//! Compact JWS (RFC 7515) in the two algorithms this service issues: PS256 for users, HS256 for API tokens.
//!
//! A verifier asks for one algorithm and one `typ`, and the key's type belongs to the algorithm, so that `none` and
//! an HMAC under a public key cannot even be expressed. Claims are returned as they are: whether they have expired
//! is for the caller to judge by `kernel::Clock`.

use std::{borrow::Borrow, fmt};

use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use kernel::{Code, Error, Result};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};

use crate::{
    digest::hex,
    rsa::{PrivateKey, PublicKey},
};

/// A longer token is refused unread: none that we issue comes near it.
pub const MAX_LENGTH: usize = 16 * 1024;

/// Why a token was refused. Deliberately one answer for every cause, so that nobody learns from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidToken;

impl fmt::Display for InvalidToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("The token is not valid.")
    }
}

impl std::error::Error for InvalidToken {}

impl From<InvalidToken> for Error {
    fn from(invalid: InvalidToken) -> Self {
        Self::new(Code::InvalidCredential, invalid.to_string())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    PS256,
    HS256,
}

/// The protected header. Members beyond these are ignored, as RFC 7515 asks, except `crit`, which is refused.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub alg: Algorithm,
    pub kid: String,
    pub typ: String,
    #[serde(default, skip_serializing)]
    crit: NoExtensions,
}

/// We understand no extension, so a token that declares one critical is not for us (RFC 7515 §4.1.11).
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NoExtensions;

impl<'de> Deserialize<'de> for NoExtensions {
    /// Fails whatever the value is, `null` included.
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("no extension is understood"))
    }
}

/// An HS256 secret, prepared once.
#[derive(Clone)]
pub struct HmacKey(hmac::Key);

impl HmacKey {
    /// RFC 7518 §3.2 wants at least 32 bytes; a shorter secret is refused.
    pub fn new(secret: &[u8]) -> Result<Self> {
        if secret.len() < 32 {
            return Err(Error::internal(format!("an HS256 secret needs 32 bytes, this one has {}", secret.len())));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// Set apart from what tokens sign, which never begins with a NUL.
    pub(crate) fn tag_hex(&self, message: &[u8]) -> String {
        hex(hmac::sign(&self.0, &[b"\0", message].concat()).as_ref())
    }
}

pub fn sign_hs256<C: Serialize>(key: &HmacKey, kid: &str, typ: &str, claims: &C) -> Result<String> {
    sign(Algorithm::HS256, kid, typ, claims, |input| Ok(hmac::sign(&key.0, input)))
}

pub fn sign_ps256<C: Serialize>(key: &PrivateKey, kid: &str, typ: &str, claims: &C) -> Result<String> {
    sign(Algorithm::PS256, kid, typ, claims, |input| key.sign(input))
}

/// The claims of an HS256 token of this `typ`, whose key `key_of` finds by its `kid`.
pub fn verify_hs256<C: DeserializeOwned, K: Borrow<HmacKey>>(
    token: &str,
    typ: &str,
    key_of: impl FnOnce(&str) -> Option<K>,
) -> Result<C, InvalidToken> {
    let token = Unverified::parse(token)?;
    let key = key_of(token.kid()).ok_or(InvalidToken)?;
    token.verify_hs256(typ, key.borrow())
}

/// The claims of a PS256 token of this `typ`, whose key `key_of` finds by its `kid`.
pub fn verify_ps256<C: DeserializeOwned, K: Borrow<PublicKey>>(
    token: &str,
    typ: &str,
    key_of: impl FnOnce(&str) -> Option<K>,
) -> Result<C, InvalidToken> {
    let token = Unverified::parse(token)?;
    let key = key_of(token.kid()).ok_or(InvalidToken)?;
    token.verify_ps256(typ, key.borrow())
}

/// A token taken apart but not yet believed: for callers that must fetch its key before they can verify it.
/// Its claims are out of reach until then.
pub struct Unverified<'a> {
    header: Header,
    signing_input: &'a str,
    payload: &'a str,
    signature: Vec<u8>,
}

impl<'a> Unverified<'a> {
    pub fn parse(token: &'a str) -> Result<Self, InvalidToken> {
        if token.len() > MAX_LENGTH {
            return Err(InvalidToken);
        }
        let (signing_input, signature) = token.rsplit_once('.').ok_or(InvalidToken)?;
        let (header, payload) = signing_input.split_once('.').ok_or(InvalidToken)?;
        // The alphabet of base64url has no dot, so a fourth part fails to decode here or in `claims`.
        Ok(Self { header: json_object(header)?, signing_input, payload, signature: decode(signature)? })
    }

    /// Untrusted until the token is verified.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Untrusted until the token is verified.
    pub fn kid(&self) -> &str {
        &self.header.kid
    }

    pub fn verify_hs256<C: DeserializeOwned>(&self, typ: &str, key: &HmacKey) -> Result<C, InvalidToken> {
        self.claims(Algorithm::HS256, typ, |input, signature| hmac::verify(&key.0, input, signature).is_ok())
    }

    pub fn verify_ps256<C: DeserializeOwned>(&self, typ: &str, key: &PublicKey) -> Result<C, InvalidToken> {
        self.claims(Algorithm::PS256, typ, |input, signature| key.verifies(input, signature))
    }

    fn claims<C: DeserializeOwned>(
        &self,
        alg: Algorithm,
        typ: &str,
        verifies: impl FnOnce(&[u8], &[u8]) -> bool,
    ) -> Result<C, InvalidToken> {
        let expected = self.header.alg == alg && self.header.typ == typ;
        if !expected || !verifies(self.signing_input.as_bytes(), &self.signature) {
            return Err(InvalidToken);
        }
        json_object(self.payload)
    }
}

fn sign<C: Serialize, S: AsRef<[u8]>>(
    alg: Algorithm,
    kid: &str,
    typ: &str,
    claims: &C,
    signature_of: impl FnOnce(&[u8]) -> Result<S>,
) -> Result<String> {
    let header = Header { alg, kid: kid.to_owned(), typ: typ.to_owned(), crit: NoExtensions };
    let mut token = String::with_capacity(1024);
    encode(&serde_json::to_vec(&header).map_err(Error::internal)?, &mut token);
    token.push('.');
    encode(&serde_json::to_vec(claims).map_err(Error::internal)?, &mut token);
    let signature = signature_of(token.as_bytes())?;
    token.push('.');
    encode(signature.as_ref(), &mut token);
    if token.len() > MAX_LENGTH {
        return Err(Error::internal(format!("a token of {} bytes would be refused by its verifier", token.len())));
    }
    Ok(token)
}

fn encode(bytes: &[u8], onto: &mut String) {
    BASE64_URL_SAFE_NO_PAD.encode_string(bytes, onto);
}

/// Canonical only: no padding and no stray bits at the end, so that one token has exactly one spelling.
pub(crate) fn decode(part: &str) -> Result<Vec<u8>, InvalidToken> {
    BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| InvalidToken)
}

pub(crate) fn json_object<T: DeserializeOwned>(part: &str) -> Result<T, InvalidToken> {
    let bytes = decode(part)?;
    // serde would also read a struct from an array of its fields.
    if bytes.first() != Some(&b'{') {
        return Err(InvalidToken);
    }
    serde_json::from_slice(&bytes).map_err(|_| InvalidToken)
}

#[cfg(test)]
mod tests;
