//! Migrations: applied once, in order, whole or not at all; foreign schemas are refused in words.

use kernel::Code;
use store::{Migration, args, on_both_engines, testing::TestDb};

const NONE: &[Migration] = &[];
const FIRST: Migration = Migration::shared(1, "first", "CREATE TABLE a (id {key} PRIMARY KEY) {strict};");
const SECOND: Migration = Migration::per_engine(
    2,
    "second",
    "CREATE TABLE b (id INTEGER PRIMARY KEY) STRICT;",
    "CREATE TABLE b (id BIGINT PRIMARY KEY);",
);
const THIRD: Migration = Migration::shared(
    3,
    "third",
    "CREATE TABLE c (id {int} PRIMARY KEY, yes {bool} NOT NULL, data {bytes}, ratio {real}, name {key}) {strict};",
);
const TWO: &[Migration] = &[FIRST, SECOND];
const THREE: &[Migration] = &[FIRST, SECOND, THIRD];
const ALTERED: &[Migration] =
    &[Migration::shared(1, "first", "CREATE TABLE a (id {key} PRIMARY KEY, more TEXT) {strict};"), SECOND];
const BROKEN: &[Migration] =
    &[FIRST, Migration::shared(2, "broken", "CREATE TABLE half (id {int}) {strict}; CREATE TABLE a (id {int});")];

on_both_engines!(NONE:
    nodes_that_start_together_apply_each_step_once,
    only_what_is_missing_is_applied,
    a_newer_schema_is_refused,
    an_altered_step_is_refused,
    a_step_that_fails_leaves_nothing,
    tokens_name_the_same_types_on_both_engines,
    whoever_measured_by_hand_can_start_again,
);

async fn nodes_that_start_together_apply_each_step_once(test: TestDb) {
    let other = test.another_node().await;
    let (one, two) = tokio::join!(test.db.migrate(THREE), other.migrate(THREE));
    let (one, two) = (one.expect("applies"), two.expect("applies"));
    let mut applied = [one.applied, two.applied].concat();
    applied.sort_unstable();
    assert_eq!(applied, [1, 2, 3]);
    assert!(test.db.is_migrated(THREE).await.expect("readable"));
    other.close().await;
}

async fn only_what_is_missing_is_applied(test: TestDb) {
    let report = test.db.migrate(TWO).await.expect("applies");
    assert!(report.was_empty && report.applied == [1, 2], "{report:?}");
    assert!(!test.db.is_migrated(THREE).await.expect("readable"));
    let report = test.db.migrate(THREE).await.expect("applies");
    assert!(!report.was_empty && report.applied == [3], "{report:?}");
    assert!(test.db.migrate(THREE).await.expect("applies").applied.is_empty());
}

async fn a_newer_schema_is_refused(test: TestDb) {
    test.db.migrate(THREE).await.expect("applies");
    let error = test.db.migrate(TWO).await.expect_err("refused");
    assert_eq!(error.code(), Code::StorageUnavailable);
    assert!(error.public().contains("migration 3 (third)") && error.public().contains("newer release"), "{error}");
}

async fn an_altered_step_is_refused(test: TestDb) {
    test.db.migrate(TWO).await.expect("applies");
    let error = test.db.migrate(ALTERED).await.expect_err("refused");
    assert_eq!(error.code(), Code::StorageUnavailable);
    assert!(error.public().contains("Migration 1 (first)") && error.public().contains("differs"), "{error}");
}

async fn a_step_that_fails_leaves_nothing(test: TestDb) {
    let error = test.db.migrate(BROKEN).await.expect_err("table a exists");
    assert!(format!("{error:?}").contains("migration 2 (broken)"), "{error:?}");
    assert_eq!(test.db.migrate(TWO).await.expect("the first step stands").applied, [2]);
    let half = test.db.read(|tx| tx.all::<(i64,)>("SELECT id FROM half", &[])).await;
    assert!(half.is_err(), "half a step was kept");
}

async fn tokens_name_the_same_types_on_both_engines(test: TestDb) {
    test.db.migrate(THREE).await.expect("applies");
    let outcome = test.db.write(|tx| {
        for (id, name) in ["b", "B", "ä", "a", "Z"].into_iter().enumerate() {
            tx.exec(
                "INSERT INTO c (id, yes, data, ratio, name) VALUES ($1, $2, $3, $4, $5)",
                &args![id as i64 - 2, id % 2 == 0, vec![0_u8, 255], 0.5, name],
            )?;
        }
        tx.all::<(i64, bool, Vec<u8>, f64, String)>("SELECT id, yes, data, ratio, name FROM c ORDER BY name", &[])
    });
    let rows = outcome.await.expect("stored");
    // Keys sort by bytes.
    assert_eq!(rows.iter().map(|row| row.4.as_str()).collect::<Vec<_>>(), ["B", "Z", "a", "b", "ä"]);
    assert_eq!(rows[0], (-1, false, vec![0, 255], 0.5, "B".to_owned()));
    let wrong = test.db.write(|tx| tx.exec("INSERT INTO c (id, yes) VALUES ($1, TRUE)", &args!["no number"]));
    assert!(wrong.await.is_err(), "a text in an integer column is refused on both");
}

/// SQLite is told what to expect of its tables, and forgets what somebody with a shell let it measure.
async fn whoever_measured_by_hand_can_start_again(test: TestDb) {
    test.db.migrate(THREE).await.expect("applies");
    let measured = test.db.write(|tx| {
        tx.run("INSERT INTO b (id) VALUES (1), (2), (3)", &args![])?;
        tx.run("ANALYZE", &args![])
    });
    measured.await.expect("anybody may");
    assert!(test.db.migrate(THREE).await.expect("applies").applied.is_empty());
}
