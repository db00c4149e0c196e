//! Runs the jobs of a node, each in a task of its own so that a slow one delays nothing else, and those that compute much on
//! threads of their own.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{join_all, select_all},
};
use kernel::{Error, Result, Ticker, Timestamp};
use store::spawn_unhurried;
use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
    task::JoinSet,
};

use super::{AnyJob, Job, JobThread, Signal, Worked};

type ThreadBody = Box<dyn FnOnce() + Send>;

/// The jobs of a node. Cheap to clone. Jobs run on their own between [`Runner::start`] and [`Runner::stop`], and
/// whenever [`Runner::drain`] is called.
#[derive(Clone)]
pub struct Runner(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    /// Wakes all jobs.
    everybody: Signal,
    stopping: watch::Sender<bool>,
}

struct State {
    jobs: Vec<Arc<Entry>>,
    tasks: JoinSet<()>,
    started: bool,
}

struct Entry {
    job: Box<dyn AnyJob>,
    signal: Signal,
    running: tokio::sync::Mutex<()>,
    failed: AtomicBool,
}

/// Wakes one job.
#[derive(Clone)]
pub struct JobHandle(Signal);

impl JobHandle {
    pub fn wake(&self) {
        self.0.wake();
    }
}

impl Runner {
    pub fn new() -> Self {
        let state = State { jobs: Vec::new(), tasks: JoinSet::new(), started: false };
        Self(Arc::new(Inner {
            state: Mutex::new(state),
            everybody: Signal::new(),
            stopping: watch::Sender::new(false),
        }))
    }

    pub fn add(&self, job: impl Job) -> JobHandle {
        let entry = Arc::new(Entry {
            job: Box::new(job),
            signal: Signal::new(),
            running: tokio::sync::Mutex::default(),
            failed: AtomicBool::new(false),
        });
        let handle = JobHandle(entry.signal.clone());
        let mut state = self.state();
        if state.started {
            self.spawn(&mut state.tasks, entry.clone());
        }
        state.jobs.push(entry);
        handle
    }

    /// Starts the jobs. Needs a Tokio runtime.
    pub fn start(&self) {
        let mut state = self.state();
        if std::mem::replace(&mut state.started, true) {
            return;
        }
        for entry in state.jobs.clone() {
            self.spawn(&mut state.tasks, entry);
        }
    }

    fn spawn(&self, tasks: &mut JoinSet<()>, entry: Arc<Entry>) {
        let (name, thread) = (entry.job.name(), entry.job.thread());
        let life = self.tend(entry);
        match thread {
            JobThread::Shared => tasks.spawn(life),
            JobThread::Own => tasks.spawn(on_own_thread(name, spawn_named, life)),
            JobThread::Unhurried => tasks.spawn(on_own_thread(name, spawn_unhurried, life)),
        };
    }

    /// Wakes all jobs when rung: for when the business clock was moved.
    pub fn everybody(&self) -> Signal {
        self.0.everybody.clone()
    }

    /// Runs all jobs until none finds anything to do, whether or not the runner was started. A job that fails is run
    /// no further; the others are finished all the same, then the first failure is the answer.
    pub async fn drain(&self) -> Result<()> {
        self.drain_jobs(Self::jobs).await
    }

    /// The same for what others can notice: without upkeep.
    pub(crate) async fn drain_noticeable(&self) -> Result<()> {
        self.drain_jobs(Self::noticeable_jobs).await
    }

    async fn drain_jobs(&self, jobs: impl Fn(&Self) -> Vec<Arc<Entry>>) -> Result<()> {
        let mut failure = None;
        loop {
            let jobs = jobs(self);
            let mut worked = false;
            for outcome in join_all(jobs.iter().map(|entry| entry.exhaust())).await {
                match outcome {
                    Ok(Worked::Something) => worked = true,
                    Ok(Worked::Nothing) => {}
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            if !worked {
                return failure.map_or(Ok(()), Err);
            }
        }
    }

    /// The jobs of which a run has failed since this node started, whoever ran them and however it went later.
    pub fn failed(&self) -> Vec<&'static str> {
        let jobs = self.jobs();
        jobs.iter().filter(|entry| entry.failed.load(Ordering::Relaxed)).map(|entry| entry.job.name()).collect()
    }

    /// The earliest instant at which a job has work on the business clock that others can notice.
    pub async fn next_due(&self) -> Result<Option<Timestamp>> {
        let jobs = self.noticeable_jobs();
        let mut earliest: Option<Timestamp> = None;
        for due in join_all(jobs.iter().map(|entry| entry.job.next_due())).await {
            earliest = match (earliest, due?) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        Ok(earliest)
    }

    /// Lets running jobs finish for at most `grace`, then cuts them off, which every job survives.
    pub async fn stop(&self, grace: Duration) {
        self.0.stopping.send_replace(true);
        let (mut tasks, drained_only) = {
            let mut state = self.state();
            let drained_only = if state.started { Vec::new() } else { state.jobs.clone() };
            (std::mem::take(&mut state.tasks), drained_only)
        };
        let ended = async {
            for entry in drained_only {
                entry.job.stopped().await;
            }
            while tasks.join_next().await.is_some() {}
        };
        if tokio::time::timeout(grace, ended).await.is_err() {
            tracing::warn!(cut_off = tasks.len(), "jobs were still running at the end of the grace period");
        }
    }

    /// The task holds the job but not the runner, so that a runner that is dropped ends its tasks.
    fn tend(&self, entry: Arc<Entry>) -> impl Future<Output = ()> + use<> {
        let mut signals = entry.job.signals();
        signals.extend([entry.signal.listen(), self.0.everybody.listen()]);
        tend(entry, signals, self.0.stopping.subscribe())
    }

    fn jobs(&self) -> Vec<Arc<Entry>> {
        self.state().jobs.clone()
    }

    fn noticeable_jobs(&self) -> Vec<Arc<Entry>> {
        self.state().jobs.iter().filter(|entry| !entry.job.is_upkeep()).cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Runner {
    fn default() -> Self {
        Self::new()
    }
}

const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// One job's life: run, wait for a signal or the timer, run again.
async fn tend(entry: Arc<Entry>, mut signals: Vec<watch::Receiver<u64>>, mut stopping: watch::Receiver<bool>) {
    let mut backoff = FIRST_BACKOFF;
    while !*stopping.borrow() {
        // Marked before the run: a signal that arrives while it runs leads to another one.
        signals.iter_mut().for_each(watch::Receiver::mark_unchanged);
        match entry.run().await {
            Ok(Worked::Something) => {
                backoff = FIRST_BACKOFF;
                tokio::task::yield_now().await;
            }
            Ok(Worked::Nothing) => {
                backoff = FIRST_BACKOFF;
                tokio::select! {
                    () = any_changed(&mut signals) => {}
                    () = tokio::time::sleep(entry.job.every()) => {}
                    _ = stopping.wait_for(|stop| *stop) => {}
                }
            }
            Err(_) => {
                tokio::select! {
                    () = tokio::time::sleep(backoff) => {}
                    _ = stopping.wait_for(|stop| *stop) => {}
                }
                backoff = (backoff * 2).min(LONGEST_BACKOFF);
            }
        }
    }
    entry.job.stopped().await;
}

fn spawn_named(name: &str, body: ThreadBody) -> Result<JoinHandle<()>> {
    thread::Builder::new().name(name.into()).spawn(body).map_err(Error::internal)
}

/// Polls a future on a thread that is started for it. It ends with the task that waits for it.
async fn on_own_thread(
    name: &'static str,
    spawn: fn(&str, ThreadBody) -> Result<JoinHandle<()>>,
    life: impl Future<Output = ()> + Send + 'static,
) {
    let (runtime, (waiting, gone)) = (Handle::current(), oneshot::channel::<()>());
    let (ended, end) = oneshot::channel::<()>();
    let (hand_over, handed) = oneshot::channel();
    let body = move || {
        let Ok(life) = handed.blocking_recv() else { return };
        runtime.block_on(async {
            tokio::select! {
                () = life => {}
                _ = gone => {}
            }
        });
        drop(ended);
    };
    match spawn(name, Box::new(body)) {
        Ok(_) => {
            drop(hand_over.send(life));
            // Whoever is told nothing is told that it is over.
            drop(end.await);
        }
        Err(error) => {
            tracing::warn!(job = name, ?error, "no thread for the job; it shares those that answer requests");
            life.await;
        }
    }
    drop(waiting);
}

async fn any_changed(signals: &mut [watch::Receiver<u64>]) {
    let changes = signals.iter_mut().map(|signal| {
        Box::pin(async move {
            if signal.changed().await.is_err() {
                // Whoever rang this bell is gone; the timer keeps running.
                std::future::pending::<()>().await;
            }
        })
    });
    select_all(changes).await;
}

impl Entry {
    /// One batch. Errors and panics are logged and counted here.
    async fn run(&self) -> Result<Worked> {
        let _alone = self.running.lock().await;
        let name = self.job.name();
        let started = Ticker.now();
        let outcome = AssertUnwindSafe(self.job.run())
            .catch_unwind()
            .await
            .unwrap_or_else(|_| Err(Error::internal(format!("panic in the job {name}"))));
        metrics::counter!("tenantry_job_runs_total", "job" => name).increment(1);
        metrics::histogram!("tenantry_job_run_seconds", "job" => name).record(Ticker.since(started).as_secs_f64());
        if let Err(error) = &outcome {
            self.failed.store(true, Ordering::Relaxed);
            metrics::counter!("tenantry_job_failures_total", "job" => name).increment(1);
            tracing::error!(job = name, ?error, "job failed; it will be tried again");
        }
        outcome
    }

    async fn exhaust(&self) -> Result<Worked> {
        let mut all = Worked::Nothing;
        while self.run().await? == Worked::Something {
            all = Worked::Something;
        }
        Ok(all)
    }
}
