//! The identity provider of a workspace: signs what it is told to. It writes in canonical form to begin with, so that nothing but
//! a hash and a signature is needed.

use aws_lc_rs::{
    digest::{SHA256, digest},
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use bench::Result;
use kernel::Clock;
use saml::{RequestHash, RequestKey, metadata::self_signed};
use vault::PrivateKey;

pub const ENTITY_ID: &str = "https://idp.example/metadata";
const EXCLUSIVE: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";

pub struct Provider {
    pair: RsaKeyPair,
    /// DER in base64, as PEM and `KeyInfo` have it.
    certificate: String,
}

/// What an answer is about.
#[derive(Clone, Copy)]
pub struct Answer<'a> {
    pub request_id: &'a str,
    pub acs_url: &'a str,
    pub audience: &'a str,
    /// Further elements of the attribute statement, in canonical form.
    pub attributes: &'a str,
    /// The `PrefixList` of both canonicalisations, when there is one.
    pub prefixes: &'a str,
}

impl Provider {
    pub fn new() -> Result<Self> {
        let der = PrivateKey::generate()?.to_pkcs8()?;
        let key = RequestKey::from_pkcs8(&der, RequestHash::Sha256)?;
        let certificate = self_signed(&key, "idp.example", Clock::system().now())?;
        let pair = RsaKeyPair::from_pkcs8(der.expose())?;
        Ok(Self { pair, certificate: BASE64_STANDARD.encode(certificate) })
    }

    pub fn certificate(&self) -> String {
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", self.certificate)
    }

    fn sign(&self, text: &str) -> Result<String> {
        let mut value = vec![0; self.pair.public_modulus_len()];
        self.pair.sign_digest(&RSA_PKCS1_SHA256, &digest(&SHA256, text.as_bytes()), &mut value)?;
        Ok(BASE64_STANDARD.encode(value))
    }

    fn signature(&self, signed: &str, prefixes: &str) -> Result<String> {
        let value = BASE64_STANDARD.encode(digest(&SHA256, signed.as_bytes()));
        let kept = match prefixes {
            "" => String::new(),
            list => format!(
                "<ec:InclusiveNamespaces xmlns:ec=\"{EXCLUSIVE}\" PrefixList=\"{list}\"></ec:InclusiveNamespaces>"
            ),
        };
        let info = format!(
            "<ds:SignedInfo xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\">\
             <ds:CanonicalizationMethod Algorithm=\"{EXCLUSIVE}\">{kept}</ds:CanonicalizationMethod>\
             <ds:SignatureMethod Algorithm=\"http://www.w3.org/2001/04/xmldsig-more#rsa-sha256\"></ds:SignatureMethod>\
             <ds:Reference URI=\"#_a\"><ds:Transforms><ds:Transform \
             Algorithm=\"http://www.w3.org/2000/09/xmldsig#enveloped-signature\"></ds:Transform><ds:Transform \
             Algorithm=\"{EXCLUSIVE}\">{kept}</ds:Transform></ds:Transforms><ds:DigestMethod \
             Algorithm=\"http://www.w3.org/2001/04/xmlenc#sha256\"></ds:DigestMethod>\
             <ds:DigestValue>{value}</ds:DigestValue></ds:Reference></ds:SignedInfo>"
        );
        let (value, certificate) = (self.sign(&info)?, &self.certificate);
        Ok(format!(
            "<ds:Signature xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\">{info}<ds:SignatureValue>{value}\
             </ds:SignatureValue><ds:KeyInfo><ds:X509Data><ds:X509Certificate>{certificate}</ds:X509Certificate>\
             </ds:X509Data></ds:KeyInfo></ds:Signature>"
        ))
    }

    /// A signed assertion, which can stand alone.
    pub fn assertion(&self, answer: &Answer<'_>) -> Result<String> {
        let Answer { request_id, acs_url, audience, attributes, prefixes } = answer;
        let now = Clock::system().now();
        let until = now.plus(std::time::Duration::from_secs(300));
        let head = format!(
            "<saml:Assertion xmlns:saml=\"urn:oasis:names:tc:SAML:2.0:assertion\" ID=\"_a\" IssueInstant=\"{now}\" \
             Version=\"2.0\"><saml:Issuer>{ENTITY_ID}</saml:Issuer>"
        );
        let rest = format!(
            "<saml:Subject><saml:NameID>00u1</saml:NameID>\
             <saml:SubjectConfirmation Method=\"urn:oasis:names:tc:SAML:2.0:cm:bearer\"><saml:SubjectConfirmationData \
             InResponseTo=\"{request_id}\" NotOnOrAfter=\"{until}\" Recipient=\"{acs_url}\">\
             </saml:SubjectConfirmationData></saml:SubjectConfirmation></saml:Subject>\
             <saml:Conditions NotOnOrAfter=\"{until}\"><saml:AudienceRestriction><saml:Audience>{audience}\
             </saml:Audience></saml:AudienceRestriction></saml:Conditions><saml:AuthnStatement AuthnInstant=\"{now}\">\
             <saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password\
             </saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement><saml:AttributeStatement>\
             <saml:Attribute Name=\"email\"><saml:AttributeValue>ada@bench.example</saml:AttributeValue>\
             </saml:Attribute>{attributes}</saml:AttributeStatement></saml:Assertion>"
        );
        let signature = self.signature(&format!("{head}{rest}"), prefixes)?;
        Ok(format!("{head}{signature}{rest}"))
    }

    /// A response with a signed assertion.
    pub fn response(&self, answer: &Answer<'_>) -> Result<String> {
        Ok(envelope(answer, &self.assertion(answer)?))
    }
}

/// A response that itself is not signed, with this in it.
pub fn envelope(answer: &Answer<'_>, inner: &str) -> String {
    let Answer { request_id, acs_url, .. } = answer;
    let now = Clock::system().now();
    format!(
        "<samlp:Response xmlns:samlp=\"urn:oasis:names:tc:SAML:2.0:protocol\" \
         xmlns:saml=\"urn:oasis:names:tc:SAML:2.0:assertion\" Destination=\"{acs_url}\" ID=\"_r\" \
         InResponseTo=\"{request_id}\" IssueInstant=\"{now}\" Version=\"2.0\"><saml:Issuer>{ENTITY_ID}</saml:Issuer>\
         <samlp:Status><samlp:StatusCode Value=\"urn:oasis:names:tc:SAML:2.0:status:Success\"/></samlp:Status>{inner}\
         </samlp:Response>"
    )
}

/// An attribute with so many values, as of somebody in many groups.
pub fn groups(count: usize) -> String {
    let values: String = (0..count)
        .map(|n| format!("<saml:AttributeValue>cn=group-{n:05},ou=groups,dc=acme</saml:AttributeValue>"))
        .collect();
    format!("<saml:Attribute Name=\"groups\">{values}</saml:Attribute>")
}
