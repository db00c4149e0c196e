//! PostgreSQL restarts under load: nothing acknowledged is lost, callers get one of three answers, and it goes on by
//! itself.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

use kernel::{Clock, Code, Entropy};
use store::{Db, Limits, Options, testing::OwnPostgres};
use tokio::sync::watch;

use crate::schema::{MIGRATIONS, add_entry, entries};

#[derive(Default)]
struct Answers {
    acknowledged: HashSet<i64>,
    refused: HashSet<i64>,
    unknown: HashSet<i64>,
    other: Vec<String>,
}

#[test]
fn a_clean_restart_loses_nothing() {
    restart_under_load(OwnPostgres::restart_fast);
}

#[test]
fn a_crash_loses_nothing() {
    restart_under_load(OwnPostgres::restart_immediate);
}

fn restart_under_load(restart: fn(&OwnPostgres)) {
    let server = Arc::new(OwnPostgres::start_new());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be started").block_on(async {
        let (url, limits) = (server.url(), Limits::default());
        let db = Db::open(Options { url, clock: Clock::system(), entropy: Entropy::os(), limits }).await;
        let db = db.expect("the database opens");
        db.migrate(MIGRATIONS).await.expect("the migrations apply");

        let load = Load::start(&db);
        for round in 1..=3 {
            load.wait_for(round * 1_000).await;
            let server = server.clone();
            tokio::task::spawn_blocking(move || restart(&server)).await.expect("the server restarts");
        }
        // Nobody reconnected anything by hand.
        let so_far = *load.acknowledged.borrow();
        load.wait_for(so_far + 1_000).await;
        let answers = load.stop().await;

        assert!(answers.other.is_empty(), "{:?}", answers.other);
        let stored = entries(&db).await;
        let distinct: HashSet<i64> = stored.iter().copied().collect();
        assert_eq!(stored.len(), distinct.len(), "a write was stored twice");
        let missing: Vec<_> = answers.acknowledged.difference(&distinct).collect();
        assert!(missing.is_empty(), "acknowledged but missing: {missing:?}");
        let present: Vec<_> = answers.refused.intersection(&distinct).collect();
        assert!(present.is_empty(), "refused but present: {present:?}");
        println!(
            "{} acknowledged, {} refused, {} unknown of which {} are there; {:?}",
            answers.acknowledged.len(),
            answers.refused.len(),
            answers.unknown.len(),
            answers.unknown.intersection(&distinct).count(),
            db.counters()
        );
        db.close().await;
    });
}

struct Load {
    callers: Vec<tokio::task::JoinHandle<()>>,
    answers: Arc<Mutex<Answers>>,
    acknowledged: watch::Receiver<usize>,
    stop: Arc<AtomicBool>,
}

impl Load {
    fn start(db: &Db) -> Self {
        let (next, stop) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicBool::new(false)));
        let answers = Arc::new(Mutex::new(Answers::default()));
        let (sender, acknowledged) = watch::channel(0);
        let sender = Arc::new(sender);
        let callers = (0..64).map(|_| {
            let (db, next, stop) = (db.clone(), next.clone(), stop.clone());
            let (answers, sender) = (answers.clone(), sender.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let id = next.fetch_add(1, Ordering::Relaxed);
                    let outcome = db.write(move |tx| add_entry(tx, id)).await;
                    let mut answers = answers.lock().expect("not poisoned");
                    match outcome {
                        Ok(()) => {
                            answers.acknowledged.insert(id);
                            sender.send_replace(answers.acknowledged.len());
                        }
                        Err(error) if error.code() == Code::StorageUnavailable => drop(answers.refused.insert(id)),
                        Err(error) if error.code() == Code::CommitUnknown => drop(answers.unknown.insert(id)),
                        Err(error) => answers.other.push(format!("{error:?}")),
                    }
                }
            })
        });
        Self { callers: callers.collect(), answers, acknowledged, stop }
    }

    async fn wait_for(&self, count: usize) {
        self.acknowledged.clone().wait_for(|acknowledged| *acknowledged >= count).await.expect("callers go on");
    }

    async fn stop(self) -> Answers {
        self.stop.store(true, Ordering::Relaxed);
        for caller in self.callers {
            caller.await.expect("the caller lives");
        }
        std::mem::take(&mut *self.answers.lock().expect("not poisoned"))
    }
}
