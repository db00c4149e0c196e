//! What readers see: every acknowledged write, and one state per snapshot.

use crossbeam_channel::bounded;
use store::{args, on_both_engines, testing::TestDb};

use crate::schema::{MIGRATIONS, add_entry};

on_both_engines!(
    MIGRATIONS: every_reader_sees_an_acknowledged_write,
    a_snapshot_is_one_state,
    a_row_is_found_while_every_reader_is_busy,
    rows_are_read_by_name,
);

const FIND: &str = "SELECT id FROM entries WHERE id = $1";

/// 2,000 times: write, then look through each of the lanes.
async fn every_reader_sees_an_acknowledged_write(test: TestDb) {
    let callers: Vec<_> = (0..16)
        .map(|caller| {
            let db = test.db.clone();
            tokio::spawn(async move {
                for id in caller * 125..(caller + 1) * 125 {
                    db.write(move |tx| add_entry(tx, id)).await.expect("stored");
                    let find = move |tx: &mut store::Tx<'_>| tx.opt::<(i64,)>(FIND, &args![id]);
                    assert_eq!(db.read(find).await.expect("read"), Some((id,)), "read");
                    assert_eq!(db.snapshot(find).await.expect("snapshot"), Some((id,)), "snapshot");
                    assert_eq!(db.scan(find).await.expect("scan"), Some((id,)), "scan");
                    assert_eq!(db.get_one::<(i64,)>(FIND, &args![id]).await.expect("get_one"), Some((id,)), "get_one");
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("every write was seen");
    }
}

/// Between two statements of a snapshot a writer commits: the second statement does not see it.
async fn a_snapshot_is_one_state(test: TestDb) {
    const COUNT: &str = "SELECT count(*) FROM entries";
    test.db.write(|tx| add_entry(tx, 1)).await.expect("stored");
    let (looked, has_looked) = bounded(1);
    let (wrote, has_written) = bounded(1);
    let reader = tokio::spawn(test.db.snapshot(move |tx| {
        let before: (i64,) = tx.one(COUNT, &[])?;
        looked.send(()).expect("the test listens");
        has_written.recv().expect("the test writes");
        let after: (i64,) = tx.one(COUNT, &[])?;
        Ok((before, after))
    }));
    tokio::task::spawn_blocking(move || has_looked.recv()).await.expect("waited").expect("the reader looked");
    test.db.write(|tx| add_entry(tx, 2)).await.expect("a reader does not hold up a writer");
    wrote.send(()).expect("the reader waits");
    assert_eq!(reader.await.expect("read").expect("read"), ((1,), (1,)));
    assert_eq!(test.db.get_one::<(i64,)>(COUNT, &[]).await.expect("read"), Some((2,)));
}

/// More snapshots than SQLite has readers: a single row is found all the same, at the latest when one of them ends.
async fn a_row_is_found_while_every_reader_is_busy(test: TestDb) {
    const SNAPSHOTS: usize = 3;
    test.db.write(|tx| add_entry(tx, 1)).await.expect("stored");
    let (looked, has_looked) = bounded(SNAPSHOTS);
    let (release, released) = bounded::<()>(0);
    let hold = || {
        let (looked, released) = (looked.clone(), released.clone());
        tokio::spawn(test.db.snapshot(move |tx| {
            let found: Option<(i64,)> = tx.opt(FIND, &args![1])?;
            looked.send(()).expect("the test listens");
            let _ = released.recv();
            Ok(found)
        }))
    };
    let held: Vec<_> = (0..SNAPSHOTS).map(|_| hold()).collect();
    let listener = has_looked.clone();
    let both_look = move || (0..2).try_for_each(|_| listener.recv());
    tokio::task::spawn_blocking(both_look).await.expect("waited").expect("two are at work");
    let find = async || test.db.get_one::<(i64,)>(FIND, &args![1]).await;
    let (found, ()) = tokio::join!(find(), async { drop(release) });
    assert_eq!(found.expect("read"), Some((1,)));
    for snapshot in held {
        assert_eq!(snapshot.await.expect("read").expect("read"), Some((1,)));
    }
}

async fn rows_are_read_by_name(test: TestDb) {
    test.db.write(|tx| add_entry(tx, 7)).await.expect("stored");
    let outcome = test.db.read(|tx| {
        let mut found = Vec::new();
        tx.each("SELECT shard, id FROM entries", &[], &mut |row| {
            found.push((row.get::<i64>("id")?, row.get::<Option<i64>>("shard")?));
            assert!(row.get::<i64>("missing").is_err(), "a column that is not there");
            assert!(row.get::<String>("id").is_err(), "a column of another type");
            Ok(())
        })?;
        Ok(found)
    });
    assert_eq!(outcome.await.expect("read"), [(7, Some(7))]);
}
