//! A fill raced against a revocation never brings back what was revoked, on the committing node or on another.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use spine::{Cached, FactKind as _, Installation, News, Outbox, Reader, Runner, emit};
use store::{Db, args, on_both_engines, testing::TestDb};

use crate::{MIGRATIONS, facts::ThingRevoked};

const RACES: usize = 10_000;
const AT_ONCE: usize = 50;

const LIVE: &str = "SELECT live FROM things WHERE id = $1";

async fn is_live(db: Db, id: String) -> kernel::Result<bool> {
    Ok(db.get_one::<(bool,)>(LIVE, &args![id]).await?.is_some_and(|(live,)| live))
}

/// Fills the cache as often as it takes to be in the middle of the revocation, and counts fills that were dropped.
async fn fill(cache: Cached<String, bool>, db: Db, id: String, dropped: Arc<AtomicUsize>) {
    for _ in 0..3 {
        let fill = cache.begin_fill(id.clone());
        let live = is_live(db.clone(), id.clone()).await.unwrap();
        if !cache.finish_fill(fill, live) {
            dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn revoke(db: Db, cache: Cached<String, bool>, id: String) {
    db.write(move |tx| {
        tx.exec("UPDATE things SET live = $2 WHERE id = $1", &args![id, false])?;
        emit(tx, Installation, &ThingRevoked { id: id.clone() })?;
        let (cache, id) = (cache.clone(), id.clone());
        tx.on_commit(move || cache.invalidate(&id));
        Ok(())
    })
    .await
    .unwrap();
}

/// A node whose cache follows the outbox.
async fn following(db: &Db, cache: &Cached<String, bool>) -> Runner {
    let runner = Runner::new();
    let mut outbox = Outbox::new(db.clone());
    let cache = cache.clone();
    outbox.follow(Reader::of("things", &[ThingRevoked::KIND]), move |news| match news {
        News::Fact(fact) => cache.invalidate(&fact.read::<ThingRevoked>().unwrap().unwrap().id),
        News::Gap => cache.flush(),
    });
    outbox.open(&runner).await.unwrap();
    runner
}

async fn a_revoked_thing_never_comes_back(test: TestDb) {
    let other_db = test.another_node().await;
    let (here, there) = (Cached::new(100_000), Cached::new(100_000));
    let runner = following(&other_db, &there).await;
    let dropped = Arc::new(AtomicUsize::new(0));
    for batch in 0..RACES / AT_ONCE {
        let ids: Vec<String> = (0..AT_ONCE).map(|number| format!("thing {batch} {number}")).collect();
        let rows = ids.clone();
        let insert = "INSERT INTO things (id, live) VALUES ($1, $2)";
        test.db
            .write(move |tx| rows.iter().try_for_each(|id| tx.exec(insert, &args![id, true]).map(|_| ())))
            .await
            .unwrap();
        let mut races = tokio::task::JoinSet::new();
        for id in &ids {
            races.spawn(fill(here.clone(), test.db.clone(), id.clone(), dropped.clone()));
            races.spawn(fill(there.clone(), other_db.clone(), id.clone(), dropped.clone()));
            races.spawn(revoke(test.db.clone(), here.clone(), id.clone()));
        }
        let draining = runner.clone();
        races.spawn(async move { draining.drain().await.unwrap() });
        races.join_all().await;
        for id in &ids {
            assert_ne!(here.get(id), Some(true), "{id} came back on the node that revoked it");
        }
        runner.drain().await.unwrap();
        for id in &ids {
            assert_ne!(there.get(id), Some(true), "{id} came back on the other node");
        }
    }
    assert!(dropped.load(Ordering::Relaxed) > 0, "no fill ever met a revocation: this proves nothing");
}

async fn reading_through_fills_the_cache(test: TestDb) {
    test.db.exec_one("INSERT INTO things (id, live) VALUES ($1, $2)", &args!["x", true]).await.unwrap();
    let cache = Cached::new(10);
    let before = test.db.counters().statements;
    for _ in 0..5 {
        let db = test.db.clone();
        assert!(cache.get_or_read("x".to_owned(), move |id| is_live(db, id)).await.unwrap());
    }
    assert_eq!(test.db.counters().statements - before, 1);
}

on_both_engines!(MIGRATIONS: a_revoked_thing_never_comes_back, reading_through_fills_the_cache);
