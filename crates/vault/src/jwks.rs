//! The published half of the signing keys (RFC 7517), rendered once per change and then served as it is.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use serde::Serialize;

use crate::{digest::sha256_hex, rsa::PublicKey};

/// A JWK set ready to be sent.
#[derive(Debug)]
pub struct Jwks {
    /// The JSON of a [`JwkSet`].
    pub body: Bytes,
    /// A strong validator, with its quotes.
    pub etag: String,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct JwkSet {
    pub keys: Vec<Jwk>,
}

/// One public RSA key.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Jwk {
    /// Always `RSA`.
    pub kty: &'static str,
    /// The modulus, base64url.
    pub n: String,
    /// The public exponent, base64url.
    pub e: String,
    pub kid: String,
    /// Always `sig`.
    pub r#use: &'static str,
    /// Always `PS256`.
    pub alg: &'static str,
}

impl Jwk {
    pub(crate) fn new(kid: String, key: &PublicKey) -> Self {
        let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        Self { kty: "RSA", n: encode(key.modulus()), e: encode(key.exponent()), kid, r#use: "sig", alg: "PS256" }
    }
}

impl Jwks {
    pub(crate) fn render(keys: Vec<Jwk>) -> Self {
        let body = serde_json::to_vec(&JwkSet { keys }).expect("texts serialise");
        let etag = format!("\"{}\"", &sha256_hex(&body)[..32]);
        Self { body: body.into(), etag }
    }
}
