//! Leases by name.

use std::time::Duration;

use spine::lease;
use store::{Db, on_both_engines, testing::TestDb};

use crate::MIGRATIONS;

const LONG: Duration = Duration::from_secs(60);

async fn take(db: &Db, owner: &'static str) -> bool {
    db.write(move |tx| lease::take(tx, "work", owner, LONG)).await.unwrap()
}

async fn one_at_a_time_and_another_after_the_end(test: TestDb) {
    let db = &test.db;
    assert!(take(db, "one").await);
    assert!(take(db, "one").await, "renewed");
    assert!(!take(db, "other").await);
    db.exec_one("UPDATE leases SET until = {db_now} - 1", &[]).await.unwrap();
    assert!(take(db, "other").await, "expired");
    assert!(!take(db, "one").await);
    db.write(|tx| lease::release(tx, "work", "one")).await.unwrap();
    assert!(!take(db, "one").await, "what was lost cannot be given back");
    db.write(|tx| lease::release(tx, "work", "other")).await.unwrap();
    assert!(take(db, "one").await);
}

async fn sixteen_callers_get_it_once(test: TestDb) {
    let calls = (0..16).map(|number| {
        let db = test.db.clone();
        tokio::spawn(async move {
            db.write(move |tx| lease::take(tx, "work", &format!("node {number}"), LONG)).await.unwrap()
        })
    });
    let mut taken = 0;
    for call in calls.collect::<Vec<_>>() {
        taken += usize::from(call.await.unwrap());
    }
    assert_eq!(taken, 1);
}

async fn all_can_be_freed(test: TestDb) {
    assert!(take(&test.db, "one").await);
    test.db.write(lease::free_all).await.unwrap();
    assert!(take(&test.db, "other").await);
    lease::free_after_restart(&test.db).await.unwrap();
}

on_both_engines!(
    MIGRATIONS: one_at_a_time_and_another_after_the_end,
    sixteen_callers_get_it_once,
    all_can_be_freed
);
