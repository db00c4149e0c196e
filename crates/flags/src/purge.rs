//! Removes what belonged to deleted apps, a bounded piece at a time.

use std::time::Duration;

use kernel::{AppId, Result};
use spine::{Fact, Job, Worked};
use store::{Db, Tx, args};

const NOTE: &str = "INSERT INTO flag_purges (app_id) VALUES ($1) ON CONFLICT (app_id) DO NOTHING";

/// Hears of deleted apps.
pub(crate) fn note(tx: &mut Tx<'_>, fact: &Fact) -> Result<()> {
    match fact.app {
        Some(app) if fact.kind == tenancy::apps::DELETED => tx.exec(NOTE, &args![app]).map(|_| ()),
        _ => Ok(()),
    }
}

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

pub(crate) struct Purger(pub(crate) Db);

impl Job for Purger {
    fn name(&self) -> &'static str {
        "flags-purge"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(60)
    }

    async fn run(&self) -> Result<Worked> {
        self.0.write(|tx| {
            let Some((app,)) = tx.opt::<(AppId,)>("SELECT app_id FROM flag_purges ORDER BY app_id LIMIT 1", &[])? else {
                return Ok(Worked::Nothing);
            };
            let mut removed = 0;
            for sql in TABLES {
                removed += tx.exec(sql, &args![app, BATCH])?;
            }
            if removed == 0 {
                tx.exec("DELETE FROM flag_revisions WHERE app_id = $1", &args![app])?;
                tx.exec("DELETE FROM flag_purges WHERE app_id = $1", &args![app])?;
            }
            Ok(Worked::Something)
        })
        .await
    }
}
