//! The ingest path: many callers, few statements, each caller answered for its own row.

use kernel::Result;
use store::{Ingest, Tx, on_both_engines, testing::TestDb};

use crate::schema::MIGRATIONS;

on_both_engines!(MIGRATIONS: many_rows_share_a_statement, a_bad_row_fails_alone);

struct Entries;

struct Entry {
    id: i64,
    shard: i64,
}

impl Ingest for Entries {
    type Row = Entry;
    type Answer = i64;

    fn store(tx: &mut Tx<'_>, rows: &[Entry]) -> Result<Vec<i64>> {
        let values: Vec<_> = rows.iter().map(|row| (row.id, row.shard)).collect();
        let stored: Vec<(i64,)> = tx.insert_all_returning(
            "INSERT INTO entries (id, shard) SELECT id, shard FROM {rows} WHERE true RETURNING id",
            ["id", "shard"],
            &values,
        )?;
        assert_eq!(stored.len(), rows.len());
        Ok(rows.iter().map(|row| row.id).collect())
    }
}

async fn stored_ids(test: &TestDb) -> Vec<i64> {
    let ids = test.db.read(|tx| tx.all::<(i64,)>("SELECT id FROM entries ORDER BY id", &[])).await;
    ids.expect("readable").into_iter().map(|(id,)| id).collect()
}

async fn many_rows_share_a_statement(test: TestDb) {
    let ingestor = test.db.ingestor::<Entries>();
    let before = test.db.counters();
    let callers: Vec<_> = (0..256)
        .map(|caller| {
            let ingestor = ingestor.clone();
            tokio::spawn(async move {
                for id in caller * 40..(caller + 1) * 40 {
                    assert_eq!(ingestor.store(Entry { id, shard: 1 }).await.expect("stored"), id);
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("each caller got its own answer");
    }
    let statements = test.db.counters().statements - before.statements;
    println!("{} rows in {statements} statements", 256 * 40);
    assert!(statements * 16 <= 256 * 40, "{statements} statements");
    assert_eq!(stored_ids(&test).await, (0..256 * 40).collect::<Vec<_>>());
}

async fn a_bad_row_fails_alone(test: TestDb) {
    let ingestor = test.db.ingestor::<Entries>();
    let is_bad = |id: i64| id % 100 == 37;
    let callers: Vec<_> = (0..1_000)
        .map(|id| {
            let ingestor = ingestor.clone();
            let shard = if is_bad(id) { -1 } else { 1 };
            (id, tokio::spawn(async move { ingestor.store(Entry { id, shard }).await }))
        })
        .collect();
    for (id, caller) in callers {
        match caller.await.expect("the caller lives") {
            Ok(answer) => assert!(answer == id && !is_bad(id), "{id} was answered {answer}"),
            Err(error) => assert!(is_bad(id), "{id}: {error:?}"),
        }
    }
    assert_eq!(stored_ids(&test).await, (0..1_000).filter(|id| !is_bad(*id)).collect::<Vec<_>>());
}
