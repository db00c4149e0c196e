use kernel::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

use super::{super::KeptEvent, Block, MOST_COLUMNS, encode, maker::event};
use crate::{LoggedEventId, parameters::equals};

fn block(events: &[KeptEvent]) -> Block {
    Block::open(encode(events).expect("a block")).expect("a block")
}

#[test]
fn what_is_written_reads_back() {
    let events = [
        json!({}),
        json!({ "b": 1, "a": "x" }),
        json!({ "a": "y", "b": 1.0, "c": null }),
        json!({ "a": [1, { "deep": true }], "b": -0.0, "c": u64::MAX }),
        json!({ "a": true, "b": "1", "c": i64::MIN, "": "empty", "dotted.name": 1e300 }),
        json!({ "a": "", "b": "ünï\u{0}cödé \"quoted\"" }),
    ];
    let events: Vec<KeptEvent> = events.iter().zip(0..).map(|(parameters, number)| event(number, parameters)).collect();
    assert_eq!(block(&events).events(7).expect("events"), events);
    assert_eq!(block(&events[..1]).events(7).expect("events"), events[..1]);
}

#[test]
fn columns_are_bounded_and_what_has_none_is_found_all_the_same() {
    let parameters = |number: u32| json!({ format!("only{number}"): number, "common": "x" });
    let events: Vec<KeptEvent> = (0..1_000).map(|number| event(number.into(), &parameters(number))).collect();
    let block = block(&events);
    assert!(block.parameters.len() <= MOST_COLUMNS);
    assert_eq!(block.events(7).expect("events"), events);
    for number in [0, 999] {
        let fits = block.matching(&format!("only{number}"), &json!(number)).expect("a column");
        assert_eq!(fits.iter().filter(|fits| **fits).count(), 1, "{number}");
        assert_eq!(block.addends(&format!("only{number}")).expect("a column").iter().sum::<f64>(), f64::from(number));
    }
    assert!(block.matching("common", &json!("x")).expect("a column").iter().all(|fits| *fits));
}

#[test]
fn texts_that_are_too_many_for_a_dictionary_are_found_too() {
    let text = |number: u32| format!("{number:08}").repeat(1_000);
    let parameters = |number: u32| if number.is_multiple_of(3) { json!({}) } else { json!({ "long": text(number) }) };
    let events: Vec<KeptEvent> = (0..400).map(|number| event(number.into(), &parameters(number))).collect();
    let block = block(&events);
    for number in [1, 200, 398] {
        let fits = block.matching("long", &json!(text(number))).expect("a column");
        let found: Vec<usize> = fits.iter().enumerate().filter(|(_, fits)| **fits).map(|(row, _)| row).collect();
        assert_eq!(found, [number as usize]);
    }
}

#[test]
fn a_block_that_is_cut_off_anywhere_does_not_open() {
    let events: Vec<KeptEvent> =
        (0..50).map(|number| event(number, &json!({ "userId": format!("u{}", number % 7), "n": 1.5 }))).collect();
    let whole = encode(&events).expect("a block");
    for length in 0..whole.len() {
        assert!(Block::open(whole[..length].to_vec()).is_err(), "{length}");
    }
}

/// A digest tells before that a block is damaged; this is for one that somebody made.
#[test]
fn a_block_with_wrong_bytes_is_an_error_or_other_events() {
    let events: Vec<KeptEvent> =
        (0..20).map(|number| event(number, &json!({ "userId": format!("u{}", number % 7), "n": 1.5 }))).collect();
    let whole = encode(&events).expect("a block");
    let mut errors = 0;
    for place in 0..whole.len() {
        for flipped in [0x01, 0x80, 0xFF] {
            let mut wrong = whole.clone();
            wrong[place] ^= flipped;
            errors += usize::from(Block::open(wrong).and_then(|block| block.events(7)).is_err());
        }
    }
    assert!(errors > whole.len(), "most of it is noticed: {errors} of {}", 3 * whole.len());
}

/// What a million such events take.
#[test]
#[ignore = "prints figures"]
fn how_large_blocks_are() {
    for count in [256_u32, 2_048, 4_096] {
        let parameters = |number: u32| {
            json!({
                "userId": format!("user_{}", number.wrapping_mul(2_654_435_761) % 5_000),
                "orderId": number,
                "plan": if number.wrapping_mul(40_503).is_multiple_of(3) { "pro" } else { "free" },
                "amount": f64::from(number.wrapping_mul(2_654_435_761) % 10_000) / 100.0,
                "country": format!("c{}", number.wrapping_mul(7_919) % 4),
                "ok": !number.is_multiple_of(7),
            })
        };
        let random = |number: u32| u128::from(number.wrapping_mul(2_654_435_761)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let events: Vec<KeptEvent> = (0..count)
            .map(|number| KeptEvent {
                id: LoggedEventId::from_u128((u128::from(number) << 80) | (random(number) & ((1 << 74) - 1))),
                at: Timestamp::from_micros(1_771_545_600_000_000 + i64::from(number) * 37_000),
                ingested_at: Timestamp::from_micros(1_771_545_600_100_000 + i64::from(number / 10) * 370_000),
                source: None,
                ingest_id: Some(format!("order-{number}")),
                audited: true,
                revision: None,
                ..event(1, &parameters(number))
            })
            .collect();
        let begun = kernel::Ticker.now();
        let bytes = encode(&events).expect("a block");
        let wrote = kernel::Ticker.since(begun);
        let opened = Block::open(bytes.clone()).expect("a block");
        let begun = kernel::Ticker.now();
        let fits = opened.matching("plan", &json!("pro")).expect("a column").iter().filter(|fits| **fits).count();
        let sum: f64 = opened.addends("amount").expect("a column").iter().sum();
        let times = opened.times().expect("times").len();
        let asked = kernel::Ticker.since(begun);
        let begun = kernel::Ticker.now();
        let all = opened.events(1).expect("events").len();
        let read = kernel::Ticker.since(begun);
        println!(
            "{count}: {:.1} bytes an event, written in {wrote:?}, asked in {asked:?} ({fits} {sum} {times}), read in {read:?} ({all})",
            bytes.len() as f64 / f64::from(count)
        );
    }
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[a-c]{0,2}".prop_map(Value::String),
        (-3..3_i64).prop_map(|number| json!(number)),
        (-3..3_i64).prop_map(|number| json!(number as f64 / 2.0)),
        any::<f64>().prop_filter_map("finite", |number| Number::from_f64(number).map(Value::Number)),
        any::<u64>().prop_map(|number| json!(number)),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Null),
        Just(json!([1, "a"])),
    ]
}

fn parameters() -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::vec(("[a-e]", value()), 0..5).prop_map(|pairs| pairs.into_iter().collect())
}

proptest! {
    /// Whatever is asked of columns is what the events say.
    #[test]
    fn columns_say_what_the_events_say(
        all in proptest::collection::vec(parameters(), 1..60),
        wanted in value(),
    ) {
        let events: Vec<KeptEvent> =
            all.iter().zip(0..).map(|(parameters, number)| event(number, &Value::Object(parameters.clone()))).collect();
        let block = block(&events);
        prop_assert_eq!(&block.events(7).expect("events"), &events);
        prop_assert_eq!(&block.parameters().expect("parameters"), &all);
        for name in ["a", "b", "z"] {
            let expected: Vec<bool> =
                all.iter().map(|event| event.get(name).is_some_and(|found| equals(&wanted, found))).collect();
            prop_assert_eq!(block.matching(name, &wanted).expect("a column"), expected);
            let expected: Vec<f64> =
                all.iter().map(|event| event.get(name).map_or(0.0, crate::parameters::addend)).collect();
            prop_assert_eq!(block.addends(name).expect("a column"), expected);
        }
    }
}
