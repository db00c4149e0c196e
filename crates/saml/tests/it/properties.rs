//! Whatever happens to a message, it says what was signed or is refused.

use corpus::{edited, edits};
use proptest::prelude::*;
use saml::Step;

use crate::setting::{Connection, file};

const GOOD: [&str; 6] = [
    "good-assertion-signed.xml",
    "good-response-signed.xml",
    "good-both-signed.xml",
    "good-ec-p256.xml",
    "good-prefix-list.xml",
    "good-encrypted-gcm.xml",
];

/// Where the signed element begins and ends, its tags included.
fn signed_part(xml: &str, name: &str) -> std::ops::Range<usize> {
    let begin = xml.find(&format!("<{name} ")).expect("begins");
    let close = format!("</{name}>");
    begin..xml.find(&close).expect("ends") + close.len()
}

#[test]
fn every_flipped_bit_under_the_signature_is_refused() {
    let xml = file("good-assertion-signed.xml");
    let connection = Connection::new();
    let original = connection.judge(xml.as_bytes()).expect("good");
    for at in signed_part(&xml, "saml:Assertion") {
        for bit in 0..8 {
            let mut bytes = xml.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            // White space in base64 means nothing, and exclusive canonicalisation leaves out namespaces that nobody uses.
            if let Ok(said) = connection.judge(&bytes) {
                assert_eq!(said, original, "bit {bit} of byte {at}");
                let declares = xml[..at].rfind(' ').is_some_and(|word| xml[word..].starts_with(" xmlns:"));
                let covered = !declares && !signed_part(&xml, "ds:Signature").contains(&at);
                assert!(!covered, "bit {bit} of byte {at} is under the signature");
            }
        }
    }
}

proptest! {
    #[test]
    fn edited_messages_say_what_was_signed_or_nothing(which in 0..GOOD.len(), edits in edits()) {
        let xml = file(GOOD[which]);
        let connection = Connection::new();
        let original = connection.judge(xml.as_bytes()).expect("good");
        if let Ok(said) = connection.judge(&edited(xml.as_bytes(), &edits)) {
            prop_assert_eq!(said, original);
        }
    }

    #[test]
    fn any_text_is_refused_without_trouble(text in "[<>/a-zA-Z:=\" !?&;#\\[\\]-]{0,300}") {
        let refusal = Connection::new().judge(text.as_bytes()).expect_err("nobody signed it");
        prop_assert!(refusal.step <= Step::Signature);
    }

    /// Parts of good messages in any order and any place.
    #[test]
    fn shuffled_parts_say_what_was_signed_or_nothing(cuts in prop::collection::vec((0..4usize, 0..4000usize, 0..4000usize, 0..4000usize), 1..4)) {
        let mut xml = file(GOOD[0]);
        for (source, from, to, at) in cuts {
            let part = file(GOOD[source]);
            let tags: Vec<usize> = part.match_indices('<').map(|(at, _)| at).collect();
            let (from, to) = (tags[from % tags.len()], tags[to % tags.len()]);
            let places: Vec<usize> = xml.match_indices('<').map(|(at, _)| at).collect();
            let at = places[at % places.len()];
            xml.insert_str(at, &part[from.min(to)..from.max(to)]);
        }
        if let Ok(said) = Connection::new().judge(xml.as_bytes()) {
            prop_assert_eq!(said.email.as_deref(), Some("ann@acme.example"));
        }
    }
}
