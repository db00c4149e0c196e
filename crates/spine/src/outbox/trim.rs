//! Forgets facts that everybody has read.

use std::time::Duration;

use kernel::Result;
use store::{Db, Tx, args};

use super::RETENTION;
use crate::{Job, Worked, lease};

const BATCH: i64 = 1_000;

const OLDEST: &str = "SELECT position, CAST(CASE WHEN recorded_at <= {db_now} - $1 THEN 1 ELSE 0 END AS BIGINT) \
     FROM outbox WHERE position <= COALESCE((SELECT min(position) FROM outbox_cursors), position) \
     ORDER BY position LIMIT $2";
const DELETE: &str = "DELETE FROM outbox WHERE position <= $1";

/// Deletes a batch of facts that all consumers have passed and that are at least `keep` old by the database's clock;
/// how many. Only from the front, so that what is left has no holes.
pub fn trim(tx: &mut Tx<'_>, keep: Duration) -> Result<u64> {
    let oldest: Vec<(i64, i64)> = tx.all(OLDEST, &args![lease::micros(keep), BATCH])?;
    let Some((last, _)) = oldest.into_iter().take_while(|(_, old)| *old == 1).last() else { return Ok(0) };
    tx.exec(DELETE, &args![last])
}

pub(super) struct Trimmer {
    pub(super) db: Db,
}

impl Job for Trimmer {
    fn name(&self) -> &'static str {
        "outbox-trim"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn is_upkeep(&self) -> bool {
        true
    }

    async fn run(&self) -> Result<Worked> {
        let trimmed = self.db.write(|tx| trim(tx, RETENTION)).await?;
        Ok(Worked::some_if(trimmed > 0))
    }
}
