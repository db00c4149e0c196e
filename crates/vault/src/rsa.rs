//! RSA-2048 keys for PS256 (RSASSA-PSS with SHA-256), parsed once and then used from any thread.

use aws_lc_rs::{
    digest,
    encoding::{AsDer as _, Pkcs8V1Der},
    rsa::{KeySize, PublicKeyComponents},
    signature::{KeyPair as _, ParsedPublicKey, RSA_PSS_2048_8192_SHA256, RSA_PSS_SHA256, RsaKeyPair},
};
use kernel::{Error, Result, Secret};

/// A key that signs. Holds the parsed form, because parsing costs twice as much as a signature.
pub struct PrivateKey {
    pair: RsaKeyPair,
    public: PublicKey,
}

/// The half that verifies and may be shown to anybody.
#[derive(Clone)]
pub struct PublicKey {
    components: PublicKeyComponents<Vec<u8>>,
    parsed: ParsedPublicKey,
}

impl PrivateKey {
    /// Takes from a tenth of a second to a second of CPU: never on a thread that serves requests.
    pub fn generate() -> Result<Self> {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048)
            .map_err(|_| Error::internal("the crypto library could not generate an RSA key"))?;
        Self::from_pair(pair)
    }

    pub fn from_pkcs8(der: &Secret<Vec<u8>>) -> Result<Self> {
        let pair = RsaKeyPair::from_pkcs8(der.expose())
            .map_err(|rejected| Error::internal(format!("not a PKCS#8 RSA private key: {rejected}")))?;
        Self::from_pair(pair)
    }

    pub fn to_pkcs8(&self) -> Result<Secret<Vec<u8>>> {
        let der: Pkcs8V1Der<'_> =
            self.pair.as_der().map_err(|_| Error::internal("the RSA key cannot be written as PKCS#8"))?;
        Ok(Secret::new(der.as_ref().to_vec()))
    }

    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    fn from_pair(pair: RsaKeyPair) -> Result<Self> {
        let public = PublicKey::from_components(PublicKeyComponents::from(pair.public_key()))?;
        Ok(Self { pair, public })
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        let mut signature = vec![0; self.pair.public_modulus_len()];
        // Signing a digest takes no random source from us; the library draws the salt from its own generator.
        self.pair
            .sign_digest(&RSA_PSS_SHA256, &digest::digest(&digest::SHA256, message), &mut signature)
            .map_err(|_| Error::internal("the RSA key failed to sign"))?;
        Ok(signature)
    }
}

impl PublicKey {
    fn from_components(components: PublicKeyComponents<Vec<u8>>) -> Result<Self> {
        let parsed = components
            .to_parsed_public_key(&RSA_PSS_2048_8192_SHA256)
            .map_err(|rejected| Error::internal(format!("not an RSA public key: {rejected}")))?;
        Ok(Self { components, parsed })
    }

    /// The modulus, big-endian without leading zeros.
    pub fn modulus(&self) -> &[u8] {
        &self.components.n
    }

    /// The public exponent, big-endian without leading zeros.
    pub fn exponent(&self) -> &[u8] {
        &self.components.e
    }

    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.parsed.verify_sig(message, signature).is_ok()
    }
}

/// One key for all tests of a process, since making one takes a while.
#[cfg(test)]
pub(crate) fn test_key() -> std::sync::Arc<PrivateKey> {
    static KEY: std::sync::LazyLock<std::sync::Arc<PrivateKey>> =
        std::sync::LazyLock::new(|| PrivateKey::generate().expect("generates").into());
    std::sync::Arc::clone(&KEY)
}
