//! The passing of time: trials that run out, canceled subscriptions whose time is over, changes that waited for the end of
//! a period, bills that nobody pays.

use std::time::Duration;

use ::store::{Db, Tx, args};
use kernel::{Code, Result, Timestamp};
use spine::{Job, Worked};
use tenancy::apps;

use super::store::{DUE, Due, NEVER_DUE, NEXT_DUE};

/// Subscriptions per run.
const BATCH: i64 = 100;

/// Writes down what time has done to subscriptions, each in a transaction of its own.
pub struct Passing {
    pub db: Db,
}

impl Job for Passing {
    fn name(&self) -> &'static str {
        "subscriptions"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(30)
    }

    async fn run(&self) -> Result<Worked> {
        let now = self.db.clock().now();
        let due = self.db.read(move |tx| tx.all::<Due>(DUE, &args![now, BATCH])).await?;
        for Due { app, tenant } in &due {
            let (app, tenant) = (*app, *tenant);
            self.db.write(move |tx| pass_for(tx, &Due { app, tenant })).await?;
        }
        Ok(Worked::some_if(!due.is_empty()))
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        let next: Option<(Option<Timestamp>,)> = self.db.get_one(NEXT_DUE, &[]).await?;
        Ok(next.and_then(|(at,)| at))
    }
}

fn pass_for(tx: &mut Tx<'_>, due: &Due) -> Result<()> {
    let found = apps::get(tx, due.app).and_then(|app| super::locked(tx, &app, due.tenant));
    match found {
        Ok(_) => Ok(()),
        // It went meanwhile, and its rows are about to.
        Err(error) if error.code() == Code::NotFound => tx.run(NEVER_DUE, &args![due.app, due.tenant, tx.now()]),
        Err(error) => Err(error),
    }
}
