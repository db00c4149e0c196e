//! Metadata: ours, as identity providers read it, and theirs, as far as it fills in a connection.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bergshamra_xml::NodeId;
use kernel::{Error, Result, Timestamp};
use x509_cert::{
    TbsCertificate, Version,
    der::{Decode as _, Encode as _, asn1::BitString},
    name::Name,
    serial_number::SerialNumber,
    spki::{AlgorithmIdentifierOwned, ObjectIdentifier, SubjectPublicKeyInfoOwned},
    time::{Time, Validity},
};

use crate::{
    refusal::Refusal,
    signing::RequestKey,
    xml::{DSIG, METADATA, PROTOCOL, Tree, escape},
};

pub const CONTENT_TYPE: &str = "application/samlmetadata+xml";

/// What our metadata says. Certificates are DER.
pub struct ServiceProvider<'a> {
    pub entity_id: &'a str,
    pub acs_url: &'a str,
    /// The first is of the key that signs now.
    pub signing_certificates: &'a [Vec<u8>],
    pub signs_requests: bool,
    pub encryption_certificates: &'a [Vec<u8>],
}

impl ServiceProvider<'_> {
    pub fn xml(&self) -> String {
        let key = |purpose: &str, der: &[u8]| {
            let certificate = BASE64_STANDARD.encode(der);
            format!(
                "<md:KeyDescriptor use=\"{purpose}\"><ds:KeyInfo><ds:X509Data><ds:X509Certificate>{certificate}\
                 </ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>"
            )
        };
        let mut keys: String = self.signing_certificates.iter().map(|der| key("signing", der)).collect();
        self.encryption_certificates.iter().for_each(|der| keys.push_str(&key("encryption", der)));
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<md:EntityDescriptor xmlns:md=\"{METADATA}\" xmlns:ds=\"{DSIG}\" \
             entityID=\"{entity_id}\"><md:SPSSODescriptor AuthnRequestsSigned=\"{signed}\" WantAssertionsSigned=\"true\" \
             protocolSupportEnumeration=\"{PROTOCOL}\">{keys}\
             <md:AssertionConsumerService Binding=\"urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST\" Location=\"{acs}\" \
             index=\"0\" isDefault=\"true\"/></md:SPSSODescriptor></md:EntityDescriptor>\n",
            entity_id = escape(self.entity_id),
            acs = escape(self.acs_url),
            signed = self.signs_requests,
        )
    }
}

/// A certificate for a request key, signed by itself: identity providers take keys in no other wrapping. It is the same every
/// time for an RSA key, whose signatures have no randomness.
pub fn self_signed(key: &RequestKey, name: &str, since: Timestamp) -> Result<Vec<u8>> {
    let failed = |error: x509_cert::der::Error| Error::internal(format!("a certificate cannot be made: {error}"));
    let public = SubjectPublicKeyInfoOwned::from_der(&key.public_key()?).map_err(failed)?;
    let subject: Name = format!("CN={}", common_name(name)).parse().map_err(failed)?;
    let algorithm = AlgorithmIdentifierOwned { oid: signature_oid(key.algorithm()), parameters: None };
    let algorithm = if key.algorithm().contains("rsa-") {
        AlgorithmIdentifierOwned { parameters: Some(x509_cert::der::asn1::Null.into()), ..algorithm }
    } else {
        algorithm
    };
    let instant = |at: Timestamp| {
        let seconds = u64::try_from(at.as_seconds()).unwrap_or(0);
        Time::try_from(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds))
    };
    let thirty_years = std::time::Duration::from_secs(30 * 365 * 86_400);
    let serial = vault::sha256_bytes(&public.to_der().map_err(failed)?);
    let tbs = TbsCertificate {
        version: Version::V3,
        serial_number: SerialNumber::new(&[&[0x01], &serial[..15]].concat()).map_err(failed)?,
        signature: algorithm.clone(),
        issuer: subject.clone(),
        validity: Validity {
            not_before: instant(since).map_err(failed)?,
            not_after: instant(since.plus(thirty_years)).map_err(failed)?,
        },
        subject,
        subject_public_key_info: public,
        issuer_unique_id: None,
        subject_unique_id: None,
        extensions: None,
    };
    let signed = key.sign_for_certificate(&tbs.to_der().map_err(failed)?)?;
    let signature = BitString::from_bytes(&signed).map_err(failed)?;
    x509_cert::Certificate { tbs_certificate: tbs, signature_algorithm: algorithm, signature }.to_der().map_err(failed)
}

/// Only what can stand in a distinguished name without escapes.
fn common_name(name: &str) -> String {
    let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-')).take(64).collect();
    if plain.is_empty() { "service-provider".to_owned() } else { plain }
}

fn signature_oid(algorithm: &str) -> ObjectIdentifier {
    match algorithm.rsplit('#').next().unwrap_or_default() {
        "rsa-sha256" => ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11"),
        "rsa-sha512" => ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.13"),
        "ecdsa-sha384" => ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3"),
        "ecdsa-sha512" => ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.4"),
        _ => ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2"),
    }
}

/// What an identity provider's metadata says about signing in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityProvider {
    pub entity_id: String,
    pub login_url: String,
    /// Whether requests are posted rather than redirected.
    pub posts: bool,
    /// PEM, one after the other.
    pub certificates: String,
}

/// Why somebody's metadata fills in nothing. Reads as "the metadata …".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidMetadata(pub &'static str);

impl From<Refusal> for InvalidMetadata {
    fn from(refusal: Refusal) -> Self {
        Self(refusal.reason)
    }
}

/// Reads metadata of one identity provider. Nothing in it is believed: it only saves the operator from typing, so its signature
/// does not matter and comments, which many carry, do no harm.
pub fn read(xml: &str) -> Result<IdentityProvider, InvalidMetadata> {
    let without_comments = strip_comments(xml).ok_or(InvalidMetadata("has a comment that does not end"))?;
    let tree = Tree::parse(&without_comments)?;
    let entity = tree.root();
    let named = tree.is(entity, METADATA, "EntityDescriptor");
    if !named {
        return Err(InvalidMetadata("is not of one entity (EntityDescriptor)"));
    }
    let entity_id = tree.attribute(entity, "entityID").ok_or(InvalidMetadata("has no entityID"))?.to_owned();
    let role = tree.only(entity, METADATA, "IDPSSODescriptor");
    let role = role.ok_or(InvalidMetadata("does not have exactly one IDPSSODescriptor"))?;
    let service = |binding: &str| {
        let services = tree.named(role, METADATA, "SingleSignOnService");
        let fits = |node: &NodeId| {
            let name =
                tree.attribute(*node, "Binding").and_then(|b| b.strip_prefix("urn:oasis:names:tc:SAML:2.0:bindings:"));
            name == Some(binding)
        };
        services.into_iter().find(fits).and_then(|node| tree.attribute(node, "Location")).map(str::to_owned)
    };
    let (login_url, posts) = service("HTTP-Redirect")
        .map(|url| (url, false))
        .or_else(|| service("HTTP-POST").map(|url| (url, true)))
        .ok_or(InvalidMetadata("offers sign-in neither by HTTP-Redirect nor by HTTP-POST"))?;
    let certificates = signing_certificates(&tree, role);
    if certificates.is_empty() {
        return Err(InvalidMetadata("has no signing certificate"));
    }
    Ok(IdentityProvider { entity_id, login_url, posts, certificates })
}

fn signing_certificates(tree: &Tree<'_>, role: NodeId) -> String {
    let mut pem = String::new();
    for descriptor in tree.named(role, METADATA, "KeyDescriptor") {
        if tree.attribute(descriptor, "use").is_some_and(|purpose| purpose != "signing") {
            continue;
        }
        for info in tree.named(descriptor, DSIG, "KeyInfo") {
            for data in tree.named(info, DSIG, "X509Data") {
                for certificate in tree.named(data, DSIG, "X509Certificate") {
                    pem.push_str(&tree.base64(certificate).map(|der| to_pem(&der)).unwrap_or_default());
                }
            }
        }
    }
    pem
}

fn to_pem(der: &[u8]) -> String {
    let encoded = BASE64_STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = more;
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

fn strip_comments(xml: &str) -> Option<String> {
    let mut kept = String::with_capacity(xml.len());
    let mut rest = xml;
    while let Some((before, comment)) = rest.split_once("<!--") {
        kept.push_str(before);
        rest = comment.split_once("-->")?.1;
    }
    kept.push_str(rest);
    Some(kept)
}
