//! Messages that leave after the commit: what mail and SMS have in common.
//!
//! A message is a row written in the caller's transaction, with its content sealed. It is sent at least once, with a
//! name that stays the same over repetitions, and its content is erased once it is sent or given up. Eight are under
//! way at a time, each with a time limit, so that one slow server or recipient delays nothing else.

pub(crate) mod file;
mod rows;
mod upkeep;

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use kernel::{AppId, Error, Result, Secret, Timestamp};
use serde::{Serialize, de::DeserializeOwned};
use store::{Db, Tx};
use tokio::sync::watch;
use vault::{Keyring, Place};

use crate::{Job, Worked, lease};
use rows::{Claimed, DeliveryOutcome};
pub(crate) use rows::{Sql, statements};
pub use upkeep::{Backlog, Waiting, backlog, waiting};

/// Messages under way at a time.
const SLOTS: usize = 8;
/// A run that has sent this many ends, so that a stopping node is not kept waiting by a long queue.
const LONGEST_RUN: usize = 500;
/// For one message, however slow the other side is.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Longer than the time limit: while a message is under way nobody else takes it.
const LEASE: Duration = Duration::from_secs(60);
const EVERY: Duration = Duration::from_secs(5);

/// A way for messages to leave.
pub(crate) trait Channel: Send + Sync + 'static {
    /// As it was queued, sealed in the row.
    type Content: Serialize + DeserializeOwned + Send;

    const NAME: &'static str;
    const TABLE: &'static str;
    const SQL: &'static Sql;
    /// How long to wait after the first, second, … failure. After the last one the message is given up.
    const PAUSES: &'static [Duration];

    fn send(&self, message: Message<Self::Content>) -> impl Future<Output = Result<(), SendFailure>> + Send;
}

/// A message on its way.
pub(crate) struct Message<C> {
    /// The row's id: the same each time the message is sent.
    pub(crate) id: String,
    pub(crate) recipient: String,
    pub(crate) content: C,
    pub(crate) queued_at: Timestamp,
}

/// Why a message did not leave.
#[derive(Debug)]
pub(crate) struct SendFailure {
    /// Sending it again would fail again.
    pub(crate) permanent: bool,
    pub(crate) reason: String,
}

impl SendFailure {
    pub(crate) fn permanent(reason: impl std::fmt::Display) -> Self {
        Self { permanent: true, reason: reason.to_string() }
    }

    pub(crate) fn passing(reason: impl std::fmt::Display) -> Self {
        Self { permanent: false, reason: reason.to_string() }
    }
}

/// Writes the message's row. It leaves once `tx` has committed.
pub(crate) fn queue<C: Channel>(
    tx: &mut Tx<'_>,
    keyring: &Keyring,
    id: &str,
    app: Option<AppId>,
    recipient: &str,
    content: &C::Content,
) -> Result<()> {
    let content = serde_json::to_vec(content).map_err(Error::internal)?;
    let sealed = keyring.seal(&place::<C>(id, app), &content);
    rows::insert(tx, C::SQL, id, app, recipient, &sealed)?;
    tx.wake_on_commit();
    Ok(())
}

fn place<C: Channel>(id: &str, app: Option<AppId>) -> Place<'_> {
    Place { table: C::TABLE, column: "sealed", row: id, app }
}

/// The job that sends what is due.
pub(crate) struct Dispatch<C> {
    db: Db,
    keyring: Keyring,
    channel: Arc<C>,
    owner: String,
}

impl<C: Channel> Dispatch<C> {
    pub(crate) fn new(db: Db, keyring: Keyring, channel: C) -> Self {
        let owner = lease::new_owner(db.entropy());
        Self { db, keyring, channel: Arc::new(channel), owner }
    }

    async fn claim(&self, limit: usize) -> Result<Vec<Claimed>> {
        if rows::next_due(&self.db, C::SQL).await?.is_none_or(|due| due > self.db.clock().now()) {
            return Ok(Vec::new());
        }
        rows::claim(&self.db, C::SQL, &self.owner, limit, LEASE).await
    }

    /// Sends one message and writes down what became of it.
    async fn deliver(&self, claimed: Claimed) -> Result<()> {
        let (id, attempts) = (claimed.id.clone(), claimed.attempts + 1);
        let outcome = match self.send(claimed).await {
            Ok(()) => DeliveryOutcome::Sent,
            Err(failure) => {
                let pause = usize::try_from(attempts - 1).ok().and_then(|index| C::PAUSES.get(index));
                let outcome = match pause {
                    Some(pause) if !failure.permanent => DeliveryOutcome::Again(*pause, failure.reason),
                    _ => DeliveryOutcome::GivenUp(failure.reason),
                };
                outcome.log(C::NAME, &id, attempts);
                outcome
            }
        };
        metrics::counter!("tenantry_messages_total", "channel" => C::NAME, "outcome" => outcome.label()).increment(1);
        rows::finish(&self.db, C::SQL, id, self.owner.clone(), outcome).await
    }

    async fn send(&self, claimed: Claimed) -> Result<(), SendFailure> {
        let Claimed { id, app, recipient, sealed, created_at, .. } = claimed;
        let content = self
            .keyring
            .open(&place::<C>(&id, app), &sealed)
            .map(Secret::into_exposed)
            // A master key left out by mistake is put right later; the message should survive that.
            .map_err(|error| SendFailure::passing(format!("{error:?}")))?;
        let content = serde_json::from_slice(&content).map_err(SendFailure::permanent)?;
        let message = Message { id, recipient, content, queued_at: created_at };
        tokio::time::timeout(TIME_LIMIT, self.channel.send(message))
            .await
            .unwrap_or_else(|_| Err(SendFailure::passing(format!("not done after {} s", TIME_LIMIT.as_secs()))))
    }
}

impl<C: Channel> Job for Dispatch<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn every(&self) -> Duration {
        EVERY
    }

    fn signals(&self) -> Vec<watch::Receiver<u64>> {
        vec![self.db.wakeups()]
    }

    async fn next_due(&self) -> Result<Option<Timestamp>> {
        rows::next_due(&self.db, C::SQL).await
    }

    /// Keeps the slots filled until nothing is due and nothing under way. What is queued meanwhile is taken up by the
    /// free slots, so that it never waits for a message that hangs.
    async fn run(&self) -> Result<Worked> {
        let mut under_way = FuturesUnordered::new();
        let mut rings = self.db.wakeups();
        let mut taken = 0;
        let mut failure = None;
        loop {
            let free = if taken < LONGEST_RUN && failure.is_none() { SLOTS - under_way.len() } else { 0 };
            if free > 0 {
                rings.mark_unchanged();
                match self.claim(free).await {
                    Ok(claimed) => {
                        taken += claimed.len();
                        under_way.extend(claimed.into_iter().map(|claimed| self.deliver(claimed)));
                    }
                    // What is under way is finished first: cut off, it would be sent a second time.
                    Err(error) => failure = Some(error),
                }
            }
            tokio::select! {
                done = under_way.next() => match done {
                    Some(Ok(())) => {}
                    Some(Err(error)) => failure = failure.or(Some(error)),
                    None => return failure.map_or(Ok(Worked::some_if(taken > 0)), Err),
                },
                _ = rings.changed(), if free > 0 => {}
                () = tokio::time::sleep(EVERY), if free > 0 => {}
            }
        }
    }
}

/// Deletes rows of messages that are done and old.
pub(crate) struct Sweep<C> {
    db: Db,
    channel: std::marker::PhantomData<fn() -> C>,
}

/// Done messages are kept this long, without their content, to answer what became of them.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);

impl<C: Channel> Sweep<C> {
    pub(crate) fn new(db: Db) -> Self {
        Self { db, channel: std::marker::PhantomData }
    }
}

impl<C: Channel> Job for Sweep<C> {
    fn name(&self) -> &'static str {
        C::SQL.sweep_name
    }

    fn every(&self) -> Duration {
        Duration::from_secs(3_600)
    }

    fn is_upkeep(&self) -> bool {
        true
    }

    async fn run(&self) -> Result<Worked> {
        rows::sweep(&self.db, C::SQL, self.db.clock().now().minus(KEPT)).await.map(|swept| Worked::some_if(swept > 0))
    }
}
