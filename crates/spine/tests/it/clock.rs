//! The test clock steps: every due instant gets its own moment.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use kernel::{Clock, Code, Result, Timestamp};
use spine::{Job, Runner, TestClock, Worked};
use store::{on_both_engines, testing::TestDb};

use crate::{MIGRATIONS, node_with_own_clock, soon};

const HOUR: Duration = Duration::from_secs(3_600);

/// Does something at each of a list of instants, and notes when.
struct Appointments {
    clock: Clock,
    due: Mutex<Vec<Timestamp>>,
    kept: Arc<Mutex<Vec<Timestamp>>>,
}

impl Job for Appointments {
    fn name(&self) -> &'static str {
        "appointments"
    }

    fn every(&self) -> Duration {
        HOUR
    }

    async fn run(&self) -> Result<Worked> {
        let mut due = self.due.lock().unwrap();
        let now = self.clock.now();
        let before = due.len();
        due.retain(|at| *at > now);
        self.kept.lock().unwrap().extend((due.len()..before).map(|_| now));
        Ok(Worked::some_if(due.len() < before))
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        Ok(self.due.lock().unwrap().iter().min().copied())
    }
}

/// Adds a job with something to do after each number of hours; what it did when.
fn appointments(runner: &Runner, clock: &Clock, hours: &[u32]) -> (Vec<Timestamp>, Arc<Mutex<Vec<Timestamp>>>) {
    let start = clock.now();
    let due: Vec<Timestamp> = hours.iter().map(|&hours| start.plus(HOUR * hours)).collect();
    let kept = Arc::new(Mutex::new(Vec::new()));
    runner.add(Appointments { clock: clock.clone(), due: Mutex::new(due.clone()), kept: kept.clone() });
    (due, kept)
}

async fn each_due_instant_gets_its_own_moment(test: TestDb) {
    let runner = Runner::new();
    let clock = TestClock::open(test.db.clone(), runner.clone()).await.unwrap();
    let (due, kept) = appointments(&runner, test.db.clock(), &[1, 2, 3, 26, 39]);
    let (_, kept_by_other) = appointments(&runner, test.db.clock(), &[2, 50]);
    let target = clock.now().plus(40 * HOUR);
    assert!(clock.advance_to(target).await.unwrap() >= target);
    let kept = kept.lock().unwrap();
    assert_eq!(kept.len(), due.len());
    for (due, kept) in due.iter().zip(&*kept) {
        // The clock goes on ticking while it steps.
        assert!(kept >= due && kept.since(*due) < HOUR / 2, "due {due}, done {kept}");
    }
    assert_eq!(kept_by_other.lock().unwrap().len(), 1);
    assert!(clock.now().since(target) < HOUR / 2);
}

/// Upkeep that says when it is due, and never gets done when asked to hang.
struct Upkeep {
    clock: Clock,
    hangs: bool,
}

impl Job for Upkeep {
    fn name(&self) -> &'static str {
        "upkeep"
    }

    fn every(&self) -> Duration {
        HOUR
    }

    async fn run(&self) -> Result<Worked> {
        if self.hangs { std::future::pending().await } else { Ok(Worked::Nothing) }
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        Ok(Some(self.clock.now().plus(Duration::from_secs(60))))
    }

    fn is_upkeep(&self) -> bool {
        true
    }
}

/// Counts how often the clock let it look.
struct Looks(Arc<Mutex<usize>>);

impl Job for Looks {
    fn name(&self) -> &'static str {
        "looks"
    }

    fn every(&self) -> Duration {
        HOUR
    }

    async fn run(&self) -> Result<Worked> {
        *self.0.lock().unwrap() += 1;
        Ok(Worked::Nothing)
    }
}

/// A look that is upkeep.
struct Sweep(Looks);

impl Job for Sweep {
    fn name(&self) -> &'static str {
        "sweep"
    }

    fn every(&self) -> Duration {
        HOUR
    }

    fn is_upkeep(&self) -> bool {
        true
    }

    async fn run(&self) -> Result<Worked> {
        Job::run(&self.0).await
    }
}

async fn only_what_others_can_notice_makes_it_step(test: TestDb) {
    let runner = Runner::new();
    let clock = TestClock::open(test.db.clone(), runner.clone()).await.unwrap();
    let looks = Arc::new(Mutex::new(0));
    runner.add(Looks(looks.clone()));
    for hangs in [false, true] {
        runner.add(Upkeep { clock: test.db.clock().clone(), hangs });
    }
    let (_, kept) = appointments(&runner, test.db.clock(), &[100, 5_000]);
    soon("an idle year", clock.advance_by(365 * 24 * HOUR)).await.unwrap();
    assert_eq!(kept.lock().unwrap().len(), 2);
    // The beginning, two appointments with a look after each, and the end.
    let looks = *looks.lock().unwrap();
    assert!((4..=6).contains(&looks), "{looks} steps");
}

async fn upkeep_runs_once_the_clock_has_come_to_rest(test: TestDb) {
    let runner = Runner::new();
    let clock = TestClock::open(test.db.clone(), runner.clone()).await.unwrap();
    let looks = Arc::new(Mutex::new(0));
    runner.add(Sweep(Looks(looks.clone())));
    runner.start();
    let seen = |at_least: usize| {
        let looks = looks.clone();
        async move {
            while *looks.lock().unwrap() < at_least {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    };
    soon("the first run", seen(1)).await;
    clock.advance_by(HOUR).await.unwrap();
    soon("a run after the step", seen(2)).await;
    runner.stop(HOUR).await;
}

async fn time_only_moves_forward(test: TestDb) {
    let clock = TestClock::open(test.db.clone(), Runner::new()).await.unwrap();
    let refused = clock.advance_to(clock.now().minus(HOUR)).await.unwrap_err();
    assert_eq!(refused.code(), Code::ValidationFailed);
    assert_eq!(test.db.clock().offset(), Duration::ZERO);
}

async fn the_offset_survives_a_restart_and_reaches_other_nodes(test: TestDb) {
    let other_db = node_with_own_clock(&test).await;
    let other_runner = Runner::new();
    let other = TestClock::open(other_db.clone(), other_runner.clone()).await.unwrap();
    let clock = TestClock::open(test.db.clone(), Runner::new()).await.unwrap();
    let now = clock.advance_by(5 * HOUR).await.unwrap();
    other_runner.drain().await.unwrap();
    assert!(other.now() >= now && other_db.clock().offset() >= 4 * HOUR);
    let late_db = node_with_own_clock(&test).await;
    let late = TestClock::open(late_db, Runner::new()).await.unwrap();
    assert!(late.now() >= now);
}

async fn a_moved_clock_wakes_the_jobs_of_other_nodes(test: TestDb) {
    let other_db = node_with_own_clock(&test).await;
    let other_runner = Runner::new();
    let _other = TestClock::open(other_db.clone(), other_runner.clone()).await.unwrap();
    let (_, kept) = appointments(&other_runner, other_db.clock(), &[1]);
    let clock = TestClock::open(test.db.clone(), other_runner.clone()).await.unwrap();
    other_runner.start();
    soon("the step", clock.advance_by(2 * HOUR)).await.unwrap();
    assert_eq!(kept.lock().unwrap().len(), 1);
    other_runner.stop(HOUR).await;
}

/// Always has something that it never gets done.
struct Hopeless;

impl Job for Hopeless {
    fn name(&self) -> &'static str {
        "hopeless"
    }

    fn every(&self) -> Duration {
        HOUR
    }

    async fn run(&self) -> Result<Worked> {
        Ok(Worked::Nothing)
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        Ok(Some(Timestamp::from_seconds(0)))
    }
}

async fn stepping_gives_up_in_time(test: TestDb) {
    let runner = Runner::new();
    runner.add(Hopeless);
    let clock = TestClock::open(test.db.clone(), runner).await.unwrap().with_time_limit(Duration::from_millis(50));
    let error = soon("an answer", clock.advance_by(HOUR)).await.unwrap_err();
    assert_eq!((error.code(), error.kind()), (Code::TimedOut, kernel::Kind::Unavailable));
    assert!(error.retry_after().is_some());
}

on_both_engines!(
    MIGRATIONS: each_due_instant_gets_its_own_moment,
    only_what_others_can_notice_makes_it_step,
    upkeep_runs_once_the_clock_has_come_to_rest,
    time_only_moves_forward,
    the_offset_survives_a_restart_and_reaches_other_nodes,
    a_moved_clock_wakes_the_jobs_of_other_nodes,
    stepping_gives_up_in_time,
);
