//! Gives positions to facts once they are committed.
//!
//! On PostgreSQL concurrent commits become visible out of order, so a number taken at insert would let readers pass a
//! fact that is not visible yet. Here any node takes the lock on the one head row and numbers what it can see; whoever
//! sees a position sees all before it. On SQLite a trigger numbers at insert and this finds nothing to do.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use kernel::{Error, Result};
use store::{Db, Tx, args};
use tokio::sync::watch;

use crate::{Job, Signal, Worked};

const BATCH: i64 = 500;

const LOOK: &str = "SELECT last_position, \
                    CAST(CASE WHEN EXISTS (SELECT 1 FROM outbox WHERE position IS NULL) THEN 1 ELSE 0 END AS BIGINT) \
                    FROM outbox_head WHERE id = 1";
/// Changes nothing but takes the row's lock until the transaction ends.
const LOCK: &str = "UPDATE outbox_head SET last_position = last_position WHERE id = 1 RETURNING last_position";
/// In the order of insertion, which is never against the order of cause and effect, whatever the nodes' clocks say.
const NUMBER: &str = "UPDATE outbox SET position = $1 + numbered.place \
     FROM (SELECT id, row_number() OVER (ORDER BY inserted, id) AS place \
           FROM (SELECT id, inserted FROM outbox WHERE position IS NULL ORDER BY inserted, id LIMIT $2) AS waiting) \
          AS numbered \
     WHERE outbox.id = numbered.id";
const MOVE: &str = "UPDATE outbox_head SET last_position = $1 WHERE id = 1";

/// Numbers a batch of committed facts; how many.
pub fn number(tx: &mut Tx<'_>) -> Result<u64> {
    let (last,): (i64,) = tx.one(LOCK, &[])?;
    let numbered = tx.exec(NUMBER, &args![last, BATCH])?;
    let moved = i64::try_from(numbered).map_err(Error::internal)?;
    tx.exec(MOVE, &args![last + moved])?;
    Ok(numbered)
}

/// The last position given.
pub(super) async fn head(db: &Db) -> Result<i64> {
    look(db).await.map(|(last, _)| last)
}

async fn look(db: &Db) -> Result<(i64, bool)> {
    let row = db.get_one::<(i64, i64)>(LOOK, &[]).await?;
    let (last, waiting) = row.ok_or_else(|| Error::internal("outbox_head has lost its row"))?;
    Ok((last, waiting == 1))
}

/// Numbers facts, and tells this node's readers, and through the database the other nodes, that the head moved.
pub(super) struct Sequencer {
    db: Db,
    head: Signal,
    told: AtomicI64,
}

impl Sequencer {
    pub(super) fn new(db: Db, head: Signal, start: i64) -> Self {
        Self { db, head, told: AtomicI64::new(start) }
    }
}

impl Job for Sequencer {
    fn name(&self) -> &'static str {
        "outbox-sequencer"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.db.wakeups()]
    }

    async fn run(&self) -> Result<Worked> {
        let (last, waiting) = look(&self.db).await?;
        if self.told.swap(last, Ordering::Relaxed) != last {
            self.head.wake();
        }
        if !waiting {
            return Ok(Worked::Nothing);
        }
        let numbered = self.db.write(number).await?;
        if numbered > 0 {
            self.db.wake();
        }
        Ok(Worked::Something)
    }
}
