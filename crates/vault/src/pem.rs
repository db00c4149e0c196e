//! Certificates and keys that customers paste in: PEM that is checked before it is kept.

use aws_lc_rs::{
    rsa::KeyPair as RsaKeyPair,
    signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING, EcdsaKeyPair,
        EcdsaSigningAlgorithm,
    },
};
use kernel::Secret;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use x509_cert::der::Decode as _;

/// Whether the text is one or more X.509 certificates in PEM, each of which parses. Says nothing about trust.
pub fn is_certificate(pem: &str) -> bool {
    let mut certificates = CertificateDer::pem_slice_iter(pem.as_bytes()).peekable();
    certificates.peek().is_some()
        && certificates.all(|found| found.is_ok_and(|der| x509_cert::Certificate::from_der(&der).is_ok()))
}

/// Whether the text is one or more private keys in PEM, each of which can sign: RSA, or EC on a NIST curve; PKCS#8, PKCS#1 or SEC1.
pub fn is_signing_key(pem: &Secret<String>) -> bool {
    let mut keys = PrivateKeyDer::pem_slice_iter(pem.expose().as_bytes()).peekable();
    keys.peek().is_some() && keys.all(|found| found.is_ok_and(|key| can_sign(&key)))
}

fn can_sign(key: &PrivateKeyDer<'_>) -> bool {
    match key {
        PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()).is_ok(),
        PrivateKeyDer::Pkcs8(key) => {
            let der = key.secret_pkcs8_der();
            RsaKeyPair::from_pkcs8(der).is_ok() || on_a_curve(|curve| EcdsaKeyPair::from_pkcs8(curve, der).is_ok())
        }
        PrivateKeyDer::Sec1(key) => {
            let der = key.secret_sec1_der();
            on_a_curve(|curve| EcdsaKeyPair::from_private_key_der(curve, der).is_ok())
        }
        _ => false,
    }
}

fn on_a_curve(fits: impl Fn(&'static EcdsaSigningAlgorithm) -> bool) -> bool {
    [&ECDSA_P256_SHA256_ASN1_SIGNING, &ECDSA_P384_SHA384_ASN1_SIGNING, &ECDSA_P521_SHA512_ASN1_SIGNING]
        .into_iter()
        .any(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Made for these tests with OpenSSL.
    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nMIIBgzCCASmgAwIBAgIUNS5mKekgeQ1CZ5ywj6YtrasRCLYwCgYIKoZIzj0EAwIw\nFjEUMBIGA1UEAwwLaWRwLmV4YW1wbGUwIBcNMjYxMTE1MTE1MjM5WhgPMjEyNjEw\nMjIxMTUyMzlaMBYxFDASBgNVBAMMC2lkcC5leGFtcGxlMFkwEwYHKoZIzj0CAQYI\nKoZIzj0DAQcDQgAE4ULYB/r7OjUSYH8dmjczearH9gkdVbLaxjlrVxo404BqYbPw\noH6FkX61DzUif0SaIr6jNynD7k+OYfuDdwJENKNTMFEwHQYDVR0OBBYEFMfVGmrA\nMVSBYcWPz1zVZ8ovCwxUMB8GA1UdIwQYMBaAFMfVGmrAMVSBYcWPz1zVZ8ovCwxU\nMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIgCWHdQwUjsi+CAvf5\nHZReZLp+ItycQrsNKCYpm+vjXrgCIQCbuAkXd4gqcshsDZBMbl/fl2WUGa9FrN6A\ntNOxtpp6GA==\n-----END CERTIFICATE-----\n";
    const SEC1: &str = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIMElW2VmjneW6chDhp8do8sXQMInNHJuILwijO2eEDdwoAoGCCqGSM49\nAwEHoUQDQgAE4ULYB/r7OjUSYH8dmjczearH9gkdVbLaxjlrVxo404BqYbPwoH6F\nkX61DzUif0SaIr6jNynD7k+OYfuDdwJENA==\n-----END EC PRIVATE KEY-----\n";
    const PKCS8: &str = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgwSVbZWaOd5bpyEOG\nnx2jyxdAwic0cm4gvCKM7Z4QN3ChRANCAAThQtgH+vs6NRJgfx2aNzN5qsf2CR1V\nstrGOWtXGjjTgGphs/CgfoWRfrUPNSJ/RJoivqM3KcPuT45h+4N3AkQ0\n-----END PRIVATE KEY-----\n";
    const ED25519: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIDMV37mkoFXm+eFoNCHPncYRwdS5mPUpHXXr+qAGo9td\n-----END PRIVATE KEY-----\n";

    fn signs(pem: &str) -> bool {
        is_signing_key(&Secret::new(pem.to_owned()))
    }

    #[test]
    fn certificates_are_pem_that_parses_alone_or_in_a_row() {
        assert!(is_certificate(CERTIFICATE));
        assert!(is_certificate(&CERTIFICATE.repeat(2)));
        assert!(is_certificate(&CERTIFICATE.replace('\n', "\r\n")));
        let body: String = CERTIFICATE.lines().filter(|line| !line.starts_with('-')).collect();
        assert!(is_certificate(&format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----")));
        let cut = CERTIFICATE.replacen(&body[..8], "", 1);
        for bad in ["", "x", &body, PKCS8, &cut, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert!(!is_certificate(bad), "{bad}");
        }
    }

    #[test]
    fn keys_are_rsa_or_ec_in_any_usual_wrapping() {
        assert!(signs(SEC1) && signs(PKCS8) && signs(&[SEC1, PKCS8].concat()));
        assert!(!signs(&[PKCS8, ED25519].concat()), "each of several has to sign");
        let der = crate::rsa::test_key().to_pkcs8().expect("can be written");
        let body = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, der.expose());
        assert!(signs(&format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")));
        for bad in ["", "x", CERTIFICATE, ED25519, &PKCS8.replace('M', "N")] {
            assert!(!signs(bad), "{bad}");
        }
    }
}
