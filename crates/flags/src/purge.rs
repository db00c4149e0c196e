//! Removes what belonged to deleted apps, a bounded piece at a time.

use std::time::Duration;

use kernel::{AppId, Result};
use spine::{Job, News, Signal, Worked};
use store::{Db, Tx, args};
use tokio::sync::watch;

/// Every app with anything to remove has a row there.
const ORPHAN: &str = "SELECT app_id FROM flag_revisions \
                      WHERE NOT EXISTS (SELECT 1 FROM apps WHERE apps.id = flag_revisions.app_id) LIMIT 1";

/// Rows removed per table and run.
const BATCH: i64 = 500;

const TABLES: &[&str] = &[
    "DELETE FROM flags WHERE app_id = $1 AND id IN (SELECT id FROM flags WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM flag_groups WHERE app_id = $1 AND id IN (SELECT id FROM flag_groups WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM flag_versions WHERE app_id = $1 \
     AND subject_id IN (SELECT subject_id FROM flag_versions WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM flag_discoveries WHERE app_id = $1 \
     AND key IN (SELECT key FROM flag_discoveries WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM flag_evaluations WHERE app_id = $1 \
     AND key IN (SELECT key FROM flag_evaluations WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM flag_last_uses WHERE app_id = $1 AND key IN (SELECT key FROM flag_last_uses WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM flag_call_sites WHERE app_id = $1 \
     AND key IN (SELECT key FROM flag_call_sites WHERE app_id = $1 LIMIT $2)",
];

/// Looks for what is left of apps that are gone; woken when this node hears of one.
pub(crate) struct Purger {
    db: Db,
    signal: Signal,
}

impl Purger {
    pub(crate) fn new(db: Db) -> Self {
        Self { db, signal: Signal::new() }
    }

    pub(crate) fn ears(&self) -> impl Fn(News<'_>) + Send + Sync + use<> {
        let signal = self.signal.clone();
        move |news| match news {
            News::Fact(fact) if fact.kind != tenancy::apps::DELETED => {}
            News::Fact(_) | News::Gap => signal.wake(),
        }
    }
}

impl Job for Purger {
    fn name(&self) -> &'static str {
        "flags-purge"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(600)
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.signal.listen()]
    }

    async fn run(&self) -> Result<Worked> {
        let Some((app,)) = self.db.get_one::<(AppId,)>(ORPHAN, &[]).await? else { return Ok(Worked::Nothing) };
        self.db.write(move |tx| remove(tx, app)).await?;
        Ok(Worked::Something)
    }
}

fn remove(tx: &mut Tx<'_>, app: AppId) -> Result<()> {
    let mut removed = 0;
    for sql in TABLES {
        removed += tx.exec(sql, &args![app, BATCH])?;
    }
    if removed == 0 {
        tx.exec("DELETE FROM flag_revisions WHERE app_id = $1", &args![app])?;
    }
    Ok(())
}
