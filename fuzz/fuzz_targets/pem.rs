//! Certificates and keys in PEM: a text is at most one of the two.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let certificate = vault::is_certificate(text);
    assert!(!certificate || text.contains("CERTIFICATE"));
    let key = vault::is_signing_key(&kernel::Secret::new(text.to_owned()));
    assert!(!key || text.contains("PRIVATE KEY"));
});
