//! The ingest path: many callers, few statements, each caller answered for its own row.

use kernel::{Code, Result};
use store::{
    EngineName, Ingest, LONGEST_LIST, Limits, Tx, on_both_engines,
    testing::{self, TestDb},
};

use crate::schema::{MIGRATIONS, add_entry};

on_both_engines!(
    MIGRATIONS: many_rows_share_a_statement,
    a_bad_row_fails_alone,
    a_list_is_one_transaction,
    a_bad_row_of_a_list_fails_alone,
    a_list_is_bounded,
    a_flood_is_refused_and_holds_nobody_up,
);

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

fn list(ids: std::ops::Range<i64>) -> Vec<Entry> {
    ids.map(|id| Entry { id, shard: 1 }).collect()
}

async fn a_list_is_one_transaction(test: TestDb) {
    let ingestor = test.db.ingestor::<Entries>();
    let before = test.db.counters();
    let outcomes = ingestor.store_list(list(0..1_000)).await.expect("taken");
    let answers: Vec<i64> = outcomes.into_iter().map(|outcome| outcome.expect("stored")).collect();
    assert_eq!(answers, (0..1_000).collect::<Vec<_>>());
    let after = test.db.counters();
    assert_eq!((after.commits - before.commits, after.statements - before.statements), (1, 1));
    assert_eq!(stored_ids(&test).await, answers);
}

async fn a_bad_row_of_a_list_fails_alone(test: TestDb) {
    let ingestor = test.db.ingestor::<Entries>();
    let mut rows = list(0..300);
    for bad in [0, 7, 299] {
        rows[bad].shard = -1;
    }
    // Single rows and another list share its batches.
    let single = tokio::spawn({
        let ingestor = ingestor.clone();
        async move { ingestor.store(Entry { id: 1_000, shard: 1 }).await }
    });
    let (outcomes, other) = tokio::join!(ingestor.store_list(rows), ingestor.store_list(list(300..310)));
    assert_eq!(single.await.expect("the caller lives").expect("stored"), 1_000);
    assert!(other.expect("taken").iter().all(Result::is_ok));
    for (id, outcome) in (0..).zip(outcomes.expect("taken")) {
        match outcome {
            Ok(answer) => assert_eq!(answer, id),
            Err(error) => assert!([0, 7, 299].contains(&id), "{id}: {error:?}"),
        }
    }
    let good = (0..310).filter(|id| ![0, 7, 299].contains(id)).chain([1_000]);
    assert_eq!(stored_ids(&test).await, good.collect::<Vec<_>>());
}

async fn a_list_is_bounded(test: TestDb) {
    let ingestor = test.db.ingestor::<Entries>();
    assert!(ingestor.store_list(Vec::new()).await.expect("nothing to do").is_empty());
    let longest = i64::try_from(LONGEST_LIST).expect("small");
    assert_eq!(ingestor.store_list(list(0..longest + 1)).await.expect_err("too long").code(), Code::Internal);
    assert!(stored_ids(&test).await.is_empty());
}

async fn a_flood_is_refused_and_holds_nobody_up(test: TestDb) {
    let ingestor = test.db.ingestor::<Entries>();
    let calls: Vec<_> = (0..40)
        .map(|call| {
            let ingestor = ingestor.clone();
            tokio::spawn(async move { ingestor.store_list(list(call * 1_000..(call + 1) * 1_000)).await })
        })
        .collect();
    while test.db.counters().writes == 0 {
        tokio::task::yield_now().await;
    }
    test.db.write(|tx| add_entry(tx, 1_000_000)).await.expect("an ordinary write");
    let waiting = calls.iter().filter(|call| !call.is_finished()).count();
    assert!(waiting > 0, "it came after the flood");
    let (mut stored, mut refused) = (1, 0);
    for call in calls {
        match call.await.expect("the caller lives") {
            Ok(outcomes) => {
                assert!(outcomes.iter().all(Result::is_ok));
                stored += outcomes.len();
            }
            Err(error) => {
                assert_eq!(error.code(), Code::Overloaded);
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "40,000 rows were taken at once");
    assert_eq!(stored_ids(&test).await.len(), stored);
}

/// Rows of one of several kinds, whose storing waits for a gate.
struct Gated<const KIND: usize>;

impl<const KIND: usize> Ingest for Gated<KIND> {
    type Row = (i64, crossbeam_channel::Receiver<()>);
    type Answer = ();

    fn store(tx: &mut Tx<'_>, rows: &[Self::Row]) -> Result<Vec<()>> {
        // Until the gate is dropped.
        let _ = rows[0].1.recv();
        rows.iter().map(|(id, _)| add_entry(tx, *id)).collect()
    }
}

/// Ten lanes and more want a connection thread, and there are four.
#[test]
fn half_of_the_connection_threads_stay_free() {
    testing::run(EngineName::Postgres, MIGRATIONS, async |test| {
        let limits = Limits { connections: 4, ..Limits::default() };
        let (clock, entropy) = (kernel::Clock::system(), kernel::Entropy::os());
        let test = TestDb::with_limits(test.db.engine(), MIGRATIONS, clock, entropy, limits).await;
        let db = &test.db;
        let (gate, closed) = crossbeam_channel::bounded::<()>(0);
        let kinds = (db.ingestor::<Gated<0>>(), db.ingestor::<Gated<1>>(), db.ingestor::<Gated<2>>());
        let mut calls = Vec::new();
        for id in 0..100 {
            let (kinds, closed) = ((kinds.0.clone(), kinds.1.clone(), kinds.2.clone()), closed.clone());
            calls.push(tokio::spawn(async move {
                match id % 3 {
                    0 => kinds.0.store((id, closed)).await,
                    1 => kinds.1.store((id, closed)).await,
                    _ => kinds.2.store((id, closed)).await,
                }
            }));
            tokio::task::yield_now().await;
        }
        for id in 100..120 {
            db.write(move |tx| add_entry(tx, id)).await.expect("an ordinary write goes through");
            assert!(stored_ids(&test).await.contains(&id), "and a read");
        }
        assert!(calls.iter().all(|call| !call.is_finished()), "the gate was closed");
        drop(gate);
        for call in calls {
            call.await.expect("the caller lives").expect("stored");
        }
        assert_eq!(stored_ids(&test).await, (0..120).collect::<Vec<_>>());
    });
}

#[test]
fn a_batch_that_takes_long_is_overtaken() {
    testing::run(EngineName::Postgres, MIGRATIONS, async |test| {
        let ingestor = test.db.ingestor::<Gated<0>>();
        let (gate, closed) = crossbeam_channel::bounded::<()>(0);
        let slow = tokio::spawn({
            let ingestor = ingestor.clone();
            async move { ingestor.store((1, closed)).await }
        });
        while test.db.pool_in_use() == 0 {
            tokio::task::yield_now().await;
        }
        let (_, open) = crossbeam_channel::bounded::<()>(0);
        ingestor.store((2, open)).await.expect("stored meanwhile");
        assert_eq!((stored_ids(&test).await, slow.is_finished()), (vec![2], false));
        drop(gate);
        slow.await.expect("the caller lives").expect("stored");
        assert_eq!(stored_ids(&test).await, [1, 2]);
    });
}
