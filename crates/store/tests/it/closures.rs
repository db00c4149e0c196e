//! What a closure that fails does to itself, and to nobody else.

use std::sync::{Arc, Mutex, mpsc};

use kernel::{Code, Error};
use store::{EngineName, Lock, args, is_unique_violation, on_both_engines, testing::TestDb};

use crate::schema::{MIGRATIONS, add_entry, add_name, entries, names};

on_both_engines!(MIGRATIONS:
    failures_stay_alone,
    an_ignored_error_fails_the_closure,
    a_savepoint_undoes_only_its_own_work,
    much_is_kept_or_undone_like_little,
    a_constraint_checked_at_commit_fails_its_closure_only,
    hooks_follow_the_commit_and_precede_the_answer,
    hooks_of_what_was_undone_are_dropped,
    locks_make_read_then_write_exact,
    locks_have_one_order,
    reads_cannot_write,
    a_write_can_tell_whether_others_wait_for_it,
);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Well,
    DomainError,
    Panic,
    Unique,
    IgnoredUnique,
}

fn way_of(id: i64) -> Way {
    match id % 10 {
        1 => Way::DomainError,
        3 => Way::Panic,
        5 => Way::Unique,
        7 => Way::IgnoredUnique,
        _ => Way::Well,
    }
}

/// 2,000 closures at once; 800 of them write and then fail in four ways.
async fn failures_stay_alone(test: TestDb) {
    test.db.write(|tx| add_name(tx, "taken")).await.expect("the name is free");
    let callers: Vec<_> = (0..2_000)
        .map(|id| {
            let answer = test.db.write(move |tx| {
                add_entry(tx, id)?;
                match way_of(id) {
                    Way::Well => Ok(()),
                    Way::DomainError => Err(Error::new(Code::Conflict, format!("no {id}"))),
                    // As a panic does, but without its lines in the test's output.
                    Way::Panic => std::panic::resume_unwind(Box::new("on purpose")),
                    Way::Unique => add_name(tx, "taken").map(|_| ()),
                    Way::IgnoredUnique => {
                        let _ = add_name(tx, "taken");
                        Ok(())
                    }
                }
            });
            (id, tokio::spawn(answer))
        })
        .collect();

    let mut acknowledged = Vec::new();
    for (id, caller) in callers {
        match (way_of(id), caller.await.expect("the caller lives")) {
            (Way::Well, Ok(())) => acknowledged.push(id),
            (Way::DomainError, Err(error)) => assert_eq!(error.public(), format!("no {id}")),
            (Way::Unique, Err(error)) => assert!(is_unique_violation(&error), "{error:?}"),
            (Way::Panic, Err(error)) => assert!(format!("{error:?}").contains("on purpose"), "{error:?}"),
            (Way::IgnoredUnique, Err(error)) => assert_eq!(error.code(), Code::Internal),
            (way, outcome) => panic!("{id} went {way:?} but was answered {outcome:?}"),
        }
    }
    assert_eq!(acknowledged.len(), 1_200);
    assert_eq!(entries(&test.db).await, acknowledged);
}

async fn an_ignored_error_fails_the_closure(test: TestDb) {
    let answer = test.db.write(|tx| {
        add_name(tx, "one")?;
        let _ = add_name(tx, "one");
        // PostgreSQL would refuse this in its own words; both engines use ours.
        let refused = add_name(tx, "two").expect_err("the transaction is doomed");
        assert!(format!("{refused:?}").contains("an earlier statement"), "{refused:?}");
        Ok(())
    });
    let error = answer.await.expect_err("nothing was stored");
    assert!(format!("{error:?}").contains("its error was ignored"), "{error:?}");
    assert!(names(&test.db).await.is_empty());
}

async fn a_savepoint_undoes_only_its_own_work(test: TestDb) {
    let answer = test.db.write(|tx| {
        add_name(tx, "before")?;
        let inner = tx.savepoint(|tx| {
            add_name(tx, "undone")?;
            tx.savepoint(|tx| add_name(tx, "also undone"))?;
            add_name(tx, "before")
        });
        assert!(is_unique_violation(&inner.expect_err("the name is taken")));
        let ignored = tx.savepoint(|tx| {
            let _ = add_name(tx, "before");
            Ok(())
        });
        assert!(ignored.is_err(), "an error ignored inside a savepoint fails the savepoint");
        let refused: Result<(), Error> = tx.savepoint(|tx| {
            add_name(tx, "refused")?;
            Err(Error::new(Code::Conflict, "no"))
        });
        assert_eq!(refused.expect_err("refused").code(), Code::Conflict);
        tx.savepoint(|tx| add_name(tx, "inside"))?;
        add_name(tx, "after")
    });
    answer.await.expect("what failed was isolated");
    assert_eq!(names(&test.db).await, ["after", "before", "inside"]);
}

/// Some 16 MiB of pages that are there already: more than any engine keeps aside without a thought.
async fn much_is_kept_or_undone_like_little(test: TestDb) {
    const ROWS: i64 = 4_000;
    for batch in 0..ROWS / 500 {
        let filled = test.db.write(move |tx| {
            for number in batch * 500..(batch + 1) * 500 {
                let insert = "INSERT INTO things (id, number, body) VALUES ($1, $2, $3)";
                tx.exec(insert, &args![format!("thing-{number}"), 0_i64, "x".repeat(3_500)])?;
            }
            Ok(())
        });
        filled.await.expect("stored");
    }
    let change = |fails: bool| {
        test.db.write(move |tx| {
            let changed = tx.exec("UPDATE things SET number = number + 1", &[])?;
            if fails { Err(Error::new(Code::Conflict, "no")) } else { Ok(changed) }
        })
    };
    let sum = async || {
        let sum = "SELECT CAST(sum(number) AS BIGINT) FROM things";
        test.db.read(move |tx| tx.one::<(i64,)>(sum, &[])).await.expect("a sum").0
    };
    assert_eq!(change(true).await.expect_err("refused").code(), Code::Conflict);
    assert_eq!(sum().await, 0);
    assert_eq!(change(false).await.expect("kept"), ROWS as u64);
    assert_eq!(sum().await, ROWS);
}

async fn a_constraint_checked_at_commit_fails_its_closure_only(test: TestDb) {
    let callers: Vec<_> = (0..64)
        .map(|id| {
            let answer = test.db.write(move |tx| {
                if id % 16 == 0 {
                    tx.exec("INSERT INTO notes (id, thing) VALUES ($1, $2)", &args![id.to_string(), "missing"])?;
                }
                add_entry(tx, id)
            });
            (id, tokio::spawn(answer))
        })
        .collect();
    for (id, caller) in callers {
        assert_eq!(caller.await.expect("the caller lives").is_ok(), id % 16 != 0, "{id}");
    }
    assert_eq!(entries(&test.db).await, (0..64).filter(|id| id % 16 != 0).collect::<Vec<_>>());
}

/// The hook reads through another connection: it finds the change committed, and the caller is not answered before.
async fn hooks_follow_the_commit_and_precede_the_answer(test: TestDb) {
    let seen = Arc::new(Mutex::new(None));
    let (db, runtime, result) = (test.db.clone(), tokio::runtime::Handle::current(), seen.clone());
    let answer = test.db.write(move |tx| {
        let (db, runtime, result) = (db.clone(), runtime.clone(), result.clone());
        tx.on_commit(move || {
            let reader = std::thread::spawn(move || runtime.block_on(names(&db)));
            *result.lock().expect("not poisoned") = Some(reader.join().expect("the names can be read"));
        });
        add_name(tx, "committed")
    });
    answer.await.expect("stored");
    assert_eq!(*seen.lock().expect("not poisoned"), Some(vec!["committed".to_owned()]));
}

async fn hooks_of_what_was_undone_are_dropped(test: TestDb) {
    let ran = Arc::new(Mutex::new(Vec::new()));
    let note = |text: &'static str, ran: &Arc<Mutex<Vec<&'static str>>>| {
        let ran = ran.clone();
        move || ran.lock().expect("not poisoned").push(text)
    };
    let log = ran.clone();
    let answer = test.db.write(move |tx| {
        tx.on_commit(note("first", &log));
        let undone: Result<(), Error> = tx.savepoint(|tx| {
            tx.on_commit(note("undone", &log));
            Err(Error::new(Code::Conflict, "no"))
        });
        assert!(undone.is_err());
        tx.savepoint(|tx| {
            tx.on_commit(note("kept", &log));
            add_name(tx, "x")
        })
    });
    answer.await.expect("stored");
    let log = ran.clone();
    let failed = test.db.write(move |tx| {
        tx.on_commit(note("failed", &log));
        add_name(tx, "x")
    });
    assert!(failed.await.is_err());
    assert_eq!(*ran.lock().expect("not poisoned"), ["first", "kept"]);
}

struct Ranked(u8);

impl Lock for Ranked {
    fn name(&self) -> String {
        format!("rank:{}", self.0)
    }

    fn rank(&self) -> u8 {
        self.0
    }
}

/// What is held may be taken again; only what was not held before has to come later.
async fn locks_have_one_order(test: TestDb) {
    let take = async |ranks: &'static [u8]| {
        test.db.write(move |tx| ranks.iter().try_for_each(|rank| tx.lock(&Ranked(*rank)))).await
    };
    take(&[1, 2, 2, 3, 1]).await.expect("in order");
    assert_eq!(take(&[1, 3, 2]).await.map_err(|error| error.code()), Err(Code::Internal));
}

/// 16 callers read a number, then write it raised by one, 25 times each: none is lost.
async fn locks_make_read_then_write_exact(test: TestDb) {
    test.db.write(|tx| add_name(tx, "counter")).await.expect("stored");
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let db = test.db.clone();
            tokio::spawn(async move {
                for _ in 0..25 {
                    let raised = db.write(|tx| {
                        tx.lock(&store::WholeDatabase("counter"))?;
                        let (n,): (i64,) = tx.one("SELECT n FROM names WHERE name = $1", &args!["counter"])?;
                        tx.exec("UPDATE names SET n = $2 WHERE name = $1", &args!["counter", n + 1])
                    });
                    raised.await.expect("raised");
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("the caller lives");
    }
    let n = test.db.get_one::<(i64,)>("SELECT n FROM names WHERE name = $1", &args!["counter"]).await;
    assert_eq!(n.expect("readable"), Some((400,)));
}

async fn reads_cannot_write(test: TestDb) {
    assert!(test.db.read(|tx| add_name(tx, "x")).await.is_err());
    assert!(test.db.snapshot(|tx| add_name(tx, "x")).await.is_err());
    assert!(test.db.scan(|tx| add_name(tx, "x")).await.is_err());
    const RETURNING: &str = "INSERT INTO names (name, n) VALUES ('x', 0) RETURNING n";
    assert!(test.db.read(|tx| tx.opt::<(i64,)>(RETURNING, &[])).await.is_err());
    assert!(test.db.snapshot(|tx| tx.opt::<(i64,)>(RETURNING, &[])).await.is_err());
    assert!(names(&test.db).await.is_empty());
    // The lane serves the next reader as if nothing had happened.
    test.db.ping().await.expect("answers");
}

/// On SQLite, which has one writer.
async fn a_write_can_tell_whether_others_wait_for_it(test: TestDb) {
    let (others, arrived) = mpsc::channel();
    let (arrived, db) = (Mutex::new(arrived), test.db.clone());
    let first = test.db.write(move |_| {
        let before = db.has_waiting_writers();
        arrived.lock().expect("no test has failed").recv().map_err(Error::internal)?;
        Ok((before, db.has_waiting_writers()))
    });
    while test.db.queued().iter().any(|(_, waiting)| *waiting > 0) {
        tokio::task::yield_now().await;
    }
    let second = test.db.write(|tx| add_name(tx, "second"));
    others.send(()).expect("the first one waits");
    let is_sqlite = test.db.engine() == EngineName::Sqlite;
    assert_eq!(first.await.expect("written"), (false, is_sqlite));
    second.await.expect("written");
}
