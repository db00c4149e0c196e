//! Consumers that fail, followers that fall behind, and what may be trimmed.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kernel::{AppId, Code, Error, TenantId};
use serde::{Deserialize, Serialize};
use serde_json::json;
use spine::{FactKind, NewFact, News, Outbox, Runner, emit, outbox};
use store::{Db, Tx, args, on_both_engines, testing::TestDb};

use crate::{MIGRATIONS, see, seen};

async fn emit_kinds(db: &Db, kinds: &'static [&'static str]) {
    db.write(move |tx| kinds.iter().try_for_each(|kind| emit(tx, &NewFact::new(*kind, json!({}))).map(|_| ())))
        .await
        .unwrap();
}

/// Writes first and fails then, so that a write left behind would show.
fn see_unless_bad(tx: &mut Tx<'_>, consumer: &str, fact: &spine::Fact) -> kernel::Result<()> {
    see(tx, consumer, fact)?;
    match fact.kind.as_str() {
        "bad" => Err(Error::new(Code::Conflict, "this fact is bad")),
        "dreadful" => panic!("this fact is dreadful"),
        "broken" => tx.exec("INSERT INTO things (id, live) VALUES ('x', NULL)", &[]).map(|_| ()),
        _ => Ok(()),
    }
}

async fn consumer(db: &Db, name: &'static str) -> Runner {
    let runner = Runner::new();
    let mut outbox = Outbox::new(db.clone());
    outbox.consume(name, move |tx, fact| see_unless_bad(tx, name, fact));
    outbox.open(&runner).await.unwrap();
    runner
}

/// Moves the clock to each instant at which something is due until nothing is left.
async fn settle(db: &Db, runner: &Runner) -> usize {
    let mut steps = 0;
    runner.drain().await.unwrap();
    while let Some(due) = runner.next_due().await.unwrap() {
        assert!(due > db.clock().now(), "drain left something that is due");
        db.clock().advance_to(due);
        runner.drain().await.unwrap();
        steps += 1;
    }
    steps
}

async fn a_failing_fact_is_parked_after_ten_attempts(test: TestDb) {
    let runner = consumer(&test.db, "picky").await;
    emit_kinds(&test.db, &["good", "bad", "good", "dreadful", "broken", "good"]).await;
    runner.drain().await.unwrap();
    assert_eq!(seen(&test.db, "picky").await, [1], "what came before the failure is kept, of the failure nothing");
    assert_eq!(settle(&test.db, &runner).await, 27, "three facts, nine pauses each");
    assert_eq!(seen(&test.db, "picky").await, [1, 3, 6]);
    let parked = test.db.read(|tx| outbox::parked(tx, 10)).await.unwrap();
    let summary: Vec<_> = parked.iter().rev().map(|fact| (fact.position, fact.kind.as_str(), fact.attempts)).collect();
    assert_eq!(summary, [(2, "bad", 10), (4, "dreadful", 10), (5, "broken", 10)]);
    assert!(parked[2].error.contains("this fact is bad"), "{}", parked[2].error);
}

async fn a_consumer_of_some_kinds_passes_over_the_others(test: TestDb) {
    let runner = Runner::new();
    let mut outbox = Outbox::new(test.db.clone());
    outbox.consume_only("choosy", &["good", "bad"], |tx, fact| see_unless_bad(tx, "choosy", fact));
    outbox.open(&runner).await.unwrap();
    emit_kinds(&test.db, &["dreadful", "dreadful"]).await;
    assert_eq!(runner.next_due().await.unwrap(), None, "nothing that it waits for");
    emit_kinds(&test.db, &["good", "dreadful", "bad", "good"]).await;
    assert_eq!(settle(&test.db, &runner).await, 9, "the pauses of one fact");
    assert_eq!(seen(&test.db, "choosy").await, [3, 6]);
}

async fn a_fact_that_succeeds_at_last_is_not_parked(test: TestDb) {
    let failures = Arc::new(AtomicUsize::new(9));
    let runner = Runner::new();
    let mut outbox = Outbox::new(test.db.clone());
    let left = failures.clone();
    outbox.consume("late", move |tx, fact| {
        see(tx, "late", fact)?;
        let failing = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if failing { Err(Error::internal("not yet")) } else { Ok(()) }
    });
    outbox.open(&runner).await.unwrap();
    emit_kinds(&test.db, &["good", "good"]).await;
    assert_eq!(settle(&test.db, &runner).await, 9);
    assert_eq!(seen(&test.db, "late").await, [1, 2]);
    assert!(test.db.read(|tx| outbox::parked(tx, 10)).await.unwrap().is_empty());
}

async fn positions(db: &Db) -> Vec<i64> {
    let sql = "SELECT position FROM outbox ORDER BY position";
    let rows: Vec<(i64,)> = db.read(move |tx| tx.all(sql, &[])).await.unwrap();
    rows.into_iter().map(|(position,)| position).collect()
}

async fn only_old_facts_that_all_consumers_passed_are_trimmed(test: TestDb) {
    let quick = consumer(&test.db, "quick").await;
    let mut slow = Outbox::new(test.db.clone());
    slow.consume("slow", |tx, fact| see_unless_bad(tx, "slow", fact));
    let slow_runner = Runner::new();
    slow.open(&slow_runner).await.unwrap();
    emit_kinds(&test.db, &["good", "good", "bad", "good"]).await;
    slow_runner.drain().await.unwrap();
    quick.drain().await.unwrap();
    assert_eq!(test.db.write(|tx| outbox::trim(tx, outbox::RETENTION)).await.unwrap(), 0, "too young");
    assert_eq!(test.db.write(|tx| outbox::trim(tx, Duration::ZERO)).await.unwrap(), 2);
    assert_eq!(positions(&test.db).await, [3, 4], "both consumers still stand before the bad one");
    settle(&test.db, &slow_runner).await;
    settle(&test.db, &quick).await;
    assert_eq!(test.db.write(|tx| outbox::trim(tx, Duration::ZERO)).await.unwrap(), 2);
    assert_eq!(seen(&test.db, "slow").await, [1, 2, 4]);
    emit_kinds(&test.db, &["good"]).await;
    slow_runner.drain().await.unwrap();
    assert_eq!(seen(&test.db, "slow").await, [1, 2, 4, 5], "positions go on after everything was trimmed");
}

async fn a_follower_hears_facts_in_order_and_of_gaps(test: TestDb) {
    emit_kinds(&test.db, &["before"]).await;
    test.db.write(outbox::number).await.unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let runner = Runner::new();
    let mut outbox = Outbox::new(test.db.clone());
    let ears = heard.clone();
    outbox.follow("test", move |news| {
        ears.lock().unwrap().push(match news {
            News::Fact(fact) => fact.kind.clone(),
            News::Gap => "gap".to_owned(),
        });
    });
    outbox.open(&runner).await.unwrap();
    emit_kinds(&test.db, &["one", "two"]).await;
    runner.drain().await.unwrap();
    assert_eq!(heard.lock().unwrap().split_off(0), ["one", "two"]);

    emit_kinds(&test.db, &["lost"]).await;
    test.db.write(outbox::number).await.unwrap();
    test.db.write(|tx| outbox::trim(tx, Duration::ZERO)).await.unwrap();
    emit_kinds(&test.db, &["three"]).await;
    runner.drain().await.unwrap();
    assert_eq!(heard.lock().unwrap().split_off(0), ["gap", "three"]);

    emit_kinds(&test.db, &["lost too"]).await;
    test.db.write(outbox::number).await.unwrap();
    test.db.write(|tx| outbox::trim(tx, Duration::ZERO)).await.unwrap();
    runner.drain().await.unwrap();
    assert_eq!(heard.lock().unwrap().split_off(0), ["gap"]);
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct RoleRenamed {
    name: String,
}

impl FactKind for RoleRenamed {
    const KIND: &'static str = "role.renamed";
}

async fn facts_keep_their_content_and_belong_to_somebody(test: TestDb) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let runner = Runner::new();
    let mut outbox = Outbox::new(test.db.clone());
    let ears = heard.clone();
    outbox.consume("typed", move |tx, fact| {
        let (ears, fact) = (ears.clone(), fact.clone());
        tx.on_commit(move || ears.lock().unwrap().push(fact));
        Ok(())
    });
    outbox.open(&runner).await.unwrap();
    let (app, tenant) = (AppId::from_u128(1), TenantId::from_u128(2));
    let id = test
        .db
        .write(move |tx| {
            let fact = NewFact::of(&RoleRenamed { name: "Röle \u{0} \"x\"".into() })?;
            emit(tx, &fact.app(app).tenant(tenant))
        })
        .await
        .unwrap();
    runner.drain().await.unwrap();
    let heard = heard.lock().unwrap();
    assert_eq!((heard[0].id, heard[0].app, heard[0].tenant), (id, Some(app), Some(tenant)));
    assert_eq!(heard[0].read().unwrap(), Some(RoleRenamed { name: "Röle \u{0} \"x\"".into() }));
}

/// A node that died holds its lease until it expires; a node that stops gives it back.
async fn a_dead_nodes_consumers_are_taken_over(test: TestDb) {
    let runner = consumer(&test.db, "mine").await;
    let hold = "UPDATE outbox_cursors SET lease_owner = 'dead', lease_until = {db_now} + $1";
    test.db.exec_one(hold, &args![60_000_000_i64]).await.unwrap();
    emit_kinds(&test.db, &["good"]).await;
    runner.drain().await.unwrap();
    assert!(seen(&test.db, "mine").await.is_empty());
    test.db.exec_one(hold, &args![-1_i64]).await.unwrap();
    runner.drain().await.unwrap();
    assert_eq!(seen(&test.db, "mine").await, [1]);

    let other = consumer(&test.another_node().await, "mine").await;
    emit_kinds(&test.db, &["good"]).await;
    other.drain().await.unwrap();
    assert_eq!(seen(&test.db, "mine").await, [1], "the first node holds the lease");
    runner.start();
    runner.stop(Duration::from_secs(10)).await;
    other.drain().await.unwrap();
    assert_eq!(seen(&test.db, "mine").await, [1, 2]);
}

on_both_engines!(
    MIGRATIONS: a_failing_fact_is_parked_after_ten_attempts,
    a_consumer_of_some_kinds_passes_over_the_others,
    a_fact_that_succeeds_at_last_is_not_parked,
    only_old_facts_that_all_consumers_passed_are_trimmed,
    a_follower_hears_facts_in_order_and_of_gaps,
    facts_keep_their_content_and_belong_to_somebody,
    a_dead_nodes_consumers_are_taken_over,
);
