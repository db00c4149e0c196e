//! How much a question may read. What is quick runs with the readers; what reads much begins again on the lane for scans,
//! where an app has one at a time and ten seconds.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kernel::{AppId, Code, Error, Result, Tick, Ticker};
use store::{Db, Tx};
use tokio::sync::Semaphore;

/// How long a question may take.
const LONGEST: Duration = Duration::from_secs(10);
/// Rows that a question may read among the readers.
const QUICK_ROWS: usize = 4_000;

pub(crate) fn too_wide() -> Error {
    let message = "The question takes too long. Ask for a shorter time, or without filters.";
    Error::new(Code::QueryTooWide, message).with_retry_after(Duration::from_secs(10))
}

/// How much a question may still read. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Allowance {
    /// `None` for work that nobody waits for.
    begun: Option<Tick>,
    /// Rows that may be read; `None` on the lane for scans.
    rows: Option<usize>,
    /// Nobody waits for the answer any more.
    gone: Arc<AtomicBool>,
}

/// Why a question was not answered.
pub(crate) enum Stop {
    /// It belongs to the lane for scans.
    NeedsScan,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Stop {
    /// For whoever has no other lane to turn to.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::NeedsScan => Error::internal("a scan has no limit on rows"),
            Self::Failed(error) => error,
        }
    }
}

impl Allowance {
    /// For background work and exports, which read a bounded part at a time.
    pub(crate) fn unlimited() -> Self {
        Self { begun: None, rows: None, gone: Arc::default() }
    }

    /// To be asked after each page of rows, with how many were read in all.
    pub(crate) fn check(&self, read: usize) -> Result<(), Stop> {
        if self.rows.is_some_and(|most| read > most) {
            return Err(Stop::NeedsScan);
        }
        if self.gone.load(Ordering::Relaxed) || self.begun.is_some_and(|begun| Ticker.since(begun) > LONGEST) {
            return Err(Stop::Failed(too_wide()));
        }
        Ok(())
    }
}

/// Tells a scan that its caller is gone.
struct TellGone(Arc<AtomicBool>);

impl Drop for TellGone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The lane for scans, shared out among apps.
#[derive(Clone, Default)]
pub(crate) struct Scans(Arc<Mutex<HashMap<AppId, Weak<Semaphore>>>>);

impl Scans {
    /// An app has one scan at a time; another one waits for it.
    fn turn(&self, app: AppId) -> Arc<Semaphore> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(&app).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::new(Semaphore::new(1));
        turns.insert(app, Arc::downgrade(&turn));
        turn
    }

    /// Answers a question: among the readers if it is quick, else on the lane for scans.
    pub(crate) async fn ask<T, F>(&self, db: &Db, app: AppId, question: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>, &Allowance) -> Result<T, Stop> + Clone + Send + 'static,
    {
        let gone = Arc::new(AtomicBool::new(false));
        let _tell = TellGone(Arc::clone(&gone));
        let begun = Some(Ticker.now());
        let quick = Allowance { begun, rows: Some(QUICK_ROWS), gone: Arc::clone(&gone) };
        let work = question.clone();
        let answer = db.snapshot(move |tx| match work(tx, &quick) {
            Ok(answer) => Ok(Some(answer)),
            Err(Stop::NeedsScan) => Ok(None),
            Err(Stop::Failed(error)) => Err(error),
        });
        if let Some(answer) = answer.await? {
            return Ok(answer);
        }
        let scan = async {
            let turn = self.turn(app);
            let _turn = turn.acquire().await.map_err(Error::internal)?;
            let wide = Allowance { begun, rows: None, gone };
            db.scan(move |tx| question(tx, &wide).map_err(Stop::into_error)).await
        };
        tokio::time::timeout(LONGEST, scan).await.unwrap_or_else(|_| Err(too_wide()))
    }
}
