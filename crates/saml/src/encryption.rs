//! The step `decryption`: RSA-OAEP with AES-GCM, and with AES-CBC only inside a signed response, where nobody can change the
//! ciphertext to learn from the answers.

use std::sync::Arc;

use aws_lc_rs::{
    aead::{self, Aad, LessSafeKey, Nonce, UnboundKey},
    cipher::{self, DecryptingKey, DecryptionContext, UnboundCipherKey},
    iv::FixedLength,
    rsa::{
        OAEP_SHA1_MGF1SHA1, OAEP_SHA256_MGF1SHA256, OAEP_SHA384_MGF1SHA384, OAEP_SHA512_MGF1SHA512, OaepAlgorithm,
        OaepPrivateDecryptingKey, PrivateDecryptingKey,
    },
};
use bergshamra_xml::NodeId;
use kernel::{Error, Result as KernelResult, Secret};

use crate::{
    refusal::{Refusal, Step, require},
    xml::{DSIG, Tree, XENC, XENC11, is_named},
};

/// A key that identity providers encrypt for.
pub struct DecryptionKey(OaepPrivateDecryptingKey);

impl DecryptionKey {
    pub fn from_pkcs8(der: &Secret<Vec<u8>>) -> KernelResult<Self> {
        let invalid = || Error::internal("the SAML decryption key cannot be read");
        let key = PrivateDecryptingKey::from_pkcs8(der.expose()).map_err(|_| invalid())?;
        Ok(Self(OaepPrivateDecryptingKey::new(key).map_err(|_| invalid())?))
    }
}

#[derive(Clone, Copy)]
enum ContentCipher {
    Gcm(&'static aead::Algorithm),
    Cbc(&'static cipher::Algorithm),
}

/// The plaintext of an `EncryptedAssertion`. One answer for every failure of the key and the padding.
pub(crate) fn decrypt(
    tree: &Tree<'_>,
    encrypted: NodeId,
    response_is_signed: bool,
    keys: &[Arc<DecryptionKey>],
) -> Result<String, Refusal> {
    let refused = || Refusal::new(Step::Decryption, "the assertion cannot be decrypted");
    let odd = || Refusal::new(Step::Shape, "an encrypted assertion has missing or unexpected parts");
    let data = tree.only(encrypted, XENC, "EncryptedData").ok_or_else(odd)?;
    let mut wrapped = tree.elements().filter(|(_, element)| is_named(&element.name, XENC, "EncryptedKey"));
    let (Some((key, _)), None) = (wrapped.next(), wrapped.next()) else { return Err(odd()) };
    let content = content_cipher(tree, data)?;
    let transport = key_transport(tree, key)?;
    if matches!(content, ContentCipher::Cbc(_)) {
        require(response_is_signed, Step::Decryption, "AES-CBC is accepted inside a signed response only")?;
    }
    let wrapped = cipher_value(tree, key).ok_or_else(odd)?;
    let ciphertext = cipher_value(tree, data).ok_or_else(odd)?;
    let opened = keys.iter().find_map(|key| {
        let mut secret = vec![0; key.0.min_output_size()];
        let secret = key.0.decrypt(transport, &wrapped, &mut secret, None).ok()?;
        match content {
            ContentCipher::Gcm(algorithm) => open_gcm(algorithm, secret, &ciphertext),
            ContentCipher::Cbc(algorithm) => open_cbc(algorithm, secret, &ciphertext),
        }
    });
    String::from_utf8(opened.ok_or_else(refused)?).map_err(|_| refused())
}

fn method(tree: &Tree<'_>, encrypted: NodeId) -> Option<NodeId> {
    tree.only(encrypted, XENC, "EncryptionMethod")
}

fn algorithm<'t>(tree: &'t Tree<'_>, node: NodeId) -> &'t str {
    tree.attribute(node, "Algorithm").unwrap_or_default()
}

fn content_cipher(tree: &Tree<'_>, data: NodeId) -> Result<ContentCipher, Refusal> {
    match method(tree, data).map(|method| algorithm(tree, method)).unwrap_or_default() {
        "http://www.w3.org/2009/xmlenc11#aes128-gcm" => Ok(ContentCipher::Gcm(&aead::AES_128_GCM)),
        "http://www.w3.org/2009/xmlenc11#aes192-gcm" => Ok(ContentCipher::Gcm(&aead::AES_192_GCM)),
        "http://www.w3.org/2009/xmlenc11#aes256-gcm" => Ok(ContentCipher::Gcm(&aead::AES_256_GCM)),
        "http://www.w3.org/2001/04/xmlenc#aes128-cbc" => Ok(ContentCipher::Cbc(&cipher::AES_128)),
        "http://www.w3.org/2001/04/xmlenc#aes192-cbc" => Ok(ContentCipher::Cbc(&cipher::AES_192)),
        "http://www.w3.org/2001/04/xmlenc#aes256-cbc" => Ok(ContentCipher::Cbc(&cipher::AES_256)),
        _ => Err(Refusal::new(Step::Algorithms, "unknown content encryption")),
    }
}

/// The digest and the mask have to use the same hash; the older identifier means SHA-1 for both, which is sound here.
fn key_transport(tree: &Tree<'_>, key: NodeId) -> Result<&'static OaepAlgorithm, Refusal> {
    let refused = || Refusal::new(Step::Algorithms, "unknown key transport");
    let method = method(tree, key).ok_or_else(refused)?;
    let parameter = |namespace, name| tree.only(method, namespace, name).map(|node| algorithm(tree, node));
    let digest = parameter(DSIG, "DigestMethod");
    let mask = parameter(XENC11, "MGF").and_then(|uri| uri.strip_prefix("http://www.w3.org/2009/xmlenc11#mgf1"));
    let sha1 = "http://www.w3.org/2000/09/xmldsig#sha1";
    match (algorithm(tree, method), digest.unwrap_or(sha1), mask.unwrap_or("sha1")) {
        ("http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p", digest, "sha1") if digest == sha1 => {
            Ok(&OAEP_SHA1_MGF1SHA1)
        }
        ("http://www.w3.org/2009/xmlenc11#rsa-oaep", digest, mask) => match (digest, mask) {
            ("http://www.w3.org/2000/09/xmldsig#sha1", "sha1") => Ok(&OAEP_SHA1_MGF1SHA1),
            ("http://www.w3.org/2001/04/xmlenc#sha256", "sha256") => Ok(&OAEP_SHA256_MGF1SHA256),
            ("http://www.w3.org/2001/04/xmldsig-more#sha384", "sha384") => Ok(&OAEP_SHA384_MGF1SHA384),
            ("http://www.w3.org/2001/04/xmlenc#sha512", "sha512") => Ok(&OAEP_SHA512_MGF1SHA512),
            _ => Err(refused()),
        },
        _ => Err(refused()),
    }
}

fn cipher_value(tree: &Tree<'_>, encrypted: NodeId) -> Option<Vec<u8>> {
    tree.base64(tree.only(tree.only(encrypted, XENC, "CipherData")?, XENC, "CipherValue")?)
}

fn open_gcm(algorithm: &'static aead::Algorithm, secret: &[u8], ciphertext: &[u8]) -> Option<Vec<u8>> {
    let key = LessSafeKey::new(UnboundKey::new(algorithm, secret).ok()?);
    let (nonce, sealed) = ciphertext.split_at_checked(aead::NONCE_LEN)?;
    let mut opened = sealed.to_vec();
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let length = key.open_in_place(nonce, Aad::empty(), &mut opened).ok()?.len();
    opened.truncate(length);
    Some(opened)
}

/// The last byte counts the padding; what the padding consists of is left to the sender.
fn open_cbc(algorithm: &'static cipher::Algorithm, secret: &[u8], ciphertext: &[u8]) -> Option<Vec<u8>> {
    let (iv, blocks) = ciphertext.split_at_checked(cipher::AES_CBC_IV_LEN)?;
    let context = DecryptionContext::Iv128(FixedLength::from(<[u8; cipher::AES_CBC_IV_LEN]>::try_from(iv).ok()?));
    let key = DecryptingKey::cbc(UnboundCipherKey::new(algorithm, secret).ok()?).ok()?;
    let mut opened = blocks.to_vec();
    key.decrypt(&mut opened, context).ok()?;
    let padding = usize::from(*opened.last()?);
    let length = opened.len().checked_sub(padding).filter(|_| (1..=16).contains(&padding))?;
    opened.truncate(length);
    Some(opened)
}
