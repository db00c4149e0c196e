//! What holds for every form that somebody may post.

use std::collections::BTreeMap;

use corpus::{edited, edits, nasty_text, replay, seeds};
use kernel::{Code, Ticker};
use proptest::prelude::*;

use super::*;
use crate::multipart::LARGEST_HEAD;

const HOME: &str = env!("CARGO_MANIFEST_DIR");
const BOUNDARY: &str = "AaB03x";

/// All that a form brought.
#[derive(Debug, PartialEq)]
struct Posted {
    fields: BTreeMap<String, Vec<u8>>,
    file: Vec<u8>,
}

/// Reads a form that the network cuts into pieces, and looks at what is in memory meanwhile.
fn read(body: &[u8], step: usize) -> Result<Posted> {
    let mut form = UploadForm::of(Some(&format!("multipart/form-data; boundary={BOUNDARY}")))?;
    let (mut file, mut pieces) = (Vec::new(), body.chunks(step));
    loop {
        match form.step()? {
            Arrived::More => {
                assert!(form.reader.waiting() <= LARGEST_HEAD, "{} bytes wait", form.reader.waiting());
                form.push(pieces.next().ok_or_else(|| malformed("it ends too early"))?);
            }
            Arrived::File => assert!(file.is_empty(), "there is one file"),
            Arrived::Bytes(bytes) => file.extend_from_slice(&bytes),
            Arrived::End => break,
        }
        assert!(form.fields.len() <= MOST_FIELDS && form.fields.values().all(|value| value.len() <= LARGEST_FIELD));
    }
    Ok(Posted { fields: form.fields.into_iter().collect(), file })
}

/// A name as it can stand in a header: one with quotes has none around it.
fn parameter(name: &str) -> String {
    if name.contains('"') { name.to_owned() } else { format!("\"{name}\"") }
}

fn written(posted: &Posted) -> Vec<u8> {
    let mut body = Vec::new();
    let mut part = |head: &str, value: &[u8]| {
        let head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name={head}\r\n\r\n");
        body.extend_from_slice(&[head.as_bytes(), value, b"\r\n"].concat());
    };
    for (name, value) in &posted.fields {
        part(&parameter(name), value);
    }
    part("\"file\"; filename=\"x\"", &posted.file);
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    body
}

/// Refused in the sender's words, or the same whoever writes it again; wherever the network cuts.
fn check(body: &[u8], step: usize) -> Result<(), TestCaseError> {
    match (read(body, body.len().max(1)), read(body, step)) {
        (Ok(whole), Ok(pieces)) => {
            prop_assert_eq!(&whole, &pieces);
            prop_assert_eq!(read(&written(&whole), step).ok(), Some(whole));
        }
        (Err(whole), Err(pieces)) => {
            prop_assert_eq!(whole.code(), Code::MalformedRequest);
            prop_assert_eq!(pieces.code(), Code::MalformedRequest);
        }
        (whole, pieces) => prop_assert!(false, "{whole:?} at once, but {pieces:?} in pieces of {step}"),
    }
    Ok(())
}

#[test]
fn known_inputs_are_judged_as_before() {
    replay(HOME, "forms", |body| {
        let verdicts = [1, 3, 64, usize::MAX].map(|step| read(body, step).is_ok());
        assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "cuts matter: {verdicts:?}");
        verdicts[0]
    });
    replay(HOME, "form-types", |bytes| std::str::from_utf8(bytes).is_ok_and(|kind| UploadForm::of(Some(kind)).is_ok()));
}

/// A file of many lines that begin like its boundary, and heads that never end, cost next to nothing.
#[test]
fn no_form_is_expensive() {
    let started = Ticker.now();
    let almost = Posted { fields: BTreeMap::new(), file: b"\r\n--AaB03".repeat(1 << 20) };
    assert_eq!(read(&written(&almost), 16 * 1024).ok(), Some(almost));
    for endless in ["--AaB03x\r\nA: ", "--AaB03x\r\nContent-Disposition: form-data; name=\"a\"; b=", ""] {
        let body = [endless.as_bytes(), &b";=\"".repeat(1 << 20)].concat();
        assert!(read(&body, 100).is_err());
    }
    let part = "--AaB03x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n";
    assert!(read(part.repeat(100_000).as_bytes(), 16 * 1024).is_err());
    assert!(Ticker.since(started).as_secs() < 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn no_changed_form_brings_the_reader_down(
        seed in prop::sample::select(seeds(HOME, "forms")),
        edits in edits(),
        step in 1_usize..80,
    ) {
        check(&edited(&seed, &edits), step)?;
    }

    #[test]
    fn arbitrary_bytes_are_no_form(bytes in prop::collection::vec(any::<u8>(), 0..200), step in 1_usize..40) {
        prop_assert!(read(&bytes, step).is_err());
        check(&[b"--AaB03x\r\n", &bytes[..]].concat(), step)?;
        check(&[b"--AaB03x\r\nContent-Disposition: form-data; name=file\r\n\r\n", &bytes[..]].concat(), step)?;
    }

    #[test]
    fn any_head_and_any_type_is_taken_or_refused(texts in prop::collection::vec(nasty_text(), 1..5), step in 1_usize..40) {
        for glue in ["; ", "=", ";name=", "\""] {
            let text = texts.join(glue);
            check(format!("--AaB03x\r\nContent-Disposition: form-data; name={text}\r\n\r\nx\r\n--AaB03x--").as_bytes(), step)?;
            if let Err(error) = UploadForm::of(Some(&format!("multipart/form-data; boundary={text}"))) {
                prop_assert_eq!(error.code(), Code::MalformedRequest);
            }
        }
    }
}
