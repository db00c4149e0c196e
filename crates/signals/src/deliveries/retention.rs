//! How long deliveries are kept once they have ended.

use std::time::Duration;

use kernel::Result;
use spine::{Job, Worked};
use store::Db;

use super::{DeliveryStatus, store as rows};
use crate::Settings;

const BATCH: i64 = 500;

/// Deletes what ended long ago, a few rows at a time.
pub(crate) struct Retention {
    pub(crate) db: Db,
    pub(crate) settings: Settings,
}

impl Job for Retention {
    fn name(&self) -> &'static str {
        "webhook-retention"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(3_600)
    }

    fn is_upkeep(&self) -> bool {
        true
    }

    async fn run(&self) -> Result<Worked> {
        let now = self.db.clock().now();
        let mut more = false;
        for (status, kept) in [
            (DeliveryStatus::Delivered, self.settings.keep_delivered),
            (DeliveryStatus::DeadLetter, self.settings.keep_dead),
        ] {
            let deleted = self.db.write(move |tx| rows::sweep(tx, status, now.minus(kept), BATCH)).await?;
            more |= i64::try_from(deleted).unwrap_or(i64::MAX) >= BATCH;
        }
        Ok(Worked::some_if(more))
    }
}
