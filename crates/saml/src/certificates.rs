//! The certificates of a connection: the only keys that verify its responses, whatever a message brings along.

use aws_lc_rs::signature::{self, EcdsaVerificationAlgorithm, RsaParameters, UnparsedPublicKey};
use kernel::{Error, Result, Timestamp};
use rustls_pki_types::{CertificateDer, pem::PemObject as _};
use x509_cert::{
    Certificate,
    der::{
        Decode as _, Encode as _,
        asn1::{ObjectIdentifier, Uint},
    },
};

use crate::algorithms::{Hash, SignatureMethod};

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");

/// What an operator is shown of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateInfo {
    pub subject: String,
    pub valid_from: Timestamp,
    pub valid_until: Timestamp,
}

/// The keys of a connection's certificates. Their dates are shown and warned about, not enforced.
pub struct Certificates(Vec<Key>);

enum Key {
    Rsa(Vec<u8>),
    P256(Vec<u8>),
    P384(Vec<u8>),
    /// Of a kind that verifies nothing here. Kept so that one such certificate does not spoil the others.
    Other,
}

fn parsed(pem: &str) -> Result<Vec<Certificate>> {
    let invalid = || Error::internal("a federation connection's certificate cannot be read");
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .map(|der| Certificate::from_der(&der.map_err(|_| invalid())?).map_err(|_| invalid()))
        .collect()
}

impl Certificates {
    /// From one or several in PEM.
    pub fn from_pem(pem: &str) -> Result<Self> {
        Ok(Self(parsed(pem)?.iter().map(key_of).collect()))
    }

    pub fn describe(pem: &str) -> Result<Vec<CertificateInfo>> {
        let instant = |time: x509_cert::time::Time| {
            Timestamp::from_seconds(i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX))
        };
        let describe = |certificate: &Certificate| CertificateInfo {
            subject: certificate.tbs_certificate.subject.to_string(),
            valid_from: instant(certificate.tbs_certificate.validity.not_before),
            valid_until: instant(certificate.tbs_certificate.validity.not_after),
        };
        Ok(parsed(pem)?.iter().map(describe).collect())
    }

    pub(crate) fn verify(&self, method: SignatureMethod, message: &[u8], value: &[u8]) -> bool {
        self.0.iter().any(|key| key.verifies(method, message, value))
    }
}

fn key_of(certificate: &Certificate) -> Key {
    let info = &certificate.tbs_certificate.subject_public_key_info;
    let Some(bytes) = info.subject_public_key.as_bytes().map(<[u8]>::to_vec) else { return Key::Other };
    let curve = info.algorithm.parameters.as_ref().and_then(|any| any.decode_as::<ObjectIdentifier>().ok());
    match (info.algorithm.oid, curve) {
        (RSA, _) => Key::Rsa(bytes),
        (EC, Some(P256)) => Key::P256(bytes),
        (EC, Some(P384)) => Key::P384(bytes),
        _ => Key::Other,
    }
}

impl Key {
    fn verifies(&self, method: SignatureMethod, message: &[u8], value: &[u8]) -> bool {
        match (self, method) {
            (Self::Rsa(key), SignatureMethod::Rsa(hash)) => {
                UnparsedPublicKey::new(rsa(hash), key).verify(message, value).is_ok()
            }
            (Self::P256(key), SignatureMethod::Ecdsa(hash)) => ecdsa_verifies(p256(hash), key, 32, message, value),
            (Self::P384(key), SignatureMethod::Ecdsa(hash)) => ecdsa_verifies(p384(hash), key, 48, message, value),
            _ => false,
        }
    }
}

/// These take keys from 2048 bits on.
fn rsa(hash: Hash) -> &'static RsaParameters {
    match hash {
        Hash::Sha256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        Hash::Sha384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        Hash::Sha512 => &signature::RSA_PKCS1_2048_8192_SHA512,
    }
}

fn p256(hash: Hash) -> &'static EcdsaVerificationAlgorithm {
    match hash {
        Hash::Sha256 => &signature::ECDSA_P256_SHA256_ASN1,
        Hash::Sha384 => &signature::ECDSA_P256_SHA384_ASN1,
        Hash::Sha512 => &signature::ECDSA_P256_SHA512_ASN1,
    }
}

fn p384(hash: Hash) -> &'static EcdsaVerificationAlgorithm {
    match hash {
        Hash::Sha256 => &signature::ECDSA_P384_SHA256_ASN1,
        Hash::Sha384 => &signature::ECDSA_P384_SHA384_ASN1,
        Hash::Sha512 => &signature::ECDSA_P384_SHA512_ASN1,
    }
}

/// XML signatures write the two numbers of an ECDSA signature side by side; the library wants them as ASN.1 for every hash.
fn ecdsa_verifies(
    algorithm: &'static EcdsaVerificationAlgorithm,
    key: &[u8],
    size: usize,
    message: &[u8],
    value: &[u8],
) -> bool {
    if value.len() != 2 * size {
        return false;
    }
    let (r, s) = value.split_at(size);
    as_asn1(r, s).is_some_and(|value| UnparsedPublicKey::new(algorithm, key).verify(message, &value).is_ok())
}

pub(crate) fn as_asn1(r: &[u8], s: &[u8]) -> Option<Vec<u8>> {
    let numbers = vec![Uint::new(r).ok()?, Uint::new(s).ok()?];
    numbers.to_der().ok()
}
