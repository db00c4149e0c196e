//! Leases by name, and jobs that run on one node at a time.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kernel::{Clock, Code, Entropy, Result, Secret};
use spine::{Exclusive, Job, Lease, Runner, Worked, lease};
use store::{DatabaseUrl, Db, EngineName, Limits, Options, on_both_engines, testing::TestDb};

use crate::{MIGRATIONS, soon};

const EXPIRE: &str = "UPDATE leases SET until = {db_now} - 1";
const SHORT: Duration = Duration::from_secs(2);

async fn one_at_a_time_and_another_after_the_end(test: TestDb) {
    let db = &test.db;
    let node = || Lease::new(db, "work");
    let (one, other) = (node(), node());
    assert!(one.hold().await.unwrap());
    assert!(one.hold().await.unwrap(), "held already");
    assert!(!other.hold().await.unwrap());
    assert!(Lease::new(db, "other work").hold().await.unwrap());
    db.exec_one(EXPIRE, &[]).await.unwrap();
    assert!(other.hold().await.unwrap(), "expired");
    one.give_back().await;
    assert!(!node().hold().await.unwrap(), "what was lost cannot be given back");
    other.give_back().await;
    assert!(one.hold().await.unwrap());
}

async fn sixteen_callers_get_it_once(test: TestDb) {
    let calls = (0..16).map(|_| {
        let lease = Lease::new(&test.db, "work");
        tokio::spawn(async move { lease.hold().await.unwrap() })
    });
    let mut taken = 0;
    for call in calls.collect::<Vec<_>>() {
        taken += usize::from(call.await.unwrap());
    }
    assert_eq!(taken, 1);
}

async fn a_kept_lease_does_not_end_until_it_is_taken_away(test: TestDb) {
    let length = Duration::from_millis(300);
    let (one, other) = (Lease::new(&test.db, "work").with_length(length), Lease::new(&test.db, "work"));
    assert!(one.hold().await.unwrap());
    let mut keeping = Box::pin(one.keep());
    assert!(tokio::time::timeout(length * 3, &mut keeping).await.is_err(), "lost");
    assert!(!other.hold().await.unwrap());
    // Until the other one happens to look between two renewals.
    let taken_away = async {
        while !other.hold().await.unwrap() {
            test.db.exec_one(EXPIRE, &[]).await.unwrap();
        }
    };
    soon("the takeover", Box::pin(async { tokio::join!(keeping, taken_away) })).await;
    assert!(!one.hold().await.unwrap());
}

async fn end(db: &Db) -> i64 {
    db.get_one::<(i64,)>("SELECT until FROM leases", &[]).await.unwrap().unwrap().0
}

/// Else there would be a moment at every end at which another node could take it.
async fn a_lease_is_renewed_long_before_it_ends(test: TestDb) {
    let length = Duration::from_secs(9);
    let lease = Lease::new(&test.db, "work").with_length(length);
    assert!(lease.hold().await.unwrap());
    let first = end(&test.db).await;
    let renewed = async {
        while end(&test.db).await == first {
            assert!(lease.hold().await.unwrap());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon("a renewal", renewed).await;
    let later = end(&test.db).await - first;
    assert!(later < lease::micros(length), "renewed after {later} microseconds");
}

async fn all_can_be_freed(test: TestDb) {
    let (one, other) = (Lease::new(&test.db, "work"), Lease::new(&test.db, "work"));
    assert!(one.hold().await.unwrap());
    test.db.write(|tx| lease::free(tx, lease::CLAIMS)).await.unwrap();
    assert!(other.hold().await.unwrap());
    lease::free_after_restart(&test.db, lease::CLAIMS).await.unwrap();
    let third = Lease::new(&test.db, "work").hold().await.unwrap();
    assert_eq!(third, test.db.is_single_node(), "other nodes may be alive on PostgreSQL");
}

/// Counts its runs; one that hangs ends when it is cut off.
#[derive(Clone, Default)]
struct Work {
    runs: Arc<AtomicUsize>,
    hangs: bool,
}

impl Job for Work {
    fn name(&self) -> &'static str {
        "work"
    }

    fn every(&self) -> Duration {
        Duration::from_millis(10)
    }

    async fn run(&self) -> Result<Worked> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        if self.hangs { std::future::pending().await } else { Ok(Worked::Nothing) }
    }
}

impl Work {
    async fn has_run(&self) {
        while self.runs.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn an_exclusive_job_runs_on_one_node_and_goes_on_when_that_stops(test: TestDb) {
    let (here, there) = (Work::default(), Work::default());
    let (one, other) = (Runner::new(), Runner::new());
    one.add(Exclusive::new(&test.db, here.clone()));
    other.add(Exclusive::new(&test.another_node().await, there.clone()));
    one.start();
    soon("a run here", here.has_run()).await;
    other.drain().await.unwrap();
    assert_eq!(there.runs.load(Ordering::SeqCst), 0);
    one.stop(SHORT).await;
    other.drain().await.unwrap();
    assert_eq!(there.runs.load(Ordering::SeqCst), 1);
}

async fn a_run_without_its_lease_is_cut_off(test: TestDb) {
    let work = Work { hangs: true, ..Work::default() };
    let job = Exclusive::new(&test.db, work.clone()).with_length(Duration::from_millis(300));
    let thief = Lease::new(&test.db, "work");
    let steal = async {
        work.has_run().await;
        while !thief.hold().await.unwrap() {
            test.db.exec_one(EXPIRE, &[]).await.unwrap();
        }
    };
    let (outcome, ()) = soon("the cut", Box::pin(async { tokio::join!(job.run(), steal) })).await;
    assert_eq!(outcome.unwrap_err().code(), Code::Internal);
    assert_eq!(job.run().await.unwrap(), Worked::Nothing);
}

const CHILD_URL: &str = "TENANTRY_TEST_CHILD_URL";

/// Another process that holds the lease until it is killed. In a usual test run there is nobody to play.
#[test]
fn child() {
    let Ok(url) = std::env::var(CHILD_URL) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (clock, entropy) = (Clock::system(), Entropy::os());
        let options = Options { url: url.parse().unwrap(), clock, entropy, limits: Limits::default() };
        let db = Db::open(options).await.unwrap();
        let work = Work { hangs: true, ..Work::default() };
        let runner = Runner::new();
        runner.add(Exclusive::new(&db, work.clone()).with_length(SHORT));
        runner.start();
        work.has_run().await;
        println!("holding");
        std::future::pending::<()>().await;
    });
}

fn start_child(url: &DatabaseUrl) -> Child {
    let url = match url {
        DatabaseUrl::Sqlite(path) => format!("sqlite:{}", path.display()),
        DatabaseUrl::Postgres(url) => Secret::expose(url).clone(),
    };
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["leases::child", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD_URL, url)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("holding")), "the child ended");
    child
}

async fn a_killed_node_is_replaced(mut test: TestDb) {
    test.db.close().await;
    let url = test.url.clone();
    let mut child = tokio::task::spawn_blocking(move || start_child(&url)).await.unwrap();
    if test.db.engine() == EngineName::Postgres {
        let elsewhere = test.another_node().await;
        // Longer than the lease: the living renew it.
        for _ in 0..30 {
            let job = Exclusive::new(&elsewhere, Work::default()).with_length(SHORT);
            assert_eq!(job.run().await.unwrap(), Worked::Nothing);
            assert!(!Lease::new(&elsewhere, "work").hold().await.unwrap(), "taken from the living");
            tokio::time::sleep(SHORT / 20).await;
        }
        elsewhere.close().await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    test.reopen().await;
    lease::free_after_restart(&test.db, lease::CLAIMS).await.unwrap();
    let work = Work::default();
    let runner = Runner::new();
    runner.add(Exclusive::new(&test.db, work.clone()).with_length(SHORT));
    runner.start();
    soon("the takeover", work.has_run()).await;
    runner.stop(SHORT).await;
}

on_both_engines!(
    MIGRATIONS: one_at_a_time_and_another_after_the_end,
    sixteen_callers_get_it_once,
    a_kept_lease_does_not_end_until_it_is_taken_away,
    a_lease_is_renewed_long_before_it_ends,
    all_can_be_freed,
    an_exclusive_job_runs_on_one_node_and_goes_on_when_that_stops,
    a_run_without_its_lease_is_cut_off,
    a_killed_node_is_replaced,
);
