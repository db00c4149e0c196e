//! Closures that meet a deadlock, a killed session or a COMMIT whose answer never came: done exactly once, or said to be
//! unknown.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use kernel::{Code, Result, Ticker};
use store::{Db, Limits, args, testing::OwnPostgres};

use super::{
    COUNT_UP, end_sessions, on_postgres, on_runtime, open,
    proxy::{Cut, Proxy},
};
use crate::schema::{MIGRATIONS, add_entry, add_name, entries, names};

#[derive(Clone, Default)]
struct Seen {
    runs: Arc<AtomicU32>,
    hooks: Arc<AtomicU32>,
}

impl Seen {
    /// Stores an entry, counting how often it had to be run and how often its hook was.
    async fn store(&self, db: &Db, id: i64) -> Result<()> {
        let seen = self.clone();
        db.write(move |tx| {
            seen.runs.fetch_add(1, Ordering::Relaxed);
            let hooks = seen.hooks.clone();
            tx.on_commit(move || {
                hooks.fetch_add(1, Ordering::Relaxed);
            });
            add_entry(tx, id)
        })
        .await
    }

    fn counts(&self) -> (u32, u32) {
        (self.runs.load(Ordering::Relaxed), self.hooks.load(Ordering::Relaxed))
    }
}

/// How often the closure was run when its COMMIT was cut; stored once in any case.
fn runs_after(cut: Cut) -> u32 {
    let seen = Seen::default();
    on_postgres(async |test| {
        let proxy = Proxy::before(&test.url).await;
        let db = open(proxy.url(&test.url), Limits::default()).await.expect("the database opens");
        proxy.cut(cut);
        seen.store(&db, 1).await.expect("stored");
        assert_eq!(entries(&test.db).await, [1], "stored exactly once");
        // The connection that took its place works.
        seen.store(&db, 2).await.expect("stored");
        assert_eq!(entries(&test.db).await, [1, 2]);
        db.close().await;
    });
    let (runs, hooks) = seen.counts();
    assert_eq!(hooks, 2, "a hook runs once per commit");
    runs - 1
}

#[test]
fn a_commit_that_did_not_reach_the_server_is_run_again() {
    assert_eq!(runs_after(Cut::BeforeTheServer), 2);
}

#[test]
fn a_commit_whose_answer_was_lost_is_found() {
    assert_eq!(runs_after(Cut::AfterTheServer), 1);
}

#[test]
fn a_session_that_the_server_takes_for_alive_is_ended_and_its_work_run_again() {
    assert_eq!(runs_after(Cut::BeforeTheServerUnnoticed), 2);
}

/// A single statement leaves no trace to look for: nothing is claimed, and above all it is not run again.
#[test]
fn a_statement_whose_answer_was_lost_is_called_unknown() {
    on_postgres(async |test| {
        test.db.write(|tx| add_name(tx, "once")).await.expect("stored");
        let proxy = Proxy::before(&test.url).await;
        let db = open(proxy.url(&test.url), Limits::default()).await.expect("the database opens");
        assert_eq!(db.exec_one(COUNT_UP, &args!["nobody"]).await.expect("prepared"), 0);
        proxy.cut_statement(Cut::AfterTheServer);
        let error = db.exec_one(COUNT_UP, &args!["once"]).await.expect_err("nobody can tell");
        assert_eq!(error.code(), Code::CommitUnknown, "{error:?}");
        let counted = test.db.get_one::<(i64,)>("SELECT n FROM names WHERE name = $1", &args!["once"]).await;
        assert_eq!(counted.expect("read"), Some((1,)));
        assert_eq!(db.exec_one(COUNT_UP, &args!["once"]).await.expect("another connection"), 1);
        db.close().await;
    });
}

/// After a crash the transaction's number may have been given to another: nothing is claimed that is not known.
#[test]
fn a_commit_before_a_crash_is_called_unknown() {
    let server = Arc::new(OwnPostgres::start_new());
    on_runtime(async {
        let proxy = Proxy::before(&server.url()).await;
        let db = open(proxy.url(&server.url()), Limits::default()).await.expect("the database opens");
        db.migrate(MIGRATIONS).await.expect("the migrations apply");

        let seen = Seen::default();
        let crashing = server.clone();
        proxy.cut(Cut::AfterTheServerAnd(Box::new(move || crashing.restart_immediate())));
        let error = seen.store(&db, 1).await.expect_err("nobody can tell");
        assert_eq!(error.code(), Code::CommitUnknown, "{error:?}");
        assert!(error.retry_after().is_some());
        assert_eq!(seen.counts(), (1, 0));

        // A clean restart leaves no doubt.
        let restarting = server.clone();
        proxy.cut(Cut::AfterTheServerAnd(Box::new(move || restarting.restart_fast())));
        seen.store(&db, 2).await.expect("found");
        assert_eq!(seen.counts(), (2, 1));
        assert_eq!(entries(&db).await, [1, 2]);
        db.close().await;
    });
}

#[test]
fn a_session_killed_in_the_middle_is_run_again() {
    on_postgres(async |test| {
        let seen = Seen::default();
        let (url, runs) = (test.url.clone(), seen.runs.clone());
        test.db
            .write(move |tx| {
                add_entry(tx, 1)?;
                if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                    assert_eq!(end_sessions(&url, "state = 'idle in transaction'"), 1);
                }
                add_entry(tx, 2)
            })
            .await
            .expect("stored");
        assert_eq!(seen.counts().0, 2);
        assert_eq!(test.db.counters().reruns, 1);
        assert_eq!(entries(&test.db).await, [1, 2]);
    });
}

#[test]
fn both_sides_of_a_deadlock_succeed() {
    on_postgres(async |test| {
        test.db.write(|tx| add_name(tx, "a").and_then(|_| add_name(tx, "b"))).await.expect("stored");
        let both_hold_one = Arc::new(Barrier::new(2));
        let mut callers = Vec::new();
        for (first, second) in [("a", "b"), ("b", "a")] {
            let (meet, runs) = (both_hold_one.clone(), AtomicU32::new(0));
            callers.push(tokio::spawn(test.db.write(move |tx| {
                tx.exec(COUNT_UP, &args![first])?;
                if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                    meet.wait();
                }
                tx.exec(COUNT_UP, &args![second])
            })));
        }
        for caller in callers {
            assert_eq!(caller.await.expect("the caller lives").expect("stored"), 1);
        }
        assert!(test.db.counters().reruns >= 1);
        for name in ["a", "b"] {
            let counted = test.db.get_one::<(i64,)>("SELECT n FROM names WHERE name = $1", &args![name]).await;
            assert_eq!(counted.expect("read"), Some((2,)), "each closure was stored once");
        }
    });
}

/// A closure that always fails for a reason that might pass is not run for ever.
#[test]
fn a_session_that_is_always_killed_is_given_up() {
    on_postgres(async |test| {
        let (url, started) = (test.url.clone(), Ticker.now());
        let outcome = test
            .db
            .write(move |tx| {
                end_sessions(&url, "state = 'idle in transaction'");
                add_name(tx, "x")
            })
            .await;
        assert_eq!(outcome.expect_err("given up").code(), Code::StorageUnavailable);
        assert!(Ticker.since(started) < Duration::from_secs(10));
        assert!(names(&test.db).await.is_empty());
    });
}
