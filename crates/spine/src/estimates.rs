//! Has the database measure tables that have grown, long before it would by itself.

use std::time::Duration;

use kernel::Result;
use store::Db;

use crate::{Job, Worked};

pub struct Measuring {
    pub db: Db,
}

impl Job for Measuring {
    fn name(&self) -> &'static str {
        "measure-tables"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn is_upkeep(&self) -> bool {
        true
    }

    async fn run(&self) -> Result<Worked> {
        self.db.measure_grown_tables().await.map(|()| Worked::Nothing)
    }
}
