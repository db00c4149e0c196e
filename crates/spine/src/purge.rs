//! What follows a deletion. Deleting ends all access in one small step and leaves a row in `purges`; this job deletes
//! what the rooms' registers say belonged to it, a few rows at a time, and forgets the deletion when nothing is left.
//!
//! It looks for what is left instead of keeping count, so it can be killed anywhere and started again.

use std::time::Duration;

use kernel::{AppId, Result, Ticker, Timestamp};
use store::{Db, Owned, Owner, Table, Tx, args, row, sql};
use tokio::sync::watch;

use crate::{Job, Lease, News, Pace, Signal, Worked, outbox, pace::LONGEST_STEP};

/// Rows that one statement deletes at most.
const MOST_ROWS: i64 = 500;
const FEWEST_ROWS: i64 = 20;
/// After this time others of this node's jobs and the next deletion have their turn.
const LONGEST_RUN: Duration = Duration::from_millis(250);
/// Whoever was at work during the deletion may still add a row, so it is looked at once more after this time.
const SETTLED_AFTER: Duration = Duration::from_secs(60);

/// A deletion whose remains are not known to be gone.
#[derive(Clone, Debug)]
struct Purge {
    app: AppId,
    by: Owner,
    owner: String,
    created_at: Timestamp,
}

row! { Purge = "purges" { app: "app_id", by: "belongs_by", owner: "owner_id", created_at } }

const REMEMBER: &str = "INSERT INTO purges (app_id, belongs_by, owner_id, created_at, due_at) \
     SELECT app_id, belongs_by, owner_id, created_at, created_at FROM {rows} WHERE true \
     ON CONFLICT (app_id, belongs_by, owner_id) DO UPDATE SET created_at = excluded.created_at, due_at = excluded.due_at";
const NEXT: &str = sql!("SELECT ", Purge::COLUMNS, " FROM purges WHERE due_at <= $1 ORDER BY due_at LIMIT 1");
/// All of them about this very deletion: there may have been another one since, or rows that come instead.
const HOLD: &str = "UPDATE purges SET due_at = due_at \
                    WHERE app_id = $1 AND belongs_by = $2 AND owner_id = $3 AND created_at = $4";
const LOOK_AGAIN: &str = "UPDATE purges SET due_at = $5 \
                          WHERE app_id = $1 AND belongs_by = $2 AND owner_id = $3 AND created_at = $4";
const FORGET: &str = "DELETE FROM purges WHERE app_id = $1 AND belongs_by = $2 AND owner_id = $3 AND created_at = $4";

const EXPECT: &str =
    "INSERT INTO purges (app_id, belongs_by, owner_id, created_at, due_at) VALUES ($1, $2, $3, $4, $5)";
/// What does not merely wait for its last look, and not for one that is near: clocks of nodes differ a little.
const UNDER_WAY: &str = "SELECT due_at FROM purges WHERE app_id = $1 AND (due_at < $2 OR due_at <> created_at + $3) \
     ORDER BY due_at DESC LIMIT 1";
const FORGET_ALL: &str = "DELETE FROM purges WHERE app_id = $1";
const NEAR: Duration = Duration::from_secs(10);
const POSTPONE: &str = "UPDATE purges SET due_at = $5 WHERE app_id = $1 AND belongs_by = $2 AND owner_id = $3 \
     AND due_at > $4";
const CALL_OFF: &str = "DELETE FROM purges WHERE app_id = $1 AND belongs_by = $2 AND owner_id = $3 AND due_at > $4";

/// Whether rows of an app that is not there may be put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Yes,
    /// Something of the app is being deleted, which ends soon.
    AfterDeletion,
    /// Somebody else puts them in.
    Elsewhere,
}

/// Before rows of an app are put in that is not there yet, whose lock the caller holds: what is there at that time without the app
/// is deleted, unless it was called off. Where one with this id was deleted, nothing was left and every consumer knows, nobody looks
/// again.
pub fn expect(tx: &mut Tx<'_>, app: AppId, at: Timestamp) -> Result<Expected> {
    let (now, settled) = (tx.now(), i64::try_from(SETTLED_AFTER.as_micros()).unwrap_or(i64::MAX));
    let under_way: Option<(Timestamp,)> = tx.opt(UNDER_WAY, &args![app, now.plus(NEAR), settled])?;
    match under_way {
        Some((due,)) if due > now.plus(SETTLED_AFTER) => return Ok(Expected::Elsewhere),
        Some(_) => return Ok(Expected::AfterDeletion),
        // Whoever is told of the deletion later would take it for that of the new rows.
        None if !outbox::is_read_by_all(tx, app)? => return Ok(Expected::AfterDeletion),
        None => {}
    }
    tx.run(FORGET_ALL, &args![app])?;
    tx.run(EXPECT, &args![app, Owner::App, app, now, at])?;
    Ok(Expected::Yes)
}

/// More time for what is expected; false when it was too late to ask.
pub fn postpone(tx: &mut Tx<'_>, app: AppId, at: Timestamp) -> Result<bool> {
    tx.changes_one(POSTPONE, &args![app, Owner::App, app, tx.now(), at])
}

/// The app is there with all of its rows; false when that came too late.
pub fn call_off(tx: &mut Tx<'_>, app: AppId) -> Result<bool> {
    tx.changes_one(CALL_OFF, &args![app, Owner::App, app, tx.now()])
}

/// Has everything deleted that belongs to these owners. Call it in the transaction that deletes them.
pub fn remember<Id: ToString>(tx: &mut Tx<'_>, app: AppId, by: Owner, owners: &[Id]) -> Result<()> {
    let now = tx.now();
    let rows: Vec<_> = owners.iter().map(|owner| (app, by, owner.to_string(), now)).collect();
    tx.insert_all(REMEMBER, ["app_id", "belongs_by", "owner_id", "created_at"], &rows)
}

/// Deletes what deleted apps, workspaces and people left behind. One node at a time does it.
pub struct Purger {
    db: Db,
    tables: Vec<&'static Table>,
    lease: Lease,
    news: Signal,
    /// How many rows a statement may delete.
    pace: Pace,
}

impl Purger {
    pub fn new(db: Db, tables: Vec<&'static Table>) -> Self {
        let pace = Pace::new(100, (FEWEST_ROWS, MOST_ROWS));
        Self { lease: Lease::new(&db, "purge"), db, tables, news: Signal::new(), pace }
    }

    /// Wakes the job. For [`Outbox::follow`](crate::Outbox::follow), after facts that tell of deletions.
    pub fn ears(&self) -> impl Fn(News<'_>) + Send + Sync + use<> {
        let news = self.news.clone();
        move |_| news.wake()
    }

    /// Goes through all tables once, or as far as the time allows; whether nothing was found in any.
    async fn pass(&self, purge: &Purge) -> Result<bool> {
        let started = Ticker.now();
        let tables: Vec<&'static Owned> = self.tables.iter().filter_map(|table| table.purge_of(purge.by)).collect();
        let (mut position, mut found) = (0, false);
        while position < tables.len() {
            let (left, purge, rows) = (tables[position..].to_vec(), purge.clone(), self.pace.rows());
            let step = self.db.write(move |tx| delete_some(tx, &left, &purge, rows)).await?;
            position += step.emptied;
            found |= step.deleted > 0;
            self.pace.took(step.took, true);
            if Ticker.since(started) > LONGEST_RUN {
                return Ok(false);
            }
            // Half of the writer's time is left to others, however long a deletion takes.
            tokio::time::sleep(step.took).await;
        }
        Ok(!found)
    }

    /// When to look at it again; never when nothing is left that could still be added to.
    fn again_at(&self, purge: &Purge, clean: &Result<bool>) -> Option<Timestamp> {
        let now = self.db.clock().now();
        let settled_at = purge.created_at.plus(SETTLED_AFTER);
        match clean {
            Ok(true) if now >= settled_at => None,
            Ok(true) => Some(settled_at),
            // Behind the others that wait, so that a large deletion does not hold up small ones.
            Ok(false) => Some(now),
            Err(_) => Some(now.plus(SETTLED_AFTER)),
        }
    }
}

impl Job for Purger {
    fn name(&self) -> &'static str {
        "purge"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(30)
    }

    fn is_upkeep(&self) -> bool {
        true
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.news.listen()]
    }

    async fn run(&self) -> Result<Worked> {
        let now = self.db.clock().now();
        let Some(purge) = self.db.get_one::<Purge>(NEXT, &args![now]).await? else { return Ok(Worked::Nothing) };
        if !self.lease.hold().await? {
            return Ok(Worked::Nothing);
        }
        let clean = self.pass(&purge).await;
        let again_at = self.again_at(&purge, &clean);
        let Purge { app, by, owner, created_at } = purge;
        match again_at {
            Some(at) => self.db.exec_one(LOOK_AGAIN, &args![app, by, owner, created_at, at]).await?,
            None => self.db.exec_one(FORGET, &args![app, by, owner, created_at]).await?,
        };
        clean.map(|_| Worked::Something)
    }

    async fn stopped(&self) {
        self.lease.give_back().await;
    }
}

struct Step {
    /// How many of the tables have nothing left to delete.
    emptied: usize,
    deleted: u64,
    took: Duration,
}

/// One short transaction: tables in order until as much was deleted from one as may be, or the time is over.
fn delete_some(tx: &mut Tx<'_>, tables: &[&'static Owned], purge: &Purge, rows: i64) -> Result<Step> {
    let started = Ticker.now();
    let mut step = Step { emptied: 0, deleted: 0, took: Duration::ZERO };
    // Whoever is late, after another node has dealt with it, deletes nothing.
    if !tx.changes_one(HOLD, &args![purge.app, purge.by, purge.owner, purge.created_at])? {
        step.emptied = tables.len();
        return Ok(step);
    }
    for owned in tables {
        let app = owned.app.of(purge.app);
        let deleted = match purge.by {
            Owner::App => tx.exec(owned.purge, &args![app, rows])?,
            _ => tx.exec(owned.purge, &args![app, rows, purge.owner])?,
        };
        step.deleted += deleted;
        step.took = Ticker.since(started);
        let full = i64::try_from(deleted).unwrap_or(i64::MAX) >= rows;
        step.emptied += usize::from(!full);
        if full || step.took > LONGEST_STEP / 2 {
            break;
        }
    }
    Ok(step)
}

/// Deletes what has expired, by the registers. Late is harmless: every use looks at the time itself.
pub struct Sweeper {
    pub db: Db,
    pub tables: Vec<&'static Table>,
}

impl Job for Sweeper {
    fn name(&self) -> &'static str {
        "sweep"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(3600)
    }

    fn is_upkeep(&self) -> bool {
        true
    }

    async fn run(&self) -> Result<Worked> {
        let mut more = false;
        for expiry in self.tables.iter().filter_map(|table| table.expiry.as_ref()) {
            let before = self.db.clock().now().minus(expiry.kept_for);
            let deleted = self.db.exec_one(expiry.sweep, &args![before, MOST_ROWS]).await?;
            more |= i64::try_from(deleted).unwrap_or(i64::MAX) >= MOST_ROWS;
        }
        Ok(Worked::some_if(more))
    }
}

#[cfg(test)]
mod tests {
    use store::{Migration, on_both_engines, table, testing::TestDb};

    use super::*;

    on_both_engines!(TABLES: whoever_is_late_deletes_nothing);

    const TABLES: &[Migration] = &[Migration::shared(
        1,
        "purges",
        "CREATE TABLE purges (app_id {key} NOT NULL, belongs_by {key} NOT NULL, owner_id {key} NOT NULL, \
         created_at {int} NOT NULL, due_at {int} NOT NULL, PRIMARY KEY (app_id, belongs_by, owner_id)) {strict}; \
         CREATE TABLE toys (id {key} PRIMARY KEY, app_id {key} NOT NULL) {strict}; \
         INSERT INTO toys (id, app_id) SELECT 'ball', 'app_00000000000000000000000007'",
    )];
    static TOYS: Table = table!("toys"("id") of app);

    async fn whoever_is_late_deletes_nothing(test: TestDb) {
        let (db, app) = (test.db, AppId::from_u128(7));
        let found = db.write(move |tx| {
            remember(tx, app, Owner::App, &[app])?;
            tx.one::<Purge>(NEXT, &args![tx.now()])
        });
        let found = found.await.expect("remembered");
        let step = |purge: Purge| {
            let toys = TOYS.purge_of(Owner::App).expect("they belong to apps");
            db.write(move |tx| delete_some(tx, &[toys], &purge, 10).map(|step| (step.emptied, step.deleted)))
        };
        let late = Purge { created_at: found.created_at.minus(SETTLED_AFTER), ..found.clone() };
        assert_eq!(step(late).await.expect("looked"), (1, 0));
        assert_eq!(step(found).await.expect("purged"), (1, 1));
    }
}
