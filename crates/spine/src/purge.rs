//! Purges: what is left to delete once something big is gone. The deletion itself is one small transaction that ends all
//! access and emits a fact; the rows that nobody can reach any more are deleted afterwards, a bounded batch at a time.
//!
//! A room registers a statement per table. A fact of that kind leaves a row, and a job works on it until every statement
//! finds nothing: safe to kill anywhere, and to run on several nodes.

use std::{sync::Arc, time::Duration};

use kernel::{AppId, Result, TenantId, Timestamp, id_kinds};
use store::{Db, Tx, args};
use tokio::sync::watch;

use crate::{Fact, Job, Outbox, Runner, Signal, Worked};

id_kinds! {
    /// One purge that is under way.
    PurgeId(PurgeEntry) = "purge";
}

/// Rows per statement and transaction: short enough that nobody waits for a purge.
const BATCH: i64 = 500;

/// What is deleted after which fact.
#[derive(Clone, Default)]
pub struct Purges(Vec<Rule>);

#[derive(Clone, Copy)]
struct Rule {
    kind: &'static str,
    scope: Scope,
    statement: &'static str,
}

#[derive(Clone, Copy)]
enum Scope {
    App,
    Workspace,
}

impl Purges {
    pub fn new() -> Self {
        Self::default()
    }

    /// After facts of this kind deletes an app's rows. `$1` is the app, `$2` how many rows to delete at most:
    /// `DELETE FROM t WHERE id IN (SELECT id FROM t WHERE app_id = $1 LIMIT $2)`.
    #[must_use]
    pub fn of_app(self, kind: &'static str, statement: &'static str) -> Self {
        self.with(Rule { kind, scope: Scope::App, statement })
    }

    /// The same for a workspace's rows. `$1` is the app, `$2` the workspace, `$3` the limit.
    #[must_use]
    pub fn of_workspace(self, kind: &'static str, statement: &'static str) -> Self {
        self.with(Rule { kind, scope: Scope::Workspace, statement })
    }

    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    fn with(mut self, rule: Rule) -> Self {
        self.0.push(rule);
        self
    }

    pub fn register(self, db: &Db, outbox: &mut Outbox, runner: &Runner) {
        let waiting = Signal::new();
        let (rules, bell) = (Arc::new(self.0), waiting.clone());
        let known = rules.clone();
        outbox.consume("purge", move |tx, fact| {
            if known.iter().any(|rule| rule.kind == fact.kind) {
                note(tx, fact)?;
                let bell = bell.clone();
                tx.on_commit(move || bell.wake());
            }
            Ok(())
        });
        runner.add(Purger { db: db.clone(), rules, waiting });
    }
}

fn note(tx: &mut Tx<'_>, fact: &Fact) -> Result<()> {
    let id: PurgeId = tx.new_id();
    tx.exec(
        "INSERT INTO purges (id, kind, app_id, tenant_id, created_at) VALUES ($1, $2, $3, $4, $5)",
        &args![id, fact.kind, fact.app, fact.tenant, tx.now()],
    )
    .map(|_| ())
}

struct Purger {
    db: Db,
    rules: Arc<Vec<Rule>>,
    waiting: Signal,
}

impl Job for Purger {
    fn name(&self) -> &'static str {
        "purge"
    }

    fn every(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.waiting.listen()]
    }

    async fn run(&self) -> Result<Worked> {
        if Job::next_due(self).await?.is_none() {
            return Ok(Worked::Nothing);
        }
        let rules = self.rules.clone();
        self.db.write(move |tx| one_batch(tx, &rules)).await.map(Worked::some_if)
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        let oldest = "SELECT created_at FROM purges ORDER BY id LIMIT 1";
        Ok(self.db.get_one::<(Timestamp,)>(oldest, &[]).await?.map(|(created_at,)| created_at))
    }
}

/// One batch of the oldest purge that no other node is at; it is done once a whole round found nothing.
fn one_batch(tx: &mut Tx<'_>, rules: &[Rule]) -> Result<bool> {
    type Entry = (PurgeId, String, AppId, Option<TenantId>);
    let next = "SELECT id, kind, app_id, tenant_id FROM purges ORDER BY id LIMIT 1 {claim}";
    let Some((id, kind, app, tenant)) = tx.opt::<Entry>(next, &[])? else { return Ok(false) };
    for rule in rules.iter().filter(|rule| rule.kind == kind) {
        let deleted = match (rule.scope, tenant) {
            (Scope::App, _) => tx.exec(rule.statement, &args![app, BATCH])?,
            (Scope::Workspace, Some(tenant)) => tx.exec(rule.statement, &args![app, tenant, BATCH])?,
            (Scope::Workspace, None) => 0,
        };
        if deleted > 0 {
            return Ok(true);
        }
    }
    tx.exec("DELETE FROM purges WHERE id = $1", &args![id])?;
    Ok(true)
}
