//! The connection that the corpus belongs to, and the programs it is checked with.

use std::{fs, path::PathBuf, process::Command, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kernel::{Secret, Timestamp};
use saml::{Certificates, DecryptionKey, Expected, Refusal, Statement, judge};

pub const ISSUER: &str = "https://idp.example/metadata";
pub const NOW: &str = "2026-01-15T10:00:00Z";

pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

pub fn file(name: &str) -> String {
    let path = folder().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn der(pem: &str) -> Vec<u8> {
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    BASE64_STANDARD.decode(body).expect("PEM")
}

/// A connection with its keys, at a moment.
pub struct Connection {
    certificates: Certificates,
    keys: Vec<Arc<DecryptionKey>>,
    pub now: Timestamp,
    pub authenticated_since: Option<Timestamp>,
}

impl Connection {
    pub fn new() -> Self {
        Self::trusting(&["idp.pem", "ec.pem", "ec384.pem", "small.pem"])
    }

    pub fn trusting(certificates: &[&str]) -> Self {
        let pem: String = certificates.iter().map(|name| file(name)).collect();
        Self {
            certificates: Certificates::from_pem(&pem).expect("certificates"),
            keys: vec![Arc::new(DecryptionKey::from_pkcs8(&Secret::new(der(&file("sp.key")))).expect("a key"))],
            now: NOW.parse().expect("a time"),
            authenticated_since: None,
        }
    }

    pub fn judge_encoded(&self, encoded: &str) -> Result<Statement, Refusal> {
        let expected = Expected {
            certificates: &self.certificates,
            decryption_keys: &self.keys,
            issuer: Some(ISSUER),
            entity_id: "https://login.example/auth/federation/saml/c1/metadata",
            acs_url: "https://login.example/auth/federation/saml/c1/acs",
            request_id: "_request",
            now: self.now,
            authenticated_since: self.authenticated_since,
        };
        judge(encoded, &expected)
    }

    pub fn judge(&self, xml: &[u8]) -> Result<Statement, Refusal> {
        self.judge_encoded(&BASE64_STANDARD.encode(xml))
    }
}

/// Runs a program that has to be there; what it wrote to either output.
pub fn run(program: &str, arguments: &[&str]) -> (bool, String) {
    let done = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program} is needed: run scripts/prepare ({error})"));
    (done.status.success(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
}
