//! SAML responses, as XML: whatever is accepted says what one of the checked-in messages says, and the gate ends with every
//! input.
#![no_main]

use std::sync::{Arc, LazyLock};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kernel::{Secret, Timestamp};
use libfuzzer_sys::fuzz_target;
use saml::{Certificates, DecryptionKey, Expected, Statement, judge};

struct Setting {
    certificates: Certificates,
    keys: Vec<Arc<DecryptionKey>>,
    now: Timestamp,
    /// What the checked-in messages say.
    said: Vec<Statement>,
}

macro_rules! corpus {
    ($file:literal) => {
        include_str!(concat!("../../crates/saml/tests/corpus/", $file))
    };
}

static SETTING: LazyLock<Setting> = LazyLock::new(|| {
    let pem = [corpus!("idp.pem"), corpus!("ec.pem"), corpus!("ec384.pem")].concat();
    let key: String = corpus!("sp.key").lines().filter(|line| !line.starts_with('-')).collect();
    let key = Secret::new(BASE64_STANDARD.decode(key).expect("PEM"));
    let mut setting = Setting {
        certificates: Certificates::from_pem(&pem).expect("certificates"),
        keys: vec![Arc::new(DecryptionKey::from_pkcs8(&key).expect("a key"))],
        now: "2026-01-15T10:00:00Z".parse().expect("a time"),
        said: Vec::new(),
    };
    // Which of them are accepted is what the tests of the room say.
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/saml/tests/corpus");
    for file in std::fs::read_dir(folder).expect("the corpus").flatten() {
        setting.said.extend(setting.judge(&std::fs::read(file.path()).expect("a message")));
    }
    assert!(setting.said.len() > 10, "nothing is accepted: the setting is wrong");
    setting
});

impl Setting {
    fn judge(&self, xml: &[u8]) -> Option<Statement> {
        let expected = Expected {
            certificates: &self.certificates,
            decryption_keys: &self.keys,
            issuer: Some("https://idp.example/metadata"),
            entity_id: "https://login.example/auth/federation/saml/c1/metadata",
            acs_url: "https://login.example/auth/federation/saml/c1/acs",
            request_id: "_request",
            now: self.now,
            authenticated_since: None,
        };
        judge(&BASE64_STANDARD.encode(xml), &expected).ok()
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Some(said) = SETTING.judge(bytes) {
        assert!(SETTING.said.contains(&said), "nobody signed {said:?}");
    }
});
