//! Durable readers of the outbox: one cursor each, facts in order, effects and cursor in one transaction.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use kernel::{AppId, Error, Result, Ticker, Timestamp};
use store::{Db, Tx, args, row, sql};
use tokio::sync::watch;

use super::{
    Fact, FactId, Reader,
    fact::{AFTER, AFTER_OF, columns},
};
use crate::{Job, Signal, Worked, lease};

pub(super) type Handler = Arc<dyn Fn(&mut Tx<'_>, &[Fact]) -> Result<()> + Send + Sync>;

const BATCH: i64 = 100;
/// Facts that are handled at once.
const TOGETHER: usize = 16;
/// SQLite has one writer: a batch that has taken this long lets others write first.
const LONGEST_BATCH: Duration = Duration::from_millis(8);
/// Renewed by every batch; a node that died is replaced after this time.
const LEASE: Duration = Duration::from_secs(15);
/// So often may a handler fail on one fact before it is parked.
const ATTEMPTS: i64 = 10;
const LONGEST_ERROR: usize = 2_000;

const BEHIND: &str = "SELECT outbox_cursors.position FROM outbox_cursors, outbox_head \
     WHERE outbox_cursors.name = $1 AND outbox_head.id = 1 AND outbox_cursors.position < outbox_head.last_position \
     AND (lease_owner IS NULL OR lease_owner = $2 OR lease_until < {db_now}) \
     AND (next_attempt_at IS NULL OR next_attempt_at <= $3)";
/// The row stays locked until the cursor has moved, so that no second node can handle the same facts even when the
/// first one outlives its lease.
const CLAIM: &str = "SELECT position, attempts FROM outbox_cursors WHERE name = $1 \
     AND (lease_owner IS NULL OR lease_owner = $2 OR lease_until < {db_now}) \
     AND (next_attempt_at IS NULL OR next_attempt_at <= $3) {claim}";
const ADVANCE: &str = "UPDATE outbox_cursors SET position = $2, attempts = $3, next_attempt_at = $4, last_error = $5, \
                       lease_owner = $6, lease_until = {db_now} + $7 WHERE name = $1";
const RELEASE: &str =
    "UPDATE outbox_cursors SET lease_owner = NULL, lease_until = NULL WHERE name = $1 AND lease_owner = $2";
const NEXT_DUE: &str = "SELECT outbox.created_at, outbox_cursors.next_attempt_at FROM outbox_cursors, outbox \
                        WHERE outbox_cursors.name = $1 AND outbox.position = outbox_cursors.position + 1";
const HEAD: &str = "SELECT last_position FROM outbox_head WHERE id = 1";
/// What the consumer passes over is not waiting work.
const NEXT_DUE_OF: &str = "SELECT outbox.created_at, outbox_cursors.next_attempt_at FROM outbox_cursors, outbox \
                           WHERE outbox_cursors.name = $1 AND outbox.position > outbox_cursors.position \
                           AND outbox.kind = ANY($2) ORDER BY outbox.position LIMIT 1";
const PARK: &str = "INSERT INTO outbox_parked (consumer, position, fact_id, kind, app_id, tenant_id, payload, \
                    created_at, attempts, error, parked_at, actor, address, request_id) \
                    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
const PARKED: &str =
    sql!("SELECT ", Parked::COLUMNS, " FROM outbox_parked ORDER BY parked_at DESC, consumer, position DESC LIMIT $1");

const RETRYING: &str = "SELECT name, last_error FROM outbox_cursors WHERE attempts > 0 ORDER BY name";

/// A consumer as it was registered.
#[derive(Clone)]
pub(super) struct Registered {
    pub(super) reader: Reader,
    pub(super) handle: Handler,
}

impl Registered {
    /// The next facts after a position, and the position up to which there are no others.
    fn batch(&self, tx: &mut Tx<'_>, after: i64) -> Result<(Vec<Fact>, i64)> {
        let Some(kinds) = self.reader.kinds else {
            let facts = tx.all::<Fact>(AFTER, &args![after, BATCH])?;
            let last = facts.last().map_or(after, |fact| fact.position);
            return Ok((facts, last));
        };
        let (head,): (i64,) = tx.one(HEAD, &[])?;
        let facts = tx.all::<Fact>(AFTER_OF, &args![after, head, owned(kinds), BATCH])?;
        let last = facts.last().filter(|_| facts.len() as i64 >= BATCH).map_or(head, |fact| fact.position);
        Ok((facts, last))
    }
}

fn owned(kinds: &[&str]) -> Vec<String> {
    kinds.iter().map(|kind| (*kind).to_owned()).collect()
}

pub(super) struct Consumer {
    db: Db,
    /// Woken when there is something for it.
    news: Signal,
    registered: Registered,
    owner: String,
}

impl Consumer {
    pub(super) fn new(db: Db, news: Signal, registered: Registered, owner: String) -> Self {
        Self { db, news, registered, owner }
    }
}

impl Job for Consumer {
    fn name(&self) -> &'static str {
        self.registered.reader.name
    }

    fn every(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.news.listen()]
    }

    async fn run(&self) -> Result<Worked> {
        let now = self.db.clock().now();
        let name = self.registered.reader.name;
        if self.db.get_one::<(i64,)>(BEHIND, &args![name, self.owner, now]).await?.is_none() {
            return Ok(Worked::Nothing);
        }
        let (registered, owner) = (self.registered.clone(), self.owner.clone());
        let batch = self.db.write(move |tx| handle_batch(tx, &registered, &owner)).await?;
        if let Some(failure) = batch.failure {
            failure.report(name);
        }
        Ok(Worked::some_if(batch.moved))
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        let Reader { name, kinds } = self.registered.reader;
        let next: Option<(Timestamp, Option<Timestamp>)> = match kinds {
            Some(kinds) => self.db.get_one(NEXT_DUE_OF, &args![name, owned(kinds)]).await?,
            None => self.db.get_one(NEXT_DUE, &args![name]).await?,
        };
        Ok(next.map(|(created_at, retry_at)| retry_at.unwrap_or(created_at)))
    }

    async fn stopped(&self) {
        let name = self.registered.reader.name;
        if let Err(error) = self.db.exec_one(RELEASE, &args![name, self.owner]).await {
            tracing::debug!(consumer = name, ?error, "lease not given back; it will expire");
        }
    }
}

struct Batch {
    moved: bool,
    failure: Option<Failure>,
}

/// Told after the commit: a closure may run more than once.
struct Failure {
    fact: FactId,
    kind: String,
    attempts: i64,
    parked: bool,
    error: Error,
}

impl Failure {
    fn report(self, consumer: &'static str) {
        let Self { fact, kind, attempts, parked, error } = self;
        metrics::counter!("tenantry_outbox_failures_total", "consumer" => consumer).increment(1);
        if parked {
            metrics::counter!("tenantry_outbox_parked_total", "consumer" => consumer).increment(1);
            tracing::error!(consumer, %fact, kind, attempts, ?error, "fact parked: it is passed over from now on");
        } else {
            tracing::warn!(consumer, %fact, kind, attempts, ?error, "fact not handled; it will be tried again");
        }
    }
}

/// Handles facts up to the first that fails. What the earlier ones did commits in any case.
fn handle_batch(tx: &mut Tx<'_>, registered: &Registered, owner: &str) -> Result<Batch> {
    let (name, handle) = (registered.reader.name, &*registered.handle);
    let started = Ticker.now();
    let Some((before, mut attempts)) = tx.opt::<(i64, i64)>(CLAIM, &args![name, owner, tx.now()])? else {
        return Ok(Batch { moved: false, failure: None });
    };
    let (facts, last) = registered.batch(tx, before)?;
    let (mut handled, mut failure) = (0, None);
    // The first of them in any case, however long it took to find them.
    let in_time = |handled: usize| handled == 0 || Ticker.since(started) <= LONGEST_BATCH;
    while handled < facts.len() && failure.is_none() && in_time(handled) {
        // Behind a fact that failed before, they are handled one by one.
        let together = if attempts == 0 { TOGETHER } else { 1 };
        let next = &facts[handled..facts.len().min(handled + together)];
        if next.len() > 1 && handle_some(tx, handle, next).is_ok() {
            handled += next.len();
            continue;
        }
        for fact in next {
            if let Err(error) = handle_some(tx, handle, std::slice::from_ref(fact)) {
                attempts += 1;
                let parked = attempts >= ATTEMPTS;
                if parked {
                    park(tx, name, fact, attempts, &error)?;
                    handled += 1;
                }
                failure = Some(Failure { fact: fact.id, kind: fact.kind.clone(), attempts, parked, error });
                break;
            }
            handled += 1;
            attempts = 0;
        }
    }
    let position = match handled {
        // Everything was handled, so that what lies between and behind is passed over too.
        all if all == facts.len() && failure.is_none() => last,
        0 => before,
        some => facts[some - 1].position,
    };
    let retry = failure.as_ref().filter(|failure| !failure.parked);
    let retry_at = retry.map(|failure| tx.now().plus(pause_after(failure.attempts)));
    let last_error = retry.map(|failure| describe(&failure.error));
    let attempts = retry.map_or(0, |failure| failure.attempts);
    let lease = lease::micros(LEASE);
    tx.exec(ADVANCE, &args![name, position, attempts, retry_at, last_error, owner, lease])?;
    Ok(Batch { moved: position > before, failure })
}

/// In a savepoint of its own, so that a failure undoes only what these facts did. A panic is a failure.
fn handle_some(tx: &mut Tx<'_>, handle: &dyn Fn(&mut Tx<'_>, &[Fact]) -> Result<()>, facts: &[Fact]) -> Result<()> {
    tx.savepoint(|tx| {
        catch_unwind(AssertUnwindSafe(|| handle(tx, facts)))
            .unwrap_or_else(|_| Err(Error::internal("panic in a consumer of the outbox")))
    })
}

/// 1 s, 2 s, 4 s, … : about eight minutes until a fact is parked.
fn pause_after(attempts: i64) -> Duration {
    Duration::from_secs(1 << (attempts - 1).clamp(0, ATTEMPTS))
}

fn park(tx: &mut Tx<'_>, name: &str, fact: &Fact, attempts: i64, error: &Error) -> Result<()> {
    let (payload, error) = (fact.data.to_string(), describe(error));
    let Fact { id, position, kind, app, tenant, at, .. } = fact;
    let (actor, address, request) = columns(&fact.author)?;
    let now = tx.now();
    tx.run(
        PARK,
        &args![name, *position, *id, kind, app, tenant, payload, *at, attempts, error, now, actor, address, request],
    )
}

fn describe(error: &Error) -> String {
    format!("{error:?}").chars().take(LONGEST_ERROR).collect()
}

/// A fact that a consumer failed on until it was passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    pub consumer: String,
    pub position: i64,
    pub fact: FactId,
    pub kind: String,
    pub attempts: i64,
    pub error: String,
    pub parked_at: Timestamp,
}

row! { Parked = "outbox_parked" { consumer, position, fact: "fact_id", kind, attempts, error, parked_at } }

/// How many facts the slowest consumer has still to see, and since when the oldest of them waits.
pub fn backlog(tx: &mut Tx<'_>) -> Result<(i64, Option<Timestamp>)> {
    tx.one(
        "SELECT count(*), min(created_at) FROM outbox WHERE position IS NULL \
         OR position > (SELECT coalesce(min(position), 0) FROM outbox_cursors)",
        &[],
    )
}

/// Whether every consumer has seen all facts of an app.
pub fn is_read_by_all(tx: &mut Tx<'_>, app: AppId) -> Result<bool> {
    let unread = tx.exists(
        "SELECT 1 FROM outbox WHERE app_id = $1 AND (position IS NULL \
         OR position > (SELECT coalesce(min(position), 0) FROM outbox_cursors))",
        &args![app],
    );
    unread.map(|unread| !unread)
}

/// The facts that were parked last, for diagnostics.
pub fn parked(tx: &mut Tx<'_>, limit: i64) -> Result<Vec<Parked>> {
    tx.all(PARKED, &args![limit])
}

/// The consumers that failed on the fact they are at and will try again, each with its last error, for diagnostics.
pub fn retrying(tx: &mut Tx<'_>) -> Result<Vec<(String, Option<String>)>> {
    tx.all(RETRYING, &[])
}
