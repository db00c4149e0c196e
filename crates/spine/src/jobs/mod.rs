//! Jobs are reconcilers: they look for what is due, do a bounded batch of it, and can be killed anywhere.
//!
//! A job is woken by signals and, because a signal may be lost, by a timer. It never counts on having been woken for a
//! reason, so running it once more is always harmless.

mod runner;

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use kernel::{Result, Timestamp};
use tokio::sync::watch;

pub use runner::{JobHandle, Runner};

/// Background work under a name. Runs one at a time within a node; several nodes may run it at once.
pub trait Job: Send + Sync + 'static {
    /// For logs and metrics.
    fn name(&self) -> &'static str;

    /// The longest time between two runs.
    fn every(&self) -> Duration;

    /// Does one bounded batch. What fails is rescheduled by the job itself; an error means that the job could not work.
    fn run(&self) -> impl Future<Output = Result<Worked>> + Send;

    /// When the next piece of work is due on the business clock, including what is due already. The test clock steps
    /// from one such instant to the next, so that a retry, a renewal or a trial's end gets its own moment.
    fn next_due(&self) -> impl Future<Output = Result<Option<Timestamp>>> + Send {
        std::future::ready(Ok(None))
    }

    /// Whether nobody outside can tell when it is done, as with retention and sweeps. The test clock neither steps for
    /// upkeep nor waits for it: it runs beside, once the clock has come to rest.
    fn is_upkeep(&self) -> bool {
        false
    }

    /// Where it runs.
    fn thread(&self) -> JobThread {
        JobThread::Shared
    }

    /// Called once when the runner stops, to give back what other nodes would otherwise wait for.
    fn stopped(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// What wakes this job besides its handle and the timer.
    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        Vec::new()
    }
}

/// A job that works things out for milliseconds at a time, rather than wait for the store or for others, would keep requests
/// from the threads that answer them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobThread {
    /// One of those that answer requests.
    Shared,
    /// One of its own.
    Own,
    /// One of its own that gives way to all others: on a busy machine it takes as long as it takes.
    Unhurried,
}

/// What a run found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worked {
    /// Nothing is due: wait for a signal or the timer.
    Nothing,
    /// Something was done and more may be waiting: run again at once.
    Something,
}

impl Worked {
    pub fn some_if(worked: bool) -> Self {
        if worked { Self::Something } else { Self::Nothing }
    }
}

/// Wakes every job that listens to it. Cheap to clone, to keep and to ring; rings while a job runs count as one.
#[derive(Clone)]
pub struct Signal(Arc<watch::Sender<u64>>);

impl Signal {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    pub fn wake(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub fn listen(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

impl Default for Signal {
    fn default() -> Self {
        Self::new()
    }
}

/// A job behind a pointer, so that the runner can keep different ones in one list.
pub(crate) trait AnyJob: Send + Sync {
    fn name(&self) -> &'static str;
    fn every(&self) -> Duration;
    fn run(&self) -> BoxFuture<'_, Result<Worked>>;
    fn next_due(&self) -> BoxFuture<'_, Result<Option<Timestamp>>>;
    fn is_upkeep(&self) -> bool;
    fn thread(&self) -> JobThread;
    fn stopped(&self) -> BoxFuture<'_, ()>;
    fn signals(&self) -> Vec<watch::Receiver<u64>>;
}

impl<J: Job> AnyJob for J {
    fn name(&self) -> &'static str {
        Job::name(self)
    }

    fn every(&self) -> Duration {
        Job::every(self)
    }

    fn run(&self) -> BoxFuture<'_, Result<Worked>> {
        Box::pin(Job::run(self))
    }

    fn next_due(&self) -> BoxFuture<'_, Result<Option<Timestamp>>> {
        Box::pin(Job::next_due(self))
    }

    fn is_upkeep(&self) -> bool {
        Job::is_upkeep(self)
    }

    fn thread(&self) -> JobThread {
        Job::thread(self)
    }

    fn stopped(&self) -> BoxFuture<'_, ()> {
        Box::pin(Job::stopped(self))
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        Job::signals(self)
    }
}
