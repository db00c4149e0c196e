//! Forms with a file and their policies: the same wherever they are cut, and nobody makes a policy but the service.
#![no_main]

use std::{sync::LazyLock, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use files::{Allowed, Arrived, FileId, S3Address, Ticket, UploadForm, UploadTicket};
use kernel::{Code, Entropy, Result, Timestamp};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use vault::{Keyring, MasterKey};

/// Not the one of the corpus.
static KEYRING: LazyLock<Keyring> = LazyLock::new(|| {
    let entropy = Entropy::seeded_for_tests(11);
    Keyring::new(&MasterKey::generate(&entropy), None, entropy)
});
static STORAGE: LazyLock<S3Address> =
    LazyLock::new(|| S3Address::from_url("s3://KEY:secret@s3.amazonaws.com/examplebucket").expect("an address"));

/// The file; `None` for what ends too early.
fn file(body: &[u8], step: usize) -> Result<Option<Vec<u8>>> {
    let mut form = UploadForm::of(Some("multipart/form-data; boundary=AaB03x"))?;
    let (mut file, mut pieces) = (Vec::new(), body.chunks(step));
    loop {
        match form.step()? {
            Arrived::More => match pieces.next() {
                Some(bytes) => form.push(bytes),
                None => return Ok(None),
            },
            Arrived::File => assert!(file.is_empty()),
            Arrived::Bytes(bytes) => file.extend_from_slice(&bytes),
            Arrived::End => return Ok(Some(file)),
        }
    }
}

fn judged<T>(read: Result<T>) -> Option<T> {
    read.inspect_err(|error| assert_eq!(error.code(), Code::MalformedRequest, "{error:?}")).ok()
}

fuzz_target!(|bytes: &[u8]| {
    assert_eq!(judged(file(bytes, 3)).flatten(), judged(file(bytes, bytes.len().max(1))).flatten());
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    judged(UploadForm::of(Some(&format!("multipart/form-data; {text}"))));
    assert!(UploadTicket::open(&KEYRING, FileId::from_u128(1), text).is_err(), "nobody sealed this");

    let allowed = Allowed { key: text, content_type: text, max_bytes: 7, lasts: Duration::from_mins(15) };
    let fields = STORAGE.form(&allowed, Timestamp::from_seconds(1_800_000_000)).expect("a form");
    let policy = BASE64_STANDARD.decode(&fields["policy"]).expect("base64");
    let policy: Value = serde_json::from_slice(&policy).expect("JSON");
    let conditions = policy["conditions"].as_array().expect("a list");
    assert_eq!((conditions.len(), &conditions[0], &conditions[4]), (8, &json!({ "Content-Type": text }), &json!({ "key": text })));
});
