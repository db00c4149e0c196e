//! What holds for every policy that somebody may send along with a form, and for every one that is handed out.

use std::{sync::LazyLock, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use corpus::{Made, check_made, edited, edits, nasty_text, replay, seeds, write_made};
use kernel::Entropy;
use proptest::prelude::*;
use serde_json::{Value, json};
use vault::MasterKey;

use super::*;
use crate::{Allowed, S3Address};

const HOME: &str = env!("CARGO_MANIFEST_DIR");

fn keyring(seed: u64) -> Keyring {
    let entropy = Entropy::seeded_for_tests(seed);
    Keyring::new(&MasterKey::generate(&entropy), None, entropy)
}

static KEYRING: LazyLock<Keyring> = LazyLock::new(|| keyring(7));

fn file() -> FileId {
    FileId::from_u128(1)
}

fn ticket(content_type: &str) -> UploadTicket {
    let until = Timestamp::from_seconds(1_800_000_000);
    UploadTicket { app: AppId::from_u128(1), content_type: content_type.to_owned(), until }
}

fn open(policy: &[u8]) -> Option<UploadTicket> {
    UploadTicket::open(&KEYRING, file(), std::str::from_utf8(policy).ok()?).ok()
}

fn accepted(keyring: &Keyring) -> Vec<Made> {
    let sealed = |content_type: &str| ticket(content_type).seal(keyring, file()).expect("sealed").into_bytes();
    vec![("plain", sealed("text/plain")), ("of-any-type", sealed("")), ("quotes", sealed("a/b; c=\"\\\u{1f600}\""))]
}

fn refused_ones(keyring: &Keyring) -> Vec<Made> {
    let good = ticket("text/plain").seal(keyring, file()).expect("sealed");
    let other_file = ticket("text/plain").seal(keyring, FileId::from_u128(2)).expect("sealed");
    let elsewhere = ticket("text/plain").seal(&self::keyring(8), file()).expect("sealed");
    let download = DownloadTicket { until: ticket("").until }.seal(keyring, file()).expect("sealed");
    let (id, json) = (file().to_string(), serde_json::to_vec(&ticket("text/plain")).expect("JSON"));
    let of_upload = |content: &[u8]| keyring.seal_for_page(&place("upload", &id), content);
    let named_otherwise = keyring.seal_for_page(&Place { table: "apps", ..place("upload", &id) }, &json);
    let policy_of_a_storage =
        STANDARD.encode(json!({ "expiration": "2999-01-01T00:00:00Z", "conditions": [] }).to_string());
    let half = good.len() / 2;
    let all = vec![
        ("empty", String::new()),
        ("space", " ".to_owned()),
        ("cut-half", good[..half].to_owned()),
        ("cut-last", good[..good.len() - 1].to_owned()),
        ("longer", format!("{good}A")),
        ("twice", good.repeat(2)),
        ("line-end", format!("{good}\n")),
        ("space-before", format!(" {good}")),
        ("padded", format!("{good}=")),
        ("upper-case", good.to_uppercase()),
        ("nul", format!("{good}\0")),
        ("swapped-halves", format!("{}{}", &good[half..], &good[..half])),
        ("of-another-file", other_file),
        ("of-another-installation", elsewhere),
        ("of-a-download", download),
        ("of-another-table", named_otherwise),
        ("sealed-for-a-row", keyring.seal(&place("upload", &id), &json)),
        ("sealed-nothing", of_upload(b"")),
        ("sealed-null", of_upload(b"null")),
        ("sealed-without-type", of_upload(br#"{"app":"1","until":1}"#)),
        ("sealed-cut-json", of_upload(&json[..json.len() - 1])),
        ("sealed-longer-json", of_upload(&[&json[..], b"x"].concat())),
        ("not-sealed", String::from_utf8(json.clone()).expect("JSON")),
        ("not-sealed-encoded", STANDARD.encode(&json)),
        ("of-a-storage", policy_of_a_storage),
        ("long", "A".repeat(16 * 1024)),
    ];
    all.into_iter().map(|(name, text)| (name, text.into_bytes())).collect()
}

/// Each time from the same start, so that the same letters come out.
fn made() -> (Vec<Made>, Vec<Made>) {
    let keyring = keyring(7);
    (accepted(&keyring), refused_ones(&keyring))
}

#[test]
fn known_inputs_are_judged_as_before() {
    replay(HOME, "policies", |policy| open(policy).is_some());
}

#[test]
fn the_corpus_is_what_its_maker_makes() {
    let (accepted, refused) = made();
    check_made(HOME, "policies", accepted, refused);
}

#[test]
#[ignore = "writes the corpus"]
fn makes_the_corpus() {
    let (accepted, refused) = made();
    write_made(HOME, "policies", accepted, refused);
}

fn address() -> S3Address {
    S3Address::from_url("s3://AKIAIOSFODNN7EXAMPLE:secret@s3.amazonaws.com/examplebucket").expect("an address")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn no_changed_policy_opens(seed in prop::sample::select(seeds(HOME, "policies")), edits in edits()) {
        let changed = edited(&seed, &edits);
        prop_assert_eq!(open(&changed).is_some(), changed == seed, "{}", String::from_utf8_lossy(&changed));
    }

    #[test]
    fn arbitrary_texts_are_no_policy(text in nasty_text(), letters in "[A-Za-z0-9+/_=-]{0,200}") {
        prop_assert!(open(text.as_bytes()).is_none() && open(letters.as_bytes()).is_none());
    }

    #[test]
    fn a_policy_says_what_it_was_made_for_and_for_one_file(content_type in nasty_text(), other in 2_u128..9) {
        let sealed = ticket(&content_type).seal(&KEYRING, file()).expect("sealed");
        prop_assert_eq!(open(sealed.as_bytes()).map(|ticket| ticket.content_type), Some(content_type));
        prop_assert!(UploadTicket::open(&KEYRING, FileId::from_u128(other), &sealed).is_err());
        prop_assert!(DownloadTicket::open(&KEYRING, file(), &sealed).is_err());
    }

    /// Whatever stands in a type or a name, the storage reads the eight conditions that were meant, and no further one.
    #[test]
    fn a_storages_policy_allows_what_was_meant_and_nothing_else(
        content_type in nasty_text(), key in nasty_text(), max_bytes in any::<u64>(), seconds in 0_i64..4_000_000_000,
    ) {
        let allowed = Allowed { key: &key, content_type: &content_type, max_bytes, lasts: Duration::from_mins(15) };
        let fields = address().form(&allowed, Timestamp::from_seconds(seconds)).expect("a form");
        let policy: Value = serde_json::from_slice(&STANDARD.decode(&fields["policy"]).expect("base64")).expect("JSON");
        prop_assert_eq!(policy.as_object().map(|members| members.len()), Some(2));
        let mut conditions = policy["conditions"].as_array().expect("a list").clone();
        let mut meant: Vec<Value> = fields.iter().filter(|(name, _)| !["policy", "x-amz-signature"].contains(name))
            .map(|(name, value)| json!({ *name: value })).collect();
        meant.extend([json!(["content-length-range", 0, max_bytes]), json!({ "bucket": "examplebucket" })]);
        conditions.sort_by_key(Value::to_string);
        meant.sort_by_key(Value::to_string);
        prop_assert_eq!(conditions, meant);
        prop_assert_eq!((&fields["key"], &fields["Content-Type"]), (&key, &content_type));
    }
}
