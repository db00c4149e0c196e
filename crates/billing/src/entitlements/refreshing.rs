//! Entitlements that time or a changed plan has made old: worked out again and told, a bounded number at a time. Readers need
//! not wait for it: they see that a set is old and work it out for themselves.

use std::time::Duration;

use ::store::{Db, Tx, args};
use kernel::{Code, Result, Timestamp};
use spine::{Job, Signal, Worked};
use tenancy::apps;
use tokio::sync::watch;

use super::store::{DUE, FORGET, NEXT_DUE, OF_CHANGED_PLANS, Stale};
use crate::subscriptions;

/// Workspaces per run.
const BATCH: i64 = 100;

pub struct Refreshing {
    pub db: Db,
    /// Rings when a plan was changed.
    pub plans_changed: Signal,
}

impl Job for Refreshing {
    fn name(&self) -> &'static str {
        "entitlements"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(30)
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.plans_changed.listen()]
    }

    async fn run(&self) -> Result<Worked> {
        let now = self.db.clock().now();
        let stale = self.db.read(move |tx| {
            let mut stale = tx.all::<Stale>(DUE, &args![now, BATCH])?;
            stale.extend(tx.all::<Stale>(OF_CHANGED_PLANS, &args![BATCH])?);
            Ok(stale)
        });
        let stale = stale.await?;
        for Stale { app, tenant } in &stale {
            let (app, tenant) = (*app, *tenant);
            self.db.write(move |tx| refresh(tx, &Stale { app, tenant })).await?;
        }
        Ok(Worked::some_if(!stale.is_empty()))
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        let now = self.db.clock().now();
        let next = self.db.read(move |tx| {
            let old: Option<Stale> = tx.opt(OF_CHANGED_PLANS, &args![1])?;
            let due: Option<(Option<Timestamp>,)> = tx.opt(NEXT_DUE, &[])?;
            Ok(old.map(|_| now).or(due.and_then(|(at,)| at)))
        });
        next.await
    }
}

fn refresh(tx: &mut Tx<'_>, stale: &Stale) -> Result<()> {
    let found = apps::get(tx, stale.app).and_then(|app| subscriptions::catch_up(tx, &app, stale.tenant));
    match found {
        Ok(()) => super::refresh(tx, stale.app, stale.tenant).map(|_| ()),
        // It went meanwhile, and its rows are about to.
        Err(error) if error.code() == Code::NotFound => tx.run(FORGET, &args![stale.app, stale.tenant]),
        Err(error) => Err(error),
    }
}
