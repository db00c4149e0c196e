use std::collections::{BTreeMap, HashMap};

use ::store::{Tx, args, on_both_engines, testing::TestDb};

use super::{counters::Counters, plan::Times, *};
use crate::{
    parameters::{ERASED, OTHER, ingest_digest},
    testing::{EARLIER, TABLES},
};

on_both_engines!(EARLIER: what_older_releases_kept_is_taken_over);
on_both_engines!(TABLES: first_times_are_exact_and_last_ones_at_most_ten_minutes_early);

const APP: AppId = AppId::from_u128(0x0196_f0b1_c2d3_7e4f_9abc_def0_1234_5678);
const HOUR: i64 = 3_600_000_000;
const FIVE: &str = "value \"5\"";
/// Digests were longer.
const KNOWN: &str = "0123456789abcdef-_WXYZ";

/// As older releases kept them.
fn store_counters(tx: &mut Tx<'_>) -> Result<()> {
    let insert = "INSERT INTO event_values (app_id, name_id, grain, starts_at, parameter_id, value, events) \
                  VALUES ($1, 1, 0, $2, $3, $4, $5)";
    for number in 0..1_000 {
        tx.run(insert, &args![APP, HOUR, 1, format!("value \"{number}\""), number])?;
    }
    tx.run(insert, &args![APP, HOUR, 1, OTHER, 77])?;
    tx.run(insert, &args![APP, HOUR, 1, ERASED, 3])?;
    tx.run(insert, &args![APP, HOUR, 2, "é", 1])?;
    tx.run(
        "INSERT INTO event_buckets (app_id, name_id, grain, starts_at, events) VALUES ($1, 1, 0, $2, 9)",
        &args![APP, HOUR],
    )?;
    tx.run("INSERT INTO event_names (app_id, name, id) VALUES ($1, 'order', 1)", &args![APP])?;
    let first = "INSERT INTO event_firsts (app_id, entity_digest, name_id, parameter_id, first_at, last_at) \
                 VALUES ($1, $2, 1, 1, $3, $4)";
    tx.run(first, &args![APP, KNOWN, HOUR, HOUR + 5])?;
    tx.run(first, &args![APP, "once", HOUR, HOUR])?;
    tx.run(first, &args![APP, "unknown", HOUR, None::<i64>])?;
    let ingested = "INSERT INTO event_ingest_ids (app_id, digest, happened_at) VALUES ($1, $2, $3)";
    tx.run(ingested, &args![APP, ingest_digest("order-7"), HOUR])
}

async fn what_older_releases_kept_is_taken_over(test: TestDb) {
    let db = test.db;
    db.write(store_counters).await.expect("stored");
    db.migrate(TABLES).await.expect("migrated");
    let parts = db.read(|tx| store::load_counters(tx, APP, &[(1, 0, HOUR)])).await.expect("counters").remove(0).1;
    let counts = |wanted: i64| -> BTreeMap<String, i64> {
        let of_parameter = parts.iter().filter(|(parameter, ..)| *parameter == wanted);
        of_parameter.flat_map(|(_, _, counts)| read_part(counts).expect("a part")).collect()
    };
    let mut expected: BTreeMap<String, i64> =
        (0..1_000).map(|number| (format!("value \"{number}\""), number)).collect();
    expected.extend([(OTHER.to_owned(), 77), (ERASED.to_owned(), 3)]);
    assert_eq!(counts(1), expected);
    assert_eq!(counts(2), BTreeMap::from([("é".to_owned(), 1)]));
    // What is counted afterwards finds its counter.
    let mut counters = Counters::default();
    for (_, part, counts) in parts.iter().filter(|(parameter, ..)| *parameter == 1) {
        counters.learn(*part, counts).expect("a part");
    }
    assert!(counters.count(FIVE) && counters.count("beyond the thousand"));
    let written = counters.written().expect("parts");
    let read = |counts: &str| BTreeMap::from_iter(read_part(counts).expect("a part"));
    let values = |part: usize| read(&written[part].1);
    assert_eq!((values(0)[OTHER], values(1)[FIVE], written.len()), (78, 6, 2));
    // So does an erasure.
    let part = written[1].0;
    let erase = move |tx: &mut Tx<'_>| {
        store::erase_counters(tx, APP, FIVE, &[((1, 0, HOUR), 1, part)], HashMap::from([(((1, 0, HOUR), 2), 4)]))
    };
    db.write(erase).await.expect("erased");
    let parts = db.read(|tx| store::load_counters(tx, APP, &[(1, 0, HOUR)])).await.expect("counters").remove(0).1;
    let counts: Vec<(i64, BTreeMap<String, i64>)> =
        parts.iter().map(|(parameter, _, counts)| (*parameter, read(counts))).collect();
    assert!(!counts.iter().any(|(_, counts)| counts.contains_key(FIVE)));
    let erased: Vec<_> = counts.iter().filter_map(|(of, counts)| Some((*of, *counts.get(ERASED)?))).collect();
    assert_eq!(erased, [(1, 8), (2, 4)]);
    let times = "SELECT entity_digest, last_at FROM event_firsts WHERE app_number = $1 ORDER BY entity_digest";
    let ask = move |tx: &mut Tx<'_>| tx.all::<(String, Option<i64>)>(times, &args![APP.number()]);
    let times = db.read(ask).await.expect("times");
    let expected = [(&KNOWN[..16], Some(HOUR + 5)), ("once", None), ("unknown", Some(2 * HOUR))];
    assert_eq!(times, expected.map(|(entity, last)| (entity.to_owned(), last)));
    let ids = "SELECT digest FROM event_ingest_ids WHERE app_number = $1";
    let ids = db.read(move |tx| tx.all::<(Vec<u8>,)>(ids, &args![APP.number()])).await.expect("digests");
    assert_eq!(ids, [(ingest_digest("order-7"),)]);
}

const MINUTE: i64 = 60_000_000;

/// What one fold says about an entity.
fn folded(first: i64, last: i64) -> HashMap<(String, i64), Times> {
    HashMap::from([(("entity".to_owned(), 1), Times { parameter: 1, first: first * MINUTE, last: last * MINUTE })])
}

async fn first_times_are_exact_and_last_ones_at_most_ten_minutes_early(test: TestDb) {
    let known = "SELECT first_at, coalesce(last_at, first_at) FROM event_firsts WHERE app_number = $1";
    // Minutes, in any order.
    let orders: [&[(i64, i64)]; 6] = [
        &[(100, 100), (109, 109), (118, 118), (119, 119)],
        &[(100, 100), (95, 95), (109, 109), (110, 110)],
        &[(100, 109), (108, 118), (50, 50), (119, 125)],
        &[(100, 100), (90, 111), (80, 80), (121, 121)],
        &[(100, 100), (100, 100), (110, 110), (111, 111)],
        &[(100, 200), (150, 209), (10, 10), (205, 210)],
    ];
    for (number, order) in (1..).zip(orders) {
        let app = AppId::from_u128(number);
        for (place, (first, last)) in order.iter().copied().enumerate() {
            test.db.write(move |tx| store::add_firsts(tx, app, &folded(first, last))).await.expect("added");
            let told = &order[..=place];
            let (first, last) = (told.iter().map(|(first, _)| *first).min(), told.iter().map(|(_, last)| *last).max());
            let read = test.db.read(move |tx| tx.one::<(i64, i64)>(known, &args![app.number()]));
            let (known_first, known_last) = read.await.expect("an entity");
            assert_eq!(Some(known_first / MINUTE), first, "{told:?}");
            let early = last.expect("a time") - known_last / MINUTE;
            assert!((0..=10).contains(&early), "{early} minutes too early after {told:?}");
        }
    }
}
