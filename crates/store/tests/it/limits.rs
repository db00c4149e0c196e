//! Bounds: full queues, grouped commits, the lock on the data folder.

use kernel::{Clock, Code, Entropy};
use store::{
    Db, EngineName, FolderLocked, Limits, Options, on_both_engines,
    testing::{self, TestDb},
};

use crate::{
    child,
    schema::{MIGRATIONS, add_entry, entries},
};

on_both_engines!(MIGRATIONS: a_full_queue_answers_at_once, a_closed_database_refuses, what_was_accepted_is_finished_at_close);

async fn a_full_queue_answers_at_once(test: TestDb) {
    let limits = Limits { queue: 4, connections: 2, ..Limits::default() };
    let test = TestDb::with_limits(test.db.engine(), MIGRATIONS, Clock::system(), Entropy::os(), limits).await;
    let (gate, closed) = crossbeam_channel::bounded::<()>(0);
    let (mut accepted, mut refused) = (Vec::new(), Vec::new());
    for id in 0..32 {
        let closed = closed.clone();
        let mut answer = Box::pin(test.db.write(move |tx| {
            // Until the gate is dropped.
            let _ = closed.recv();
            add_entry(tx, id)
        }));
        // A refusal is there at the first look; whatever was accepted waits for the gate.
        match std::future::poll_fn(|context| std::task::Poll::Ready(answer.as_mut().poll(context))).await {
            std::task::Poll::Ready(outcome) => refused.push(outcome.expect_err("nobody passes the gate")),
            std::task::Poll::Pending => accepted.push((id, answer)),
        }
    }
    assert!(accepted.len() >= 4 && refused.len() >= 16, "{} accepted", accepted.len());
    for error in refused {
        assert_eq!(error.code(), Code::Overloaded);
        assert!(error.retry_after().is_some());
    }
    drop(gate);
    let mut stored = Vec::new();
    for (id, answer) in accepted {
        answer.await.expect("what was accepted is stored");
        stored.push(id);
    }
    assert_eq!(entries(&test.db).await, stored);
}

async fn a_closed_database_refuses(test: TestDb) {
    test.db.close().await;
    for outcome in [test.db.write(|tx| add_entry(tx, 1)).await, test.db.read(|_| Ok(())).await, test.db.ping().await] {
        assert_eq!(outcome.expect_err("closed").code(), Code::ShuttingDown);
    }
    test.db.close().await;
}

async fn what_was_accepted_is_finished_at_close(mut test: TestDb) {
    let callers: Vec<_> = (0..500).map(|id| tokio::spawn(test.db.write(move |tx| add_entry(tx, id)))).collect();
    test.reopen().await;
    for caller in callers {
        caller.await.expect("the caller lives").expect("stored");
    }
    assert_eq!(entries(&test.db).await, (0..500).collect::<Vec<_>>());
}

#[test]
fn many_writes_share_a_commit_on_sqlite() {
    testing::run(EngineName::Sqlite, MIGRATIONS, async |test| {
        let before = test.db.counters();
        let callers: Vec<_> = (0..256)
            .map(|caller| {
                let db = test.db.clone();
                tokio::spawn(async move {
                    for id in caller * 20..(caller + 1) * 20 {
                        db.write(move |tx| add_entry(tx, id)).await.expect("stored");
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.expect("stored");
        }
        let after = test.db.counters();
        let (writes, commits) = (after.writes - before.writes, after.commits - before.commits);
        println!("{writes} writes in {commits} commits");
        assert_eq!(writes, 256 * 20);
        assert!(commits * 16 <= writes, "{writes} writes took {commits} commits");
    });
}

#[test]
fn one_process_holds_a_data_folder() {
    testing::run(EngineName::Sqlite, MIGRATIONS, async |mut test| {
        let again = |test: &TestDb| Options {
            url: test.url.clone(),
            clock: Clock::system(),
            entropy: Entropy::os(),
            limits: Limits::default(),
        };
        let refused = Db::open(again(&test)).await.err().expect("the folder is taken");
        assert!(FolderLocked::is_cause_of(&refused), "{refused:?}");
        assert!(refused.public().contains("in use by another process"), "{refused}");
        // Closing is enough, though the handle is still here.
        test.db.close().await;
        let other = Db::open(again(&test)).await.expect("the folder is free");
        assert!(FolderLocked::is_cause_of(&Db::open(again(&test)).await.err().expect("taken again")));
        other.close().await;
        test.reopen().await;
        assert!(entries(&test.db).await.is_empty());
    });
}

#[test]
fn a_slow_closure_is_named_in_the_log() {
    testing::run(EngineName::Sqlite, MIGRATIONS, async |test| {
        test.db.close().await;
        let output = child::start("write slowly", &test.url, 0, &[]).wait_with_output().expect("the child ends");
        let log = String::from_utf8(output.stdout).expect("the log is text");
        let named = log.lines().any(|line| {
            line.contains("WARN") && line.contains("slow transaction closure") && line.contains("child.rs")
        });
        assert!(named, "{log}");
    });
}
