//! Consumers that fail, followers that fall behind, and what may be trimmed.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kernel::{Actor, AppId, Author, Code, Error, TenantId, UserId};
use spine::{FactKind as _, Installation, News, Outbox, Reader, Runner, emit, outbox};
use store::{Db, Tx, args, on_both_engines, testing::TestDb};

use crate::{
    MIGRATIONS,
    facts::{Bad, Good, RoleRenamed, Written, emit_kinds, write_all},
    see, seen,
};

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
    outbox.consume(Reader::of_all(name), move |tx, fact| see_unless_bad(tx, name, fact));
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

/// Nothing comes after it that could hold the consumer's place.
async fn a_lone_failing_fact_is_not_lost(test: TestDb) {
    for name in ["any", "choosy"] {
        let runner = Runner::new();
        let mut outbox = Outbox::new(test.db.clone());
        let reader = if name == "any" { Reader::of_all(name) } else { Reader::of(name, &[Bad::KIND]) };
        outbox.consume(reader, move |tx, fact| see_unless_bad(tx, name, fact));
        outbox.open(&runner).await.unwrap();
        emit_kinds(&test.db, &["bad"]).await;
        runner.drain().await.unwrap();
        let retrying = test.db.read(outbox::retrying).await.unwrap();
        assert_eq!(retrying.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), [name]);
        assert_eq!(settle(&test.db, &runner).await, 9);
        let parked = test.db.read(|tx| outbox::parked(tx, 10)).await.unwrap();
        assert_eq!(parked.iter().filter(|fact| fact.consumer == name && fact.attempts == 10).count(), 1);
        assert_eq!(test.db.read(outbox::retrying).await.unwrap(), []);
    }
}

async fn a_consumer_of_some_kinds_passes_over_the_others(test: TestDb) {
    let runner = Runner::new();
    let mut outbox = Outbox::new(test.db.clone());
    outbox.consume(Reader::of("choosy", &[Good::KIND, Bad::KIND]), |tx, fact| see_unless_bad(tx, "choosy", fact));
    outbox.open(&runner).await.unwrap();
    emit_kinds(&test.db, &["dreadful", "dreadful"]).await;
    assert_eq!(runner.next_due().await.unwrap(), None, "nothing that it waits for");
    emit_kinds(&test.db, &["good", "dreadful", "bad", "good"]).await;
    assert_eq!(settle(&test.db, &runner).await, 9, "the pauses of one fact");
    assert_eq!(seen(&test.db, "choosy").await, [3, 6]);
}

async fn a_fact_that_succeeds_at_last_is_not_parked(test: TestDb) {
    // Both facts together once, and then the first of them nine times.
    let failures = Arc::new(AtomicUsize::new(10));
    let runner = Runner::new();
    let mut outbox = Outbox::new(test.db.clone());
    let left = failures.clone();
    outbox.consume(Reader::of_all("late"), move |tx, fact| {
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

/// What one fact needed is not counted against the next.
async fn each_fact_has_attempts_of_its_own(test: TestDb) {
    // Both facts together once, and then the first of them nine times.
    let left = Arc::new(AtomicUsize::new(10));
    let runner = Runner::new();
    let mut outbox = Outbox::new(test.db.clone());
    outbox.consume(Reader::of_all("late"), move |tx, fact| {
        let failing = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if failing { Err(Error::internal("not yet")) } else { see_unless_bad(tx, "late", fact) }
    });
    outbox.open(&runner).await.unwrap();
    emit_kinds(&test.db, &["good", "bad"]).await;
    assert_eq!(settle(&test.db, &runner).await, 18, "nine pauses each");
    assert_eq!(seen(&test.db, "late").await, [1]);
}

/// More than a consumer or a follower reads at once.
async fn behind_a_full_batch_comes_the_rest(test: TestDb) {
    let (handled, heard) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let runner = Runner::new();
    let mut outbox = Outbox::new(test.db.clone());
    let (total, ears) = (handled.clone(), heard.clone());
    outbox.consume_together(Reader::of("choosy", &[Good::KIND]), move |tx, facts| {
        let (total, count) = (total.clone(), facts.len());
        tx.on_commit(move || {
            total.fetch_add(count, Ordering::Relaxed);
        });
        Ok(())
    });
    outbox.follow(Reader::of("test", &[Good::KIND]), move |news| {
        assert!(matches!(news, News::Fact(_)), "nothing was trimmed");
        ears.fetch_add(1, Ordering::Relaxed);
    });
    outbox.open(&runner).await.unwrap();
    emit_kinds(&test.db, &["good"; 600]).await;
    while test.db.write(outbox::number).await.unwrap() > 0 {}
    runner.drain().await.unwrap();
    assert_eq!([handled, heard].map(|count| count.load(Ordering::Relaxed)), [600, 600]);
}

async fn positions(db: &Db) -> Vec<i64> {
    let sql = "SELECT position FROM outbox ORDER BY position";
    let rows: Vec<(i64,)> = db.read(move |tx| tx.all(sql, &[])).await.unwrap();
    rows.into_iter().map(|(position,)| position).collect()
}

async fn only_old_facts_that_all_consumers_passed_are_trimmed(test: TestDb) {
    let quick = consumer(&test.db, "quick").await;
    let mut slow = Outbox::new(test.db.clone());
    slow.consume(Reader::of_all("slow"), |tx, fact| see_unless_bad(tx, "slow", fact));
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

async fn nothing_is_resumed_behind_what_was_trimmed(test: TestDb) {
    let runner = consumer(&test.db, "quick").await;
    emit_kinds(&test.db, &["good", "good"]).await;
    runner.drain().await.unwrap();
    assert_eq!(test.db.write(|tx| outbox::trim(tx, Duration::ZERO)).await.unwrap(), 2);
    emit_kinds(&test.db, &["good", "good"]).await;
    runner.drain().await.unwrap();
    for (after, found) in [(0, None), (1, None), (2, Some(2)), (3, Some(1)), (4, Some(0)), (5, None)] {
        let since = test.db.snapshot(move |tx| outbox::since(tx, after, 4, &[Good::KIND], 10));
        assert_eq!(since.await.unwrap().map(|facts| facts.len()), found, "after {after}");
    }
}

async fn a_follower_hears_facts_in_order_and_of_gaps(test: TestDb) {
    write_all(&test.db, &[0]).await;
    test.db.write(outbox::number).await.unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let runner = Runner::new();
    let mut outbox = Outbox::new(test.db.clone());
    let ears = heard.clone();
    outbox.follow(Reader::of("test", &[Written::KIND]), move |news| {
        ears.lock().unwrap().push(match news {
            News::Fact(fact) => fact.read::<Written>().unwrap().map(|Written(number)| number),
            News::Gap => None,
        });
    });
    outbox.open(&runner).await.unwrap();
    write_all(&test.db, &[1]).await;
    emit_kinds(&test.db, &["good"]).await;
    write_all(&test.db, &[2]).await;
    runner.drain().await.unwrap();
    assert_eq!(heard.lock().unwrap().split_off(0), [Some(1), Some(2)], "of its kind, in order");

    write_all(&test.db, &[3]).await;
    test.db.write(outbox::number).await.unwrap();
    test.db.write(|tx| outbox::trim(tx, Duration::ZERO)).await.unwrap();
    write_all(&test.db, &[4]).await;
    runner.drain().await.unwrap();
    assert_eq!(heard.lock().unwrap().split_off(0), [None, Some(4)]);

    write_all(&test.db, &[5]).await;
    test.db.write(outbox::number).await.unwrap();
    test.db.write(|tx| outbox::trim(tx, Duration::ZERO)).await.unwrap();
    runner.drain().await.unwrap();
    assert_eq!(heard.lock().unwrap().split_off(0), [None]);
}

async fn facts_keep_their_content_and_belong_to_somebody(test: TestDb) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let runner = Runner::new();
    let mut outbox = Outbox::new(test.db.clone());
    let ears = heard.clone();
    outbox.consume(Reader::of_all("typed"), move |tx, fact| {
        let (ears, fact) = (ears.clone(), fact.clone());
        tx.on_commit(move || ears.lock().unwrap().push(fact));
        Ok(())
    });
    outbox.open(&runner).await.unwrap();
    let (app, tenant) = (AppId::from_u128(1), TenantId::from_u128(2));
    let renamed = RoleRenamed { name: "Röle \u{0} \"x\"".into() };
    let told = renamed.clone();
    test.db.write(move |tx| emit(tx, (app, tenant), &told)).await.unwrap();
    runner.drain().await.unwrap();
    let heard = heard.lock().unwrap();
    assert_eq!((heard[0].app, heard[0].tenant), (Some(app), Some(tenant)));
    assert_eq!(heard[0].read().unwrap(), Some(renamed));
    assert_eq!(heard[0].read::<Written>().unwrap(), None);
}

/// The authors of the facts so far, in order.
async fn authors(db: &Db) -> Vec<Author> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (runner, ears) = (Runner::new(), heard.clone());
    let mut outbox = Outbox::new(db.clone());
    outbox.consume(Reader::of_all("authors"), move |tx, fact| {
        let (ears, author) = (ears.clone(), fact.author.clone());
        tx.on_commit(move || ears.lock().unwrap().push(author));
        Ok(())
    });
    outbox.open(&runner).await.unwrap();
    db.exec_one("UPDATE outbox_cursors SET position = 0 WHERE name = 'authors'", &[]).await.unwrap();
    runner.drain().await.unwrap();
    heard.lock().unwrap().clone()
}

async fn facts_carry_their_author(test: TestDb) {
    let user = Actor::user(UserId::from_u128(7));
    let request = Author {
        actor: Actor::operator_key(Some("Zoë".to_owned())),
        address: Some("2001:db8::1".parse().unwrap()),
        request: Some("req_1".to_owned()),
    };
    let proven = user.clone();
    test.db.write(|tx| emit(tx, Installation, &Good {})).await.unwrap();
    let by_somebody = test.db.by(&request);
    by_somebody
        .write(move |tx| {
            emit(tx, Installation, &Good {})?;
            let undone = tx.savepoint(|tx| {
                tx.acting_as(proven.clone());
                emit(tx, Installation, &Bad {}).and(Err::<(), _>(Error::internal("undone")))
            });
            assert!(undone.is_err());
            emit(tx, Installation, &Good {})?;
            tx.acting_as(proven.clone());
            emit(tx, Installation, &Good {})
        })
        .await
        .unwrap();
    by_somebody.write(|tx| emit(tx, Installation, &Good {})).await.unwrap();
    test.db
        .exec_one(
            "INSERT INTO outbox (id, kind, payload, created_at, recorded_at) \
        VALUES ('fact_00000000000000000000000000', 'good', '{}', 0, 0)",
            &[],
        )
        .await
        .unwrap();
    let as_user = Author { actor: user, ..request.clone() };
    let system = Author::system().clone();
    assert_eq!(
        authors(&test.db).await,
        [system.clone(), request.clone(), request.clone(), as_user, request, system],
        "what was rolled back and what another transaction did count for nothing; old facts are the system's"
    );
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
    a_lone_failing_fact_is_not_lost,
    a_consumer_of_some_kinds_passes_over_the_others,
    a_fact_that_succeeds_at_last_is_not_parked,
    each_fact_has_attempts_of_its_own,
    behind_a_full_batch_comes_the_rest,
    only_old_facts_that_all_consumers_passed_are_trimmed,
    nothing_is_resumed_behind_what_was_trimmed,
    a_follower_hears_facts_in_order_and_of_gaps,
    facts_keep_their_content_and_belong_to_somebody,
    facts_carry_their_author,
    a_dead_nodes_consumers_are_taken_over,
);
