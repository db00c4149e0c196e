//! From arrivals to answers: buckets, first occurrences and rows.
//!
//! What is waiting is read and worked out in memory, then written in one short transaction, which also takes the arrivals
//! away: a crash at any point neither loses nor doubles an event. The app's revision is read first and moved in that
//! transaction, so that two nodes that fold at once cannot both succeed; one of them begins again.

mod counters;
mod memory;
mod plan;
mod store;

use std::{collections::HashSet, sync::Arc, time::Duration};

use ::store::{Db, Tx};
use kernel::{AppId, Error, Result, Ticker, Timestamp};
use spine::{Job, JobThread, Signal, Worked};
use tokio::sync::{Mutex, watch};

pub(crate) use counters::{MOST_VALUES, NAMELESS, read_part};
pub(crate) use memory::Bucket;
use memory::Memory;
use plan::{Next, Plan};
pub(crate) use store::{add_sums, erase_counters, move_far_on, move_on, revision};

/// How long a caller waits for the fold before it is told that its event is queued.
const PATIENCE: Duration = Duration::from_secs(10);

/// Folds what has arrived. Cheap to clone.
#[derive(Clone)]
pub struct Folder {
    db: Db,
    due: Signal,
    /// One fold at a time on this node: another one would only be in its way.
    memory: Arc<Mutex<Memory>>,
}

/// What a fold found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Folded {
    Nothing,
    Some,
    /// Another node was faster.
    Raced,
}

impl Folder {
    pub fn new(db: Db) -> Self {
        Self { db, due: Signal::new(), memory: Arc::default() }
    }

    /// Something has arrived.
    pub fn wake(&self) {
        self.due.wake();
    }

    pub fn signal(&self) -> Signal {
        self.due.clone()
    }

    /// Folds what the app has waiting now; whether that was done in time.
    pub async fn settle(&self, app: AppId) -> Result<bool> {
        let begun = Ticker.now();
        let Some(last) = self.db.read(move |tx| store::last_arrival(tx, app)).await? else { return Ok(true) };
        while Ticker.since(begun) < PATIENCE {
            self.fold(app).await?;
            let first = self.db.read(move |tx| store::first_arrival(tx, app)).await?;
            if first.is_none_or(|first| first > last) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// One transaction's worth of an app's arrivals.
    async fn fold(&self, app: AppId) -> Result<Folded> {
        let mut memory = self.memory.lock().await;
        // Put back only when what it says has been committed.
        let known = memory.take(app);
        let had = memory.had(app);
        let read_before = had.clone();
        let is_alone = memory.others.are_quiet(Ticker.now());
        let most = memory.pace(app, is_alone).rows();
        let read = self.db.snapshot(move |tx| store::waiting(tx, app, read_before.as_deref(), most)).await?;
        let Some(waiting) = read else {
            return self.db.write(move |tx| store::forget(tx, app)).await.map(|forgotten| match forgotten {
                true => Folded::Some,
                false => Folded::Nothing,
            });
        };
        if waiting.arrivals.is_empty() {
            if let Some(known) = known {
                memory.put(app, known);
            }
            return Ok(Folded::Nothing);
        }
        let mut known = known.filter(|known| known.revision == waiting.revision).unwrap_or_default();
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let Next { arrivals, mut events, is_full } = plan::next(waiting.arrivals, had.as_deref(), most)?;
        let wanted = known.missing(&events);
        if !wanted.is_empty() {
            known.learn(self.db.snapshot(move |tx| store::load(tx, app, &wanted)).await?);
        }
        let buckets = known.buckets_to_load(&events)?;
        if !buckets.is_empty() {
            known.learn_counters(self.db.snapshot(move |tx| store::load_counters(tx, app, &buckets)).await?)?;
            known.keep_countable(&mut events)?;
        }
        let plan = Plan::of(&mut known, waiting.revision, &arrivals, events, most)?;
        known.revision = plan.revision();
        let plan = Arc::new(plan);
        let (planned, db) = (Arc::clone(&plan), self.db.clone());
        let write = move |tx: &mut Tx<'_>| {
            let began = Ticker.now();
            Ok(store::write(tx, app, &planned)?.then(|| (Ticker.since(began), db.has_waiting_writers())))
        };
        let written = match is_alone {
            true => self.db.write_alone(write).await?,
            false => self.db.write(write).await?,
        };
        let Some((took, has_kept_waiting)) = written else { return Ok(Folded::Raced) };
        if has_kept_waiting {
            memory.others.have_waited(Ticker.now());
        }
        // A step that ended for another reason would not have written more rows if it might have.
        memory.pace(app, is_alone).took(took, waiting.is_cut || is_full || plan.is_full);
        memory.keep(app, plan.begun.as_ref());
        memory.put(app, known);
        Ok(Folded::Some)
    }
}

/// Runs on one node at a time: the others' memory would be of no use. Apps are served in turn, so that neither one that
/// sends much nor one whose events cannot be folded keeps the others waiting.
pub struct FoldJob {
    folder: Folder,
    last: Mutex<Option<AppId>>,
}

impl FoldJob {
    pub fn new(folder: Folder) -> Self {
        Self { folder, last: Mutex::default() }
    }
}

impl Job for FoldJob {
    fn name(&self) -> &'static str {
        "event-fold"
    }

    /// Events that another node took in are found by looking.
    fn every(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.folder.due.listen()]
    }

    async fn run(&self) -> Result<Worked> {
        let mut last = self.last.lock().await;
        let mut failed = HashSet::new();
        loop {
            let before = *last;
            *last = self.folder.db.read(move |tx| store::next_app(tx, before)).await?;
            let Some(app) = *last else { return Ok(Worked::Nothing) };
            match self.folder.fold(app).await {
                Ok(_) => return Ok(Worked::Something),
                // A whole round without success: the job is tried again after a pause.
                Err(error) if !failed.insert(app) => {
                    return Err(Error::internal(format!("events of {app}: {error:?}")));
                }
                Err(_) => {}
            }
        }
    }

    /// Not one that gives way: while much arrives it would fall behind, and numbers would be late by seconds.
    fn thread(&self) -> JobThread {
        JobThread::Own
    }

    /// An arrival is due at once.
    async fn next_due(&self) -> Result<Option<Timestamp>> {
        self.folder.db.read(store::oldest).await
    }
}

#[cfg(test)]
mod tests;
