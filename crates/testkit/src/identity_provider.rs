//! A SAML identity provider: signs with xmlsec1, which shares no code with the service.

use std::{fs, path::Path, process::Command};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kernel::{TenantId, Timestamp};
use serde_json::json;
use tempfile::TempDir;
use url::Url;

use crate::TestApp;

/// An identity provider with a key of its own.
pub struct IdentityProvider {
    folder: TempDir,
    pub entity_id: String,
    pub certificate: String,
    /// What it calls everybody from now on, whatever their address; else each address has a subject of its own.
    pub subject: Option<String>,
    /// What it says of everybody.
    pub first_name: String,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct SamlRequest {
    pub id: String,
    pub acs: String,
    pub audience: String,
    pub relay_state: String,
    pub xml: String,
}

impl SamlRequest {
    /// From the address that a browser was sent to.
    pub fn of(location: &str) -> Self {
        let url = Url::parse(location).unwrap_or_else(|_| panic!("{location} is not an address"));
        let parameter = |name: &str| {
            let mut pairs = url.query_pairs();
            let found = pairs.find(|(own, _)| own == name);
            found.unwrap_or_else(|| panic!("{location} has no {name}")).1.into_owned()
        };
        let deflated = BASE64_STANDARD.decode(parameter("SAMLRequest")).expect("base64");
        // One stored block: five bytes of header.
        let xml = String::from_utf8(deflated[5..].to_vec()).expect("UTF-8");
        let between = |before: &str, after: char| {
            let start = xml.find(before).unwrap_or_else(|| panic!("{before} is not in {xml}")) + before.len();
            xml[start..].split(after).next().expect("ends").to_owned()
        };
        Self {
            id: between(" ID=\"", '"'),
            acs: between("AssertionConsumerServiceURL=\"", '"'),
            audience: between("<saml:Issuer>", '<'),
            relay_state: parameter("RelayState"),
            xml,
        }
    }
}

fn run(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).output();
    let done = done.unwrap_or_else(|error| panic!("{program} is needed: run scripts/prepare ({error})"));
    assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
}

impl IdentityProvider {
    /// A connection to it, used by these workspaces of the first app: its id.
    pub async fn connect(&self, app: &TestApp, workspaces: &[TenantId]) -> String {
        let body = json!({
            "name": "Acme", "loginUrl": "https://idp.example/sso", "certificate": self.certificate,
            "idpEntityId": self.entity_id,
        });
        let id = app.key().post("/account/federation/connection", body).await.expect(201).text("/id");
        for workspace in workspaces {
            let used = json!({ "federationConnection": id });
            app.key().put(&format!("/account/tenant/{workspace}"), used).await.expect(200);
        }
        id
    }

    pub fn new(entity_id: &str) -> Self {
        Self::valid_for(entity_id, 36_500)
    }

    /// With a certificate that ends in so many days.
    pub fn valid_for(entity_id: &str, days: u32) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (key, certificate) = (path(folder.path(), "key.pem"), path(folder.path(), "certificate.pem"));
        let days = days.to_string();
        let subject = ["-subj", "/CN=idp.example", "-days", &days];
        run(
            "openssl",
            &[&["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", &key, "-out", &certificate][..], &subject]
                .concat(),
        );
        let certificate = fs::read_to_string(certificate).expect("a certificate");
        Self { folder, entity_id: entity_id.to_owned(), certificate, subject: None, first_name: "Grace".to_owned() }
    }

    /// The form that its page posts about somebody.
    pub fn answer(&self, asked: &SamlRequest, email: &str, now: Timestamp) -> Vec<(String, String)> {
        self.answer_with(asked, email, now, "urn:oasis:names:tc:SAML:2.0:ac:classes:Password", "")
    }

    /// The same with an authentication context, and further attributes of the statement.
    pub fn answer_with(
        &self,
        asked: &SamlRequest,
        email: &str,
        now: Timestamp,
        class: &str,
        more: &str,
    ) -> Vec<(String, String)> {
        let subject = self.subject.clone().unwrap_or_else(|| format!("subject of {email}"));
        let (SamlRequest { id, acs, audience, relay_state, .. }, first_name) = (asked, &self.first_name);
        let (issuer, until) = (&self.entity_id, now.plus(std::time::Duration::from_secs(300)));
        let signature = "<ds:Signature xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\"><ds:SignedInfo>\
             <ds:CanonicalizationMethod Algorithm=\"http://www.w3.org/2001/10/xml-exc-c14n#\"/>\
             <ds:SignatureMethod Algorithm=\"http://www.w3.org/2001/04/xmldsig-more#rsa-sha256\"/>\
             <ds:Reference URI=\"#_a\"><ds:Transforms>\
             <ds:Transform Algorithm=\"http://www.w3.org/2000/09/xmldsig#enveloped-signature\"/>\
             <ds:Transform Algorithm=\"http://www.w3.org/2001/10/xml-exc-c14n#\"/></ds:Transforms>\
             <ds:DigestMethod Algorithm=\"http://www.w3.org/2001/04/xmlenc#sha256\"/><ds:DigestValue/></ds:Reference>\
             </ds:SignedInfo><ds:SignatureValue/></ds:Signature>";
        let xml = format!(
            "<samlp:Response xmlns:samlp=\"urn:oasis:names:tc:SAML:2.0:protocol\" \
             xmlns:saml=\"urn:oasis:names:tc:SAML:2.0:assertion\" ID=\"_r\" Version=\"2.0\" IssueInstant=\"{now}\" \
             Destination=\"{acs}\" InResponseTo=\"{id}\"><saml:Issuer>{issuer}</saml:Issuer><samlp:Status>\
             <samlp:StatusCode Value=\"urn:oasis:names:tc:SAML:2.0:status:Success\"/></samlp:Status>\
             <saml:Assertion ID=\"_a\" Version=\"2.0\" IssueInstant=\"{now}\"><saml:Issuer>{issuer}</saml:Issuer>{signature}\
             <saml:Subject><saml:NameID>{subject}</saml:NameID>\
             <saml:SubjectConfirmation Method=\"urn:oasis:names:tc:SAML:2.0:cm:bearer\"><saml:SubjectConfirmationData \
             NotOnOrAfter=\"{until}\" Recipient=\"{acs}\" InResponseTo=\"{id}\"/></saml:SubjectConfirmation></saml:Subject>\
             <saml:Conditions NotOnOrAfter=\"{until}\"><saml:AudienceRestriction><saml:Audience>{audience}</saml:Audience>\
             </saml:AudienceRestriction></saml:Conditions><saml:AuthnStatement AuthnInstant=\"{now}\"{more}>\
             <saml:AuthnContext><saml:AuthnContextClassRef>{class}</saml:AuthnContextClassRef></saml:AuthnContext>\
             </saml:AuthnStatement><saml:AttributeStatement><saml:Attribute Name=\"email\"><saml:AttributeValue>{email}\
             </saml:AttributeValue></saml:Attribute><saml:Attribute Name=\"firstName\"><saml:AttributeValue>{first_name}\
             </saml:AttributeValue></saml:Attribute></saml:AttributeStatement></saml:Assertion></samlp:Response>"
        );
        let (unsigned, signed) = (path(self.folder.path(), "in.xml"), path(self.folder.path(), "out.xml"));
        fs::write(&unsigned, xml).expect("written");
        let key = path(self.folder.path(), "key.pem");
        let node = "urn:oasis:names:tc:SAML:2.0:assertion:Assertion";
        run("xmlsec1", &["--sign", "--privkey-pem", &key, "--id-attr:ID", node, "--output", &signed, &unsigned]);
        let response = BASE64_STANDARD.encode(fs::read(signed).expect("signed"));
        vec![("SAMLResponse".to_owned(), response), ("RelayState".to_owned(), relay_state.clone())]
    }
}

/// How an assertion is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    Gcm,
    Cbc,
}

impl IdentityProvider {
    /// An answer whose assertion is encrypted for the n-th key of the service's metadata.
    pub fn encrypted_answer(
        &self,
        asked: &SamlRequest,
        email: &str,
        now: Timestamp,
        metadata: &str,
        key: usize,
        cipher: Cipher,
    ) -> Vec<(String, String)> {
        let mut form = self.answer(asked, email, now);
        let response = String::from_utf8(BASE64_STANDARD.decode(&form[0].1).expect("base64")).expect("UTF-8");
        let (start, end) = ("<saml:Assertion ", "</saml:Assertion>");
        let from = response.find(start).expect("an assertion");
        let to = response.find(end).expect("its end") + end.len();
        // Standing alone it needs the namespace that the response declares.
        let assertion = response[from..to].replacen(
            start,
            "<saml:Assertion xmlns:saml=\"urn:oasis:names:tc:SAML:2.0:assertion\" ",
            1,
        );
        let encrypted = self.encrypt(&assertion, &encryption_certificate(metadata, key), cipher);
        let response = format!(
            "{}<saml:EncryptedAssertion>{encrypted}</saml:EncryptedAssertion>{}",
            &response[..from],
            &response[to..]
        );
        form[0].1 = BASE64_STANDARD.encode(response);
        form
    }

    fn encrypt(&self, plain: &str, certificate: &str, cipher: Cipher) -> String {
        let file = |name: &str| path(self.folder.path(), name);
        let (data, template, out) = (file("data.xml"), file("template.xml"), file("encrypted.xml"));
        let content = match cipher {
            Cipher::Gcm => "http://www.w3.org/2009/xmlenc11#aes256-gcm",
            Cipher::Cbc => "http://www.w3.org/2001/04/xmlenc#aes256-cbc",
        };
        let shape = format!(
            "<xenc:EncryptedData xmlns:xenc=\"http://www.w3.org/2001/04/xmlenc#\" \
             Type=\"http://www.w3.org/2001/04/xmlenc#Element\"><xenc:EncryptionMethod Algorithm=\"{content}\"/>\
             <ds:KeyInfo xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\"><xenc:EncryptedKey>\
             <xenc:EncryptionMethod Algorithm=\"http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p\"/><xenc:CipherData>\
             <xenc:CipherValue/></xenc:CipherData></xenc:EncryptedKey></ds:KeyInfo><xenc:CipherData><xenc:CipherValue/>\
             </xenc:CipherData></xenc:EncryptedData>"
        );
        fs::write(&data, plain).expect("written");
        fs::write(&template, shape).expect("written");
        fs::write(file("service.pem"), certificate).expect("written");
        let service = file("service.pem");
        let keys = ["--encrypt", "--pubkey-cert-pem", &service, "--session-key", "aes-256"];
        run("xmlsec1", &[&keys[..], &["--binary-data", &data, "--output", &out, &template]].concat());
        let encrypted = fs::read_to_string(out).expect("encrypted");
        encrypted.split_once("?>").map_or(encrypted.as_str(), |(_, body)| body).trim().to_owned()
    }
}

/// The n-th certificate of a service's metadata that is for encryption, as PEM.
fn encryption_certificate(metadata: &str, number: usize) -> String {
    let described = metadata.split("use=\"encryption\"").nth(number + 1).expect("so many encryption keys");
    let begin = "<ds:X509Certificate>";
    let from = described.find(begin).expect("a certificate") + begin.len();
    let base64 = described[from..].split('<').next().expect("its end");
    format!("-----BEGIN CERTIFICATE-----\n{base64}\n-----END CERTIFICATE-----\n")
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_string_lossy().into_owned()
}
