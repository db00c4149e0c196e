//! What the engine refuses, and what it does not say about it.

use kernel::{Clock, Entropy, Error};
use store::{EngineName, Limits, Migration, args, is_unique_violation, on_both_engines, testing::TestDb};

use super::on_postgres;
use crate::schema::{MIGRATIONS, add_entry, add_name, entries, names};

on_both_engines!(MIGRATIONS: sums_are_cast, errors_hold_no_values, a_read_cannot_write, arguments_are_counted);

/// What the log would say.
fn told(error: &Error) -> String {
    format!("{error:?}")
}

async fn sums_are_cast(test: TestDb) {
    test.db.write(|tx| add_entry(tx, 7)).await.expect("stored");
    let sum = test.db.read(|tx| tx.one::<(i64,)>("SELECT sum(id) FROM entries", &[])).await;
    match test.db.engine() {
        EngineName::Sqlite => assert_eq!(sum.expect("an integer"), (7,)),
        EngineName::Postgres => assert!(told(&sum.expect_err("refused")).contains("CAST it AS BIGINT")),
    }
}

async fn errors_hold_no_values(test: TestDb) {
    let secret = "s3cret-value";
    test.db.write(move |tx| add_name(tx, secret)).await.expect("stored");
    let error = test.db.write(move |tx| add_name(tx, secret)).await.expect_err("a duplicate");
    assert!(is_unique_violation(&error) && !told(&error).contains(secret), "{error:?}");
    let read_as_number = test.db.read(|tx| tx.one::<(i64,)>("SELECT CAST(name AS BIGINT) FROM names", &[])).await;
    if let Err(error) = read_as_number {
        assert!(told(&error).contains("22P02") && !told(&error).contains(secret), "{error:?}");
    }
    let wrong_type = test.db.exec_one("UPDATE names SET n = 1 WHERE name = $1", &args![secret.as_bytes()]).await;
    if let Err(error) = wrong_type {
        assert!(told(&error).contains("bytes was bound where PostgreSQL wants text"), "{error:?}");
    }
}

async fn a_read_cannot_write(test: TestDb) {
    const SLY: &str = "INSERT INTO names (name, n) VALUES ('sly', 0) RETURNING n";
    test.db.read(|tx| tx.one::<(i64,)>(SLY, &[])).await.expect_err("reads read");
    test.db.snapshot(|tx| tx.one::<(i64,)>(SLY, &[])).await.expect_err("snapshots read");
    test.db.scan(|tx| tx.one::<(i64,)>(SLY, &[])).await.expect_err("scans read");
    assert!(names(&test.db).await.is_empty());
}

async fn arguments_are_counted(test: TestDb) {
    const FIND: &str = "SELECT id FROM entries WHERE id = $1";
    let error = test.db.read(|tx| tx.opt::<(i64,)>(FIND, &args![1, 2])).await.expect_err("one too many");
    assert!(told(&error).contains("1 parameters but 2 arguments"), "{error:?}");
    let error = test.db.get_one::<(i64,)>(FIND, &[]).await.expect_err("one too few");
    assert!(told(&error).contains("1 parameters but 0 arguments"), "{error:?}");
}

#[test]
fn a_scan_takes_no_connection_from_writers() {
    on_postgres(async |_| {
        let limits = Limits { connections: 1, ..Limits::default() };
        let test = TestDb::with_limits(EngineName::Postgres, MIGRATIONS, Clock::system(), Entropy::os(), limits).await;
        let (wrote, has_written) = crossbeam_channel::bounded(1);
        let scan = tokio::spawn(test.db.scan(move |_| has_written.recv().map_err(Error::internal)));
        test.db.write(|tx| add_entry(tx, 1)).await.expect("stored while the scan goes on");
        wrote.send(()).expect("the scan waits");
        scan.await.expect("the caller lives").expect("scanned");
        assert_eq!(entries(&test.db).await, [1]);
    });
}

const BEFORE: &[Migration] = &[Migration::shared(1, "words", WORDS)];
const AFTER: &[Migration] =
    &[Migration::shared(1, "words", WORDS), Migration::shared(2, "more", "ALTER TABLE words ADD COLUMN more {int}")];
const WORDS: &str = "CREATE TABLE words (word {key} PRIMARY KEY, n {int} NOT NULL) {strict}";

on_both_engines!(BEFORE: statements_survive_a_migration);

/// A node goes on running while another one migrates: its prepared statements no longer fit.
async fn statements_survive_a_migration(test: TestDb) {
    const ALL: &str = "SELECT * FROM words";
    let limits = Limits { connections: 1, ..Limits::default() };
    let test = TestDb::with_limits(test.db.engine(), BEFORE, Clock::system(), Entropy::os(), limits).await;
    let other = test.another_node().await;
    for _ in 0..2 {
        other.write(|tx| tx.all::<(String, i64)>(ALL, &[])).await.expect("read in a transaction");
        other.read(|tx| tx.all::<(String, i64)>(ALL, &[])).await.expect("read");
        for _ in 0..2 {
            other.get_one::<(String, i64)>(ALL, &[]).await.expect("read on each shared connection");
        }
        test.db.migrate(AFTER).await.expect("the migrations apply");
    }
    other.close().await;
}
