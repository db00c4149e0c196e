//! Positions: dense, in order, and never passed by a reader before they are visible.

use std::sync::{Arc, Mutex, mpsc};

use kernel::{Code, Entropy, Error};
use spine::{News, Outbox, Reader, Runner, outbox};
use store::{Db, EngineName, Limits, Options, on_both_engines, testing::TestDb};

use crate::{MIGRATIONS, facts::write, see, seen, soon};

const WRITERS: usize = 16;
const ROUNDS: usize = 25;

/// A node with one consumer.
async fn node(db: &Db, consumer: &'static str) -> Runner {
    let runner = Runner::new();
    let mut outbox = Outbox::new(db.clone());
    outbox.consume(Reader::of_all(consumer), move |tx, fact| see(tx, consumer, fact));
    outbox.open(&runner).await.unwrap();
    runner
}

fn ordered(count: usize) -> Vec<i64> {
    (1..=i64::try_from(count).unwrap()).collect()
}

/// Enough connections for all writers to be inside a transaction at once.
async fn wide(test: &TestDb) -> Db {
    match test.db.engine() {
        EngineName::Sqlite => test.db.clone(),
        EngineName::Postgres => Db::open(Options {
            url: test.url.clone(),
            clock: test.db.clock().clone(),
            entropy: Entropy::os(),
            limits: Limits { connections: WRITERS, ..Limits::default() },
        })
        .await
        .unwrap(),
    }
}

/// Sixteen writers pause at random before they commit, some roll back; two nodes read meanwhile.
async fn every_consumer_sees_every_fact_once_and_in_order(test: TestDb) {
    let (one, other) = (node(&test.db, "one").await, node(&test.another_node().await, "other").await);
    let writers_db = wide(&test).await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let db = writers_db.clone();
            tokio::spawn(async move {
                let mut committed = 0;
                for round in 0..ROUNDS {
                    let [pause, chance] = db.entropy().bytes();
                    let facts = 1 + usize::from(chance % 3);
                    let rolled_back = chance > 200;
                    let outcome = db.write(move |tx| {
                        for number in 0..facts {
                            write(tx, (writer * 1000 + round * 10 + number) as i64)?;
                        }
                        (0..u32::from(pause)).for_each(|_| std::thread::yield_now());
                        if rolled_back { Err(Error::new(Code::Conflict, "rolled back")) } else { Ok(()) }
                    });
                    assert_eq!(outcome.await.is_err(), rolled_back);
                    committed += if rolled_back { 0 } else { facts };
                }
                committed
            })
        })
        .collect();
    let mut committed = 0;
    for writer in writers {
        while !writer.is_finished() {
            let (a, b) = tokio::join!(one.drain(), other.drain());
            a.and(b).unwrap();
        }
        committed += writer.await.unwrap();
    }
    let (a, b) = tokio::join!(one.drain(), other.drain());
    a.and(b).unwrap();
    assert_eq!(seen(&test.db, "one").await, ordered(committed));
    assert_eq!(seen(&test.db, "other").await, ordered(committed));
}

/// Two nodes run the same consumer while facts arrive.
async fn two_nodes_never_handle_a_fact_twice(test: TestDb) {
    let other_db = test.another_node().await;
    let (one, other) = (node(&test.db, "shared").await, node(&other_db, "shared").await);
    for round in 0..20 {
        for _ in 0..10 {
            test.db.write(move |tx| write(tx, round)).await.unwrap();
        }
        let (a, b) = tokio::join!(one.drain(), other.drain());
        a.and(b).unwrap();
    }
    let (a, b) = tokio::join!(one.drain(), other.drain());
    a.and(b).unwrap();
    assert_eq!(seen(&test.db, "shared").await, ordered(200));
}

/// The started loops do the same without being asked.
async fn started_runners_share_the_work(test: TestDb) {
    let other_db = test.another_node().await;
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let runners = [Runner::new(), Runner::new()];
    for (runner, db) in runners.iter().zip([&test.db, &other_db]) {
        let mut outbox = Outbox::new(db.clone());
        let told = told.clone();
        outbox.consume(Reader::of_all("shared"), move |tx, fact| {
            let told = told.clone();
            tx.on_commit(move || told.send(()).unwrap());
            see(tx, "shared", fact)
        });
        outbox.open(runner).await.unwrap();
        runner.start();
    }
    for number in 0..100 {
        test.db.write(move |tx| write(tx, number)).await.unwrap();
    }
    for _ in 0..100 {
        soon("a fact is handled", heard.recv()).await;
    }
    for runner in runners {
        runner.stop(std::time::Duration::from_secs(10)).await;
    }
    assert_eq!(seen(&test.db, "shared").await, ordered(100));
}

/// A node dies after its commit: nobody rings, nobody notifies. The others find the fact by looking.
async fn a_fact_without_a_wake_up_is_found_by_polling(test: TestDb) {
    let runner = Runner::new();
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let mut outbox = Outbox::new(test.another_node().await);
    outbox.follow(Reader::of_all("test"), move |news| {
        if let News::Fact(fact) = news {
            told.send(fact.kind.clone()).unwrap();
        }
    });
    outbox.open(&runner).await.unwrap();
    runner.start();
    let sql = "INSERT INTO outbox (id, kind, payload, created_at, recorded_at) \
               VALUES ('fact_00000000000000000000000000', 'quiet', 'null', 0, {db_now})";
    test.db.exec_one(sql, &[]).await.unwrap();
    assert_eq!(soon("the fact is heard", heard.recv()).await.as_deref(), Some("quiet"));
    runner.stop(std::time::Duration::from_secs(10)).await;
}

/// The facts' positions and their content, a number.
async fn numbered(db: &Db) -> Vec<(i64, i64)> {
    let sql = "SELECT position, CAST(payload AS BIGINT) FROM outbox ORDER BY position";
    db.read(move |tx| tx.all(sql, &[])).await.unwrap()
}

/// The sequencer's statements run on SQLite too, where the trigger has left them nothing.
async fn numbering_is_complete(test: TestDb) {
    test.db.write(|tx| (0..3).try_for_each(|n| write(tx, n))).await.unwrap();
    test.db.write(outbox::number).await.unwrap();
    assert_eq!(test.db.write(outbox::number).await.unwrap(), 0);
    assert_eq!(numbered(&test.db).await, [(1, 0), (2, 1), (3, 2)]);
}

/// What commits late is numbered late: a reader that has passed the others still gets it. PostgreSQL only, since on
/// SQLite a writer that waits keeps all others out.
async fn slow_and_quick(test: TestDb) {
    let runner = node(&test.db, "one").await;
    let (inside, entered) = mpsc::channel();
    let (go, wait) = mpsc::channel();
    let gates = Arc::new(Mutex::new((inside, wait)));
    let slow = test.db.write(move |tx| {
        write(tx, 10)?;
        let gates = gates.lock().unwrap();
        gates.0.send(()).unwrap();
        gates.1.recv().unwrap();
        Ok(())
    });
    tokio::task::block_in_place(|| entered.recv().unwrap());
    test.db.write(|tx| write(tx, 20)).await.unwrap();
    runner.drain().await.unwrap();
    assert_eq!(seen(&test.db, "one").await, [1]);
    go.send(()).unwrap();
    slow.await.unwrap();
    runner.drain().await.unwrap();
    assert_eq!(seen(&test.db, "one").await, [1, 2]);
    assert_eq!(numbered(&test.db).await, [(1, 20), (2, 10)]);
}

#[test]
fn a_slow_transaction_is_not_passed_over() {
    store::testing::run(EngineName::Postgres, MIGRATIONS, slow_and_quick);
}

/// A node is in the middle of a fact, and no lease tells of it. PostgreSQL only, for the same reason.
async fn busy_and_idle(test: TestDb) {
    let (inside, entered) = mpsc::channel();
    let (go, wait) = mpsc::channel();
    let gates = Mutex::new((inside, wait));
    let (busy, idle) = (Runner::new(), node(&test.another_node().await, "shared").await);
    let mut outbox = Outbox::new(test.db.clone());
    outbox.consume(Reader::of_all("shared"), move |tx, fact| {
        let gates = gates.lock().unwrap();
        gates.0.send(()).unwrap();
        gates.1.recv().unwrap();
        see(tx, "shared", fact)
    });
    outbox.open(&busy).await.unwrap();
    test.db.write(|tx| write(tx, 1)).await.unwrap();
    let at_work = tokio::spawn(async move { busy.drain().await });
    tokio::task::block_in_place(|| entered.recv().unwrap());
    soon("the idle node passes by", idle.drain()).await.unwrap();
    assert!(seen(&test.db, "shared").await.is_empty());
    go.send(()).unwrap();
    at_work.await.unwrap().unwrap();
    assert_eq!(seen(&test.db, "shared").await, [1]);
}

#[test]
fn a_fact_in_hand_is_left_to_its_node() {
    store::testing::run(EngineName::Postgres, MIGRATIONS, busy_and_idle);
}

on_both_engines!(
    MIGRATIONS: every_consumer_sees_every_fact_once_and_in_order,
    two_nodes_never_handle_a_fact_twice,
    started_runners_share_the_work,
    a_fact_without_a_wake_up_is_found_by_polling,
    numbering_is_complete,
);
