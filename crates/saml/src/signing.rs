//! The key that signs a connection's requests.

use aws_lc_rs::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA256_FIXED_SIGNING,
    ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair as _, RsaKeyPair,
};
use kernel::{Error, Result, Secret};
use rustls_pki_types::{PrivateKeyDer, pem::PemObject as _};

use crate::{algorithms::Hash, certificates::as_asn1};

/// The hash that a connection asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestHash {
    Sha256,
    Sha512,
}

/// A private key with the hash it is used with.
///
/// A key on P-256 or P-384 has a hash of its own, SHA-256 or SHA-384, and uses that one whatever is asked for: the algorithm is named
/// in every signature, so the other side knows.
pub struct RequestKey(Pair);

enum Pair {
    Rsa(RsaKeyPair, RequestHash),
    Ec(EcdsaKeyPair, Curve),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Curve {
    P256,
    P384,
    P521(RequestHash),
}

impl Curve {
    fn algorithm(self) -> &'static EcdsaSigningAlgorithm {
        match self {
            Self::P256 => &ECDSA_P256_SHA256_FIXED_SIGNING,
            Self::P384 => &ECDSA_P384_SHA384_FIXED_SIGNING,
            Self::P521(RequestHash::Sha256) => &ECDSA_P521_SHA256_FIXED_SIGNING,
            Self::P521(RequestHash::Sha512) => &ECDSA_P521_SHA512_FIXED_SIGNING,
        }
    }
}

impl RequestKey {
    /// One or several: while keys are rolled over, the first signs and the next one is published beside it.
    pub fn all_from_pem(pem: &Secret<String>, hash: RequestHash) -> Result<Vec<Self>> {
        let rejected = || Error::internal("the private key of a federation connection cannot be read");
        let keys = PrivateKeyDer::pem_slice_iter(pem.expose().as_bytes());
        keys.map(|key| Self::from_key(&key.map_err(|_| rejected())?, hash).ok_or_else(rejected)).collect()
    }

    fn from_key(key: &PrivateKeyDer<'_>, hash: RequestHash) -> Option<Self> {
        let on_a_curve = |read: &dyn Fn(&'static EcdsaSigningAlgorithm) -> Option<EcdsaKeyPair>| {
            let curves = [Curve::P256, Curve::P384, Curve::P521(hash)];
            curves.into_iter().find_map(|curve| Some(Pair::Ec(read(curve.algorithm())?, curve)))
        };
        let pair = match key {
            PrivateKeyDer::Pkcs1(key) => {
                RsaKeyPair::from_der(key.secret_pkcs1_der()).ok().map(|pair| Pair::Rsa(pair, hash))
            }
            PrivateKeyDer::Pkcs8(key) => match RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()) {
                Ok(pair) => Some(Pair::Rsa(pair, hash)),
                Err(_) => on_a_curve(&|curve| EcdsaKeyPair::from_pkcs8(curve, key.secret_pkcs8_der()).ok()),
            },
            PrivateKeyDer::Sec1(key) => {
                on_a_curve(&|curve| EcdsaKeyPair::from_private_key_der(curve, key.secret_sec1_der()).ok())
            }
            _ => None,
        };
        pair.map(Self)
    }

    /// An RSA key.
    pub fn from_pkcs8(der: &Secret<Vec<u8>>, hash: RequestHash) -> Result<Self> {
        let pair = RsaKeyPair::from_pkcs8(der.expose()).map_err(|_| Error::internal("an RSA key cannot be read"))?;
        Ok(Self(Pair::Rsa(pair, hash)))
    }

    /// The `SigAlg` or `SignatureMethod`.
    pub(crate) fn algorithm(&self) -> &'static str {
        match &self.0 {
            Pair::Rsa(_, RequestHash::Sha256) => "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
            Pair::Rsa(_, RequestHash::Sha512) => "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512",
            Pair::Ec(_, Curve::P256 | Curve::P521(RequestHash::Sha256)) => {
                "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256"
            }
            Pair::Ec(_, Curve::P384) => "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha384",
            Pair::Ec(_, Curve::P521(RequestHash::Sha512)) => "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha512",
        }
    }

    /// The hash that the algorithm names.
    fn hash(&self) -> Hash {
        match &self.0 {
            Pair::Rsa(_, RequestHash::Sha256) | Pair::Ec(_, Curve::P256 | Curve::P521(RequestHash::Sha256)) => {
                Hash::Sha256
            }
            Pair::Ec(_, Curve::P384) => Hash::Sha384,
            Pair::Rsa(_, RequestHash::Sha512) | Pair::Ec(_, Curve::P521(RequestHash::Sha512)) => Hash::Sha512,
        }
    }

    /// Signing a digest takes no random source from us; the library draws on its own generator.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        let failed = |_| Error::internal("the private key of a federation connection failed to sign");
        let digest = self.hash().of(message);
        match &self.0 {
            Pair::Rsa(pair, hash) => {
                let padding = match hash {
                    RequestHash::Sha256 => &signature::RSA_PKCS1_SHA256,
                    RequestHash::Sha512 => &signature::RSA_PKCS1_SHA512,
                };
                let mut value = vec![0; pair.public_modulus_len()];
                pair.sign_digest(padding, &digest, &mut value).map_err(failed)?;
                Ok(value)
            }
            Pair::Ec(pair, _) => Ok(pair.sign_digest(&digest).map_err(failed)?.as_ref().to_vec()),
        }
    }

    /// As certificates have it: the two numbers of ECDSA in ASN.1.
    pub(crate) fn sign_for_certificate(&self, message: &[u8]) -> Result<Vec<u8>> {
        let value = self.sign(message)?;
        match &self.0 {
            Pair::Rsa(..) => Ok(value),
            Pair::Ec(..) => {
                let (r, s) = value.split_at(value.len() / 2);
                as_asn1(r, s).ok_or_else(|| Error::internal("a signature cannot be written as ASN.1"))
            }
        }
    }

    /// The public half, as a certificate holds it.
    pub(crate) fn public_key(&self) -> Result<Vec<u8>> {
        use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
        let failed = |_| Error::internal("the public key of a federation connection cannot be written");
        let der: PublicKeyX509Der<'_> = match &self.0 {
            Pair::Rsa(pair, _) => pair.public_key().as_der().map_err(failed)?,
            Pair::Ec(pair, _) => pair.public_key().as_der().map_err(failed)?,
        };
        Ok(der.as_ref().to_vec())
    }
}
