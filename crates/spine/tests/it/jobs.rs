//! The runner: jobs are woken, kept apart, survive panics, and can be drained and stopped.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kernel::{Error, Result};
use spine::{Job, JobThread, Runner, Worked};
use tokio::sync::{Notify, mpsc};

use crate::soon;

const RARELY: Duration = Duration::from_secs(3_600);

/// Has a number of things to do and tells of each.
struct Countdown {
    left: Arc<AtomicUsize>,
    done: mpsc::UnboundedSender<()>,
}

impl Job for Countdown {
    fn name(&self) -> &'static str {
        "countdown"
    }

    fn every(&self) -> Duration {
        RARELY
    }

    async fn run(&self) -> Result<Worked> {
        let worked = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if worked {
            self.done.send(()).map_err(Error::internal)?;
        }
        Ok(Worked::some_if(worked))
    }
}

/// Never ends by itself.
struct Stuck(Arc<Notify>);

impl Job for Stuck {
    fn name(&self) -> &'static str {
        "stuck"
    }

    fn every(&self) -> Duration {
        RARELY
    }

    async fn run(&self) -> Result<Worked> {
        self.0.notify_one();
        std::future::pending().await
    }
}

/// Panics at its first run.
struct Panicking(AtomicUsize);

impl Job for Panicking {
    fn name(&self) -> &'static str {
        "panicking"
    }

    fn every(&self) -> Duration {
        RARELY
    }

    async fn run(&self) -> Result<Worked> {
        assert!(self.0.fetch_add(1, Ordering::Relaxed) > 0, "the first run panics");
        Ok(Worked::Nothing)
    }
}

#[tokio::test]
async fn a_woken_job_works_while_another_is_stuck() {
    let runner = Runner::new();
    let (left, (done, mut told), stuck) = (Arc::new(AtomicUsize::new(2)), mpsc::unbounded_channel(), Arc::default());
    runner.add(Stuck(Arc::clone(&stuck)));
    let handle = runner.add(Countdown { left: left.clone(), done });
    runner.start();
    soon("the stuck job runs", stuck.notified()).await;
    for _ in 0..2 {
        soon("the first work is done", told.recv()).await;
    }
    for _ in 0..10 {
        left.store(1, Ordering::Relaxed);
        handle.wake();
        soon("the job is woken", told.recv()).await;
    }
    runner.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn drain_leaves_nothing_and_a_panic_stops_nobody_else() {
    let runner = Runner::new();
    let (left, (done, mut told)) = (Arc::new(AtomicUsize::new(100)), mpsc::unbounded_channel());
    runner.add(Panicking(AtomicUsize::new(0)));
    runner.add(Countdown { left: left.clone(), done });
    let error = runner.drain().await.expect_err("drain tells of the panic").to_string();
    assert!(error.contains("INTERNAL"), "{error}");
    assert_eq!(left.load(Ordering::Relaxed), 0);
    for _ in 0..100 {
        told.recv().await;
    }
    runner.drain().await.expect("the second run does not panic");
}

#[tokio::test]
async fn a_job_added_late_runs_and_stop_waits_for_it() {
    let runner = Runner::new();
    runner.start();
    let (done, mut told) = mpsc::unbounded_channel();
    runner.add(Countdown { left: Arc::new(AtomicUsize::new(1)), done });
    soon("the late job runs", told.recv()).await;
    soon("the runner stops", runner.stop(RARELY)).await;
    drop(runner);
    assert_eq!(told.recv().await, None, "a stopped runner that is dropped keeps no job");
}

/// Tells on which thread it runs; never ends by itself.
struct Heavy(mpsc::UnboundedSender<Option<String>>, JobThread);

impl Job for Heavy {
    fn name(&self) -> &'static str {
        "heavy"
    }

    fn every(&self) -> Duration {
        RARELY
    }

    fn thread(&self) -> JobThread {
        self.1
    }

    async fn run(&self) -> Result<Worked> {
        self.0.send(std::thread::current().name().map(str::to_owned)).map_err(Error::internal)?;
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_heavy_job_has_a_thread_of_its_own_that_ends_with_the_runner() {
    for thread in [JobThread::Own, JobThread::Unhurried] {
        let (tell, mut told) = mpsc::unbounded_channel();
        let runner = Runner::new();
        runner.add(Heavy(tell, thread));
        runner.start();
        assert_eq!(soon("the job runs", told.recv()).await.flatten().as_deref(), Some("heavy"));
        runner.stop(Duration::ZERO).await;
        drop(runner);
        assert_eq!(soon("its thread ends", told.recv()).await, None);
    }
}
