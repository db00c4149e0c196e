//! The test clock: lets users of the product try trials, dunning and retries in seconds.
//!
//! It moves forward only, steps from one due instant to the next so that each gets its own moment, is kept in the
//! database, and is followed by every node. Only what others can notice is due; upkeep runs beside it. Elapsed time
//! (leases, timeouts of real calls) is never moved.

use std::time::Duration;

use kernel::{Clock, Code, Error, Result, Timestamp};
use store::{Db, args};
use tokio::sync::watch;

use crate::{Job, Runner, Signal, Worked, lease};

const READ: &str = "SELECT offset_micros FROM test_clock WHERE id = 1";
const RAISE: &str = "UPDATE test_clock SET offset_micros = $1 WHERE id = 1 AND offset_micros < $1";

/// A call that steps may take this much real time.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// How long to wait for work that another node has in hand.
const PATIENCE: Duration = Duration::from_millis(20);

/// Moves the business clock of the whole installation.
pub struct TestClock {
    db: Db,
    runner: Runner,
    stepping: tokio::sync::Mutex<()>,
    time_limit: Duration,
}

impl TestClock {
    /// Takes over the offset of earlier runs and follows what other nodes do to it.
    pub async fn open(db: Db, runner: Runner) -> Result<Self> {
        follow(&db).await?;
        runner.add(Follow { db: db.clone(), everybody: runner.everybody() });
        Ok(Self { db, runner, stepping: tokio::sync::Mutex::default(), time_limit: TIME_LIMIT })
    }

    /// With another limit than a minute on the real time that one call may take.
    #[must_use]
    pub fn with_time_limit(self, time_limit: Duration) -> Self {
        Self { time_limit, ..self }
    }

    pub fn now(&self) -> Timestamp {
        self.clock().now()
    }

    /// Steps to `target`, running at each due instant what is due then. Answers when nothing is due any more; a target
    /// in the past is refused.
    pub async fn advance_to(&self, target: Timestamp) -> Result<Timestamp> {
        if target < self.now() {
            return Err(Error::invalid("now", format!("must not be before {}: time only moves forward", self.now())));
        }
        self.step_in_time(|_| target).await
    }

    /// The same by a duration, which may be none: then what is due now is run.
    pub async fn advance_by(&self, duration: Duration) -> Result<Timestamp> {
        self.step_in_time(|now| now.plus(duration)).await
    }

    /// Of two calls at once each moves the clock, one after the other.
    async fn step_in_time(&self, target: impl FnOnce(Timestamp) -> Timestamp) -> Result<Timestamp> {
        let stepping = async {
            let _alone = self.stepping.lock().await;
            self.step_to(target(self.now())).await
        };
        tokio::time::timeout(self.time_limit, stepping).await.unwrap_or_else(|_| Err(self.out_of_time()))?;
        Ok(self.now())
    }

    async fn step_to(&self, target: Timestamp) -> Result<()> {
        loop {
            // A job that fails logs it, and tries again by itself: no reason to stop the clock.
            let _ = self.runner.drain_noticeable().await;
            let now = self.now();
            match self.runner.next_due().await? {
                Some(due) if due <= now => tokio::time::sleep(PATIENCE).await,
                Some(due) if due <= target => self.raise_to(due).await?,
                _ if now < target => self.raise_to(target).await?,
                _ => {
                    self.runner.everybody().wake();
                    return Ok(());
                }
            }
        }
    }

    /// The row first: a node that dies in between finds it at its next start.
    async fn raise_to(&self, instant: Timestamp) -> Result<()> {
        let clock = self.clock().clone();
        let offset = clock.offset() + instant.since(clock.now());
        self.db.exec_one(RAISE, &args![lease::micros(offset)]).await?;
        clock.advance_to(instant);
        self.db.wake();
        Ok(())
    }

    fn out_of_time(&self) -> Error {
        let limit = self.time_limit.as_secs();
        let message = format!(
            "The clock came as far as {} within {limit} seconds. Send the time that you want as now to continue.",
            self.now()
        );
        Error::new(Code::TimedOut, message).with_retry_after(Duration::from_secs(1))
    }

    fn clock(&self) -> &Clock {
        self.db.clock()
    }
}

/// Whether the row was ahead of this node's clock.
async fn follow(db: &Db) -> Result<bool> {
    let row: Option<(i64,)> = db.get_one(READ, &[]).await?;
    let offset = Duration::from_micros(row.map_or(0, |(micros,)| u64::try_from(micros).unwrap_or(0)));
    let behind = offset > db.clock().offset();
    db.clock().raise_offset(offset);
    Ok(behind)
}

/// Follows the row on every node and lets jobs look at what became due.
struct Follow {
    db: Db,
    everybody: Signal,
}

impl Job for Follow {
    fn name(&self) -> &'static str {
        "test-clock"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.db.wakeups()]
    }

    async fn run(&self) -> Result<Worked> {
        if follow(&self.db).await? {
            self.everybody.wake();
        }
        Ok(Worked::Nothing)
    }
}
