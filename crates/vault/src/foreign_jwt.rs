//! Tokens that others sign: RS256, PS256, ES256 and EdDSA, by a key of the issuer's published set (RFC 7517).
//!
//! The key's type belongs to the algorithm, and a symmetric key is not read at all, so that `none` and an HMAC under a public
//! key cannot be expressed. What the claims say is for the caller to judge.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, de::DeserializeOwned};

use crate::jwt::{InvalidToken, MAX_LENGTH, NoExtensions, decode, json_object};

/// Why a token was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignRefusal {
    /// None of the keys is the one that the token names: the set may have changed since it was read.
    UnknownKey,
    Invalid,
}

impl From<InvalidToken> for ForeignRefusal {
    fn from(_: InvalidToken) -> Self {
        Self::Invalid
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum ForeignAlgorithm {
    RS256,
    PS256,
    ES256,
    #[serde(alias = "Ed25519")]
    EdDSA,
}

#[derive(Debug, Deserialize)]
struct ForeignHeader {
    alg: ForeignAlgorithm,
    kid: Option<String>,
    #[serde(default)]
    #[expect(dead_code, reason = "reading it is refusing it")]
    crit: NoExtensions,
}

/// The keys of an issuer, as far as they can verify a signature here.
#[derive(Clone, Debug)]
pub struct ForeignKeys(Vec<ForeignKey>);

#[derive(Clone, Debug)]
struct ForeignKey {
    kid: Option<String>,
    /// The only algorithm that the issuer uses it for, if it says so.
    alg: Option<ForeignAlgorithm>,
    material: KeyMaterial,
}

#[derive(Clone, Debug)]
enum KeyMaterial {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Deserialize)]
struct RawSet {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct RawKey {
    kty: String,
    crv: Option<String>,
    kid: Option<String>,
    r#use: Option<String>,
    alg: Option<serde_json::Value>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl RawKey {
    /// `None` for a key of another kind or another use, which is nothing to us.
    fn read(self) -> Option<ForeignKey> {
        if self.r#use.is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let bytes = |text: Option<String>| BASE64_URL_SAFE_NO_PAD.decode(text?).ok();
        let material = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => KeyMaterial::Rsa { n: bytes(self.n)?, e: bytes(self.e)? },
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(self.x)?, bytes(self.y)?);
                (x.len() == 32 && y.len() == 32).then(|| KeyMaterial::P256([&[4][..], &x, &y].concat()))?
            }
            ("OKP", Some("Ed25519")) => KeyMaterial::Ed25519(bytes(self.x)?),
            _ => return None,
        };
        let alg = self.alg.map(serde_json::from_value).transpose().ok()?;
        Some(ForeignKey { kid: self.kid, alg, material })
    }
}

impl ForeignKeys {
    /// From a JWK set. Keys that are nothing to us are passed over, as RFC 7517 §5 asks.
    pub fn from_json(json: &[u8]) -> Result<Self, InvalidToken> {
        let set: RawSet = serde_json::from_slice(json).map_err(|_| InvalidToken)?;
        let keys = set.keys.into_iter().filter_map(|key| serde_json::from_value::<RawKey>(key).ok()?.read());
        Ok(Self(keys.collect()))
    }

    /// The claims of a token that one of these keys signed. A token that names no key needs the only one of its kind.
    pub fn verify<C: DeserializeOwned>(&self, token: &str) -> Result<C, ForeignRefusal> {
        if token.len() > MAX_LENGTH {
            return Err(ForeignRefusal::Invalid);
        }
        let (input, signature) = token.rsplit_once('.').ok_or(ForeignRefusal::Invalid)?;
        let (header, payload) = input.split_once('.').ok_or(ForeignRefusal::Invalid)?;
        let (header, signature): (ForeignHeader, _) = (json_object(header)?, decode(signature)?);
        let mut fitting = self.0.iter().filter(|key| key.fits(&header));
        let key = fitting.next().ok_or(ForeignRefusal::UnknownKey)?;
        if fitting.next().is_some() || !key.verifies(header.alg, input.as_bytes(), &signature) {
            return Err(ForeignRefusal::Invalid);
        }
        Ok(json_object(payload)?)
    }
}

impl ForeignKey {
    fn fits(&self, header: &ForeignHeader) -> bool {
        let is_of_kind = match (&self.material, header.alg) {
            (KeyMaterial::Rsa { .. }, alg) => matches!(alg, ForeignAlgorithm::RS256 | ForeignAlgorithm::PS256),
            (KeyMaterial::P256(_), alg) => alg == ForeignAlgorithm::ES256,
            (KeyMaterial::Ed25519(_), alg) => alg == ForeignAlgorithm::EdDSA,
        };
        is_of_kind && self.alg.is_none_or(|alg| alg == header.alg) && (header.kid.is_none() || self.kid == header.kid)
    }

    fn verifies(&self, alg: ForeignAlgorithm, input: &[u8], signature: &[u8]) -> bool {
        let verified = match &self.material {
            KeyMaterial::Rsa { n, e } => {
                let parameters: &RsaParameters = match alg {
                    ForeignAlgorithm::PS256 => &RSA_PSS_2048_8192_SHA256,
                    _ => &RSA_PKCS1_2048_8192_SHA256,
                };
                RsaPublicKeyComponents { n, e }.verify(parameters, input, signature)
            }
            KeyMaterial::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(input, signature)
            }
            KeyMaterial::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(input, signature),
        };
        verified.is_ok()
    }
}

#[cfg(test)]
mod tests;
