//! The ingest path: many callers' rows folded into one transaction, each caller answered for its own row.

use std::sync::Arc;

use kernel::{Code, Error, Kind, Result};
use tokio::sync::{
    Mutex,
    mpsc::{Receiver, Sender, channel, error::TrySendError},
    oneshot,
};

use crate::{Db, EngineName, Tx, fault};

/// Something that arrives row by row at a high rate and is stored in batches.
pub trait Ingest: Send + Sync + 'static {
    type Row: Send + Sync + 'static;
    type Answer: Send + 'static;

    /// Stores all rows (usually by one [`Tx::insert_all`]) and answers each, in order. When it fails, the batch is
    /// split until the row at fault stands alone.
    fn store(tx: &mut Tx<'_>, rows: &[Self::Row]) -> Result<Vec<Self::Answer>>;
}

/// Rows that share a transaction.
const BATCH: usize = 512;
/// Rows that may wait; beyond that callers get 503.
const QUEUE: usize = 16 * 1024;

struct Waiting<I: Ingest> {
    row: I::Row,
    reply: oneshot::Sender<Result<I::Answer>>,
}

/// Hands rows to the batcher of one [`Ingest`]. Cheap to clone; the batcher ends with the last clone.
pub struct Ingestor<I: Ingest>(Sender<Waiting<I>>);

impl<I: Ingest> Clone for Ingestor<I> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<I: Ingest> Ingestor<I> {
    /// Stores one row; durable when it answers `Ok`.
    pub async fn store(&self, row: I::Row) -> Result<I::Answer> {
        let (reply, answer) = oneshot::channel();
        self.0.try_send(Waiting { row, reply }).map_err(|refused| match refused {
            TrySendError::Full(_) => fault::overloaded(),
            TrySendError::Closed(_) => fault::closed(),
        })?;
        answer.await.unwrap_or_else(|_| Err(fault::closed()))
    }
}

impl Db {
    /// Starts the batcher for `I`. One per kind of row and process.
    pub fn ingestor<I: Ingest>(&self) -> Ingestor<I> {
        let (sender, receiver) = channel(QUEUE);
        let receiver = Arc::new(Mutex::new(receiver));
        // While one batch commits, the next one gathers. SQLite commits one at a time, so more lanes would only make
        // smaller batches there.
        let lanes = match self.engine() {
            EngineName::Sqlite => 1,
            EngineName::Postgres => 4,
        };
        for _ in 0..lanes {
            tokio::spawn(gather::<I>(self.clone(), receiver.clone()));
        }
        Ingestor(sender)
    }
}

async fn gather<I: Ingest>(db: Db, queue: Arc<Mutex<Receiver<Waiting<I>>>>) {
    loop {
        let mut batch = Vec::new();
        if queue.lock().await.recv_many(&mut batch, BATCH).await == 0 {
            return;
        }
        store_batch::<I>(&db, batch).await;
    }
}

/// Depth first over halves, so that rows keep their order and only the row at fault fails.
async fn store_batch<I: Ingest>(db: &Db, batch: Vec<Waiting<I>>) {
    let mut parts = vec![batch];
    while let Some(part) = parts.pop() {
        let (rows, replies): (Vec<I::Row>, Vec<_>) =
            part.into_iter().map(|waiting| (waiting.row, waiting.reply)).unzip();
        let rows = Arc::new(rows);
        let shared = rows.clone();
        match db.write(move |tx| store_all::<I>(tx, &shared)).await {
            Ok(answers) => replies.into_iter().zip(answers).for_each(|(reply, answer)| drop(reply.send(Ok(answer)))),
            Err(error) if replies.len() > 1 && is_about_the_rows(&error) => {
                let Some(rows) = Arc::into_inner(rows) else { return fail_all::<I>(replies, &error) };
                let mut first: Vec<Waiting<I>> =
                    rows.into_iter().zip(replies).map(|(row, reply)| Waiting { row, reply }).collect();
                let second = first.split_off(first.len() / 2);
                parts.push(second);
                parts.push(first);
            }
            Err(error) => fail_all::<I>(replies, &error),
        }
    }
}

fn store_all<I: Ingest>(tx: &mut Tx<'_>, rows: &[I::Row]) -> Result<Vec<I::Answer>> {
    let answers = I::store(tx, rows)?;
    if answers.len() == rows.len() {
        Ok(answers)
    } else {
        Err(Error::internal(format!("{} rows but {} answers", rows.len(), answers.len())))
    }
}

/// An unreachable or overloaded database fails every row alike; splitting would only add to the load.
fn is_about_the_rows(error: &Error) -> bool {
    error.kind() != Kind::Unavailable && error.code() != Code::CommitUnknown
}

fn fail_all<I: Ingest>(replies: Vec<oneshot::Sender<Result<I::Answer>>>, error: &Error) {
    for reply in replies {
        let _ = reply.send(Err(fault::same_answer(error)));
    }
}
