//! The ingest path: many callers' rows folded into one transaction, each caller answered for its own rows.
//!
//! However many kinds of rows there are, their batches together take at most half of PostgreSQL's connection threads, so
//! that a flood of events or a slow batch never keeps a login waiting.

use std::{ops::Range, sync::Arc, time::Duration};

use kernel::{Code, Error, Kind, Result};
use tokio::sync::{
    Mutex, OwnedSemaphorePermit, Semaphore,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    oneshot,
};
use tokio::time::timeout;

use crate::{Db, EngineName, Limits, Tx, fault};

/// Something that arrives row by row, or in lists, at a high rate and is stored in batches.
pub trait Ingest: Send + Sync + 'static {
    type Row: Send + Sync + 'static;
    type Answer: Send + 'static;

    /// Stores all rows (usually by one [`Tx::insert_all`]) and answers each, in order. When it fails, the batch is
    /// split until the row at fault stands alone.
    fn store(tx: &mut Tx<'_>, rows: &[Self::Row]) -> Result<Vec<Self::Answer>>;
}

/// A batch takes in no further call once it has this many rows.
const BATCH: usize = 512;
/// How long a batch waits for the one before it.
const PATIENCE: Duration = Duration::from_millis(5);
/// Rows of one call.
pub const LONGEST_LIST: usize = 1_000;
/// Rows that may wait; beyond that callers get 503.
const QUEUE: usize = 16 * 1024;

/// One call: a row or a list.
struct Waiting<I: Ingest> {
    rows: Vec<I::Row>,
    reply: oneshot::Sender<Vec<Result<I::Answer>>>,
    /// Its rows' part of the queue.
    _room: OwnedSemaphorePermit,
}

/// Hands rows to the batcher of one [`Ingest`]. Cheap to clone; the batcher ends with the last clone.
pub struct Ingestor<I: Ingest> {
    calls: UnboundedSender<Waiting<I>>,
    room: Arc<Semaphore>,
}

impl<I: Ingest> Clone for Ingestor<I> {
    fn clone(&self) -> Self {
        Self { calls: self.calls.clone(), room: self.room.clone() }
    }
}

impl<I: Ingest> Ingestor<I> {
    /// Stores one row; durable when it answers `Ok`.
    pub async fn store(&self, row: I::Row) -> Result<I::Answer> {
        let mut outcomes = self.store_list(vec![row]).await?;
        outcomes.pop().unwrap_or_else(|| Err(fault::closed()))
    }

    /// Stores a list of at most [`LONGEST_LIST`] rows in one transaction; what has an `Ok` is durable when this answers.
    /// Outcomes are in the order of the rows. A row that the database refuses fails alone: the others are then stored
    /// without it. The outer error means that nothing was taken.
    pub async fn store_list(&self, rows: Vec<I::Row>) -> Result<Vec<Result<I::Answer>>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let count = u32::try_from(rows.len()).ok().filter(|_| rows.len() <= LONGEST_LIST);
        let count = count.ok_or_else(|| Error::internal(format!("a list of {} rows", rows.len())))?;
        let room = self.room.clone().try_acquire_many_owned(count).map_err(|_| fault::overloaded())?;
        let (reply, answer) = oneshot::channel();
        self.calls.send(Waiting { rows, reply, _room: room }).map_err(|_| fault::closed())?;
        answer.await.map_err(|_| fault::closed())
    }
}

impl Db {
    /// Starts the batcher for `I`. One per kind of row and process.
    pub fn ingestor<I: Ingest>(&self) -> Ingestor<I> {
        let (calls, queue) = unbounded_channel();
        let queue = Arc::new(Mutex::new(queue));
        let turn = Arc::new(Semaphore::new(1));
        // SQLite commits one at a time.
        let lanes = match self.engine() {
            EngineName::Sqlite => 1,
            EngineName::Postgres => 4,
        };
        for _ in 0..lanes {
            tokio::spawn(gather::<I>(self.clone(), queue.clone(), turn.clone()));
        }
        Ingestor { calls, room: Arc::new(Semaphore::new(QUEUE)) }
    }
}

/// How many batches of all kinds together may be under way.
pub(crate) fn slots(limits: &Limits) -> Semaphore {
    Semaphore::new((limits.connections / 2).max(1))
}

async fn gather<I: Ingest>(db: Db, queue: Arc<Mutex<UnboundedReceiver<Waiting<I>>>>, turn: Arc<Semaphore>) {
    loop {
        let mut calls = queue.lock().await;
        let Some(first) = calls.recv().await else { return };
        // While one batch commits, the next one gathers: few large batches cost a fraction of many small ones. A batch that
        // takes long, on a slow line or for a lock, is not waited for.
        let _turn = timeout(PATIENCE, turn.acquire()).await;
        // The queue stays locked while it waits for a slot: calls of the same kind gather behind it, and other kinds
        // get the next slots in turn.
        let Ok(_slot) = db.ingest_slots().acquire().await else { return };
        let mut count = first.rows.len();
        let mut batch = vec![first];
        while count < BATCH
            && let Ok(next) = calls.try_recv()
        {
            count += next.rows.len();
            batch.push(next);
        }
        drop(calls);
        store_batch::<I>(&db, batch).await;
    }
}

async fn store_batch<I: Ingest>(db: &Db, batch: Vec<Waiting<I>>) {
    let mut rows = Vec::new();
    let mut replies = Vec::with_capacity(batch.len());
    for call in batch {
        replies.push((call.rows.len(), call.reply));
        rows.extend(call.rows);
    }
    let mut outcomes = store_rows::<I>(db, rows).await.into_iter();
    for (count, reply) in replies {
        // The caller may have gone away; what it sent is stored all the same.
        let _ = reply.send(outcomes.by_ref().take(count).collect());
    }
}

/// Depth first over halves, so that outcomes have the order of the rows and only the row at fault fails.
async fn store_rows<I: Ingest>(db: &Db, rows: Vec<I::Row>) -> Vec<Result<I::Answer>> {
    let rows = Arc::new(rows);
    let mut outcomes = Vec::with_capacity(rows.len());
    let all = 0..rows.len();
    let mut parts = vec![all];
    while let Some(part) = parts.pop() {
        let (shared, range) = (rows.clone(), part.clone());
        match db.write(move |tx| store_part::<I>(tx, &shared, range.clone())).await {
            Ok(answers) => outcomes.extend(answers.into_iter().map(Ok)),
            Err(error) if part.len() > 1 && is_about_the_rows(&error) => {
                let middle = part.start + part.len() / 2;
                parts.push(middle..part.end);
                parts.push(part.start..middle);
            }
            Err(error) => outcomes.extend(part.map(|_| Err(fault::same_answer(&error)))),
        }
    }
    outcomes
}

fn store_part<I: Ingest>(tx: &mut Tx<'_>, rows: &[I::Row], part: Range<usize>) -> Result<Vec<I::Answer>> {
    let count = part.len();
    let answers = I::store(tx, &rows[part])?;
    if answers.len() == count {
        Ok(answers)
    } else {
        Err(Error::internal(format!("{count} rows but {} answers", answers.len())))
    }
}

/// An unreachable or overloaded database fails every row alike; splitting would only add to the load.
fn is_about_the_rows(error: &Error) -> bool {
    error.kind() != Kind::Unavailable && error.code() != Code::CommitUnknown
}
