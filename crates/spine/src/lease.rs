//! Leases: one node at a time does a thing, and when it dies another one takes over after a while.
//!
//! A job that should run on one node is added as [`Exclusive`]; rows of which each is worked on by one node (a mail, a
//! delivery) have `lease_owner` and `lease_until` columns of their own. Ends are compared on the database's clock, which
//! no test clock moves and all nodes share. A lease keeps nodes out of each other's way; it is not a proof of exclusion, so
//! what must happen once is settled by the transaction itself.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use kernel::{Entropy, Error, Result, Tick, Ticker, Timestamp};
use store::{Db, Tx, args};
use tokio::sync::watch;

use crate::{Job, JobThread, Worked};

/// Names this process in the leases it holds.
pub fn new_owner(entropy: &Entropy) -> String {
    format!("node_{}", entropy.base62(16))
}

const TAKE: &str = "INSERT INTO leases (name, owner, until) VALUES ($1, $2, {db_now} + $3) \
                    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until \
                    WHERE leases.owner = excluded.owner OR leases.until < {db_now}";
const TAKEN: &str = "SELECT owner FROM leases WHERE name = $1 AND owner <> $2 AND until >= {db_now}";
const RELEASE: &str = "DELETE FROM leases WHERE name = $1 AND owner = $2";

/// Long enough for a node that is busy, short enough for those who wait for one that died.
const LENGTH: Duration = Duration::from_secs(15);

/// The right of one node to do what the name says.
pub struct Lease {
    db: Db,
    name: &'static str,
    owner: String,
    length: Duration,
    renewed: Mutex<Option<Tick>>,
}

impl Lease {
    pub fn new(db: &Db, name: &'static str) -> Self {
        Self { db: db.clone(), name, owner: new_owner(db.entropy()), length: LENGTH, renewed: Mutex::new(None) }
    }

    /// With another length than fifteen seconds.
    #[must_use]
    pub fn with_length(self, length: Duration) -> Self {
        Self { length, ..self }
    }

    /// Takes the lease or renews it; `false` while another node holds it. Cheap to call often: a fresh lease is not
    /// renewed, and one that another node holds is only looked at.
    pub async fn hold(&self) -> Result<bool> {
        if self.age().is_some_and(|age| age < self.length / 3) {
            return Ok(true);
        }
        let asked_at = Ticker.now();
        let held = self.db.get_one::<(String,)>(TAKEN, &args![self.name, self.owner]).await?.is_none()
            && self.db.exec_one(TAKE, &args![self.name, self.owner, micros(self.length)]).await? == 1;
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = held.then_some(asked_at);
        Ok(held)
    }

    /// Renews the lease until it is lost, which is when this ends. A database that is away for a moment does no harm.
    pub async fn keep(&self) {
        loop {
            tokio::time::sleep(self.length / 3).await;
            match self.hold().await {
                Ok(true) => {}
                Err(_) if self.age().is_some_and(|age| age < self.length) => {}
                Ok(false) | Err(_) => return,
            }
        }
    }

    /// Lets another node take it at once; one that was lost meanwhile stays with its new holder.
    pub async fn give_back(&self) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if let Err(error) = self.db.exec_one(RELEASE, &args![self.name, self.owner]).await {
            tracing::debug!(lease = self.name, ?error, "lease not given back; it will expire");
        }
    }

    fn age(&self) -> Option<Duration> {
        self.renewed.lock().unwrap_or_else(PoisonError::into_inner).map(|renewed| Ticker.since(renewed))
    }
}

/// A job that runs on one node at a time, under a lease with the job's name. When its node dies, another one goes on
/// after the lease's length; when it stops, at once. A run whose lease was lost is cut off, which every job survives.
pub struct Exclusive<J> {
    lease: Lease,
    job: J,
}

impl<J: Job> Exclusive<J> {
    pub fn new(db: &Db, job: J) -> Self {
        Self { lease: Lease::new(db, job.name()), job }
    }

    /// With another lease than one of fifteen seconds.
    #[must_use]
    pub fn with_length(self, length: Duration) -> Self {
        Self { lease: self.lease.with_length(length), ..self }
    }
}

impl<J: Job> Job for Exclusive<J> {
    fn name(&self) -> &'static str {
        self.job.name()
    }

    /// Often enough to take over from a node that died.
    fn every(&self) -> Duration {
        self.job.every().min(self.lease.length)
    }

    async fn run(&self) -> Result<Worked> {
        if !self.lease.hold().await? {
            return Ok(Worked::Nothing);
        }
        tokio::select! {
            outcome = self.job.run() => outcome,
            () = self.lease.keep() => Err(Error::internal(format!("lost the lease {} while working", self.lease.name))),
        }
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        self.job.next_due().await
    }

    fn is_upkeep(&self) -> bool {
        self.job.is_upkeep()
    }

    fn thread(&self) -> JobThread {
        self.job.thread()
    }

    async fn stopped(&self) {
        self.job.stopped().await;
        self.lease.give_back().await;
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        self.job.signals()
    }
}

/// The statement that ends all claims on the rows of a table with `lease_owner` and `lease_until`.
#[macro_export]
macro_rules! claims {
    ($table:literal) => {
        concat!("UPDATE ", $table, " SET lease_owner = NULL, lease_until = NULL WHERE lease_owner IS NOT NULL")
    };
}

/// What ends the leases by name and the claims on rows of this room.
pub const CLAIMS: &[&str] =
    &["DELETE FROM leases", claims!("outbox_cursors"), claims!("mail_outbox"), claims!("sms_outbox")];

/// To be called at start for each room that claims rows. A process on SQLite is alone (it holds the data folder), so any
/// claim is of a process that died, and nobody need wait for its end.
pub async fn free_after_restart(db: &Db, claims: &'static [&'static str]) -> Result<()> {
    if db.is_single_node() { db.write(move |tx| free(tx, claims)).await } else { Ok(()) }
}

/// Ends all claims. Safe only where no other process can hold one.
pub fn free(tx: &mut Tx<'_>, claims: &[&'static str]) -> Result<()> {
    claims.iter().try_for_each(|sql| tx.run(sql, &[]))
}

/// A length as the database's clock counts it: `lease_until = {db_now} + $1`.
pub fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}
