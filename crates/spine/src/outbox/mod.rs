//! The outbox: facts are written in the transaction that makes them true, and told to everybody afterwards.
//!
//! Nothing is announced that did not commit, and nothing that committed is left unannounced. A fact gets its dense
//! position once it is committed; positions, never ids or times, are what readers keep as their place.

mod consumer;
mod emitted;
mod fact;
mod follower;
mod register;
mod resume;
mod sequencer;
mod traces;
mod trim;

use std::{sync::Arc, time::Duration};

use kernel::{Error, Result};
use store::{Db, Tx, args};

use crate::{Runner, Signal, lease};
pub(crate) use consumer::is_read_by_all;
use consumer::{Consumer, Registered};
pub use consumer::{Parked, backlog, parked, retrying};
pub use emitted::Mark;
pub use fact::{Fact, FactId, FactKind, FactScope, Installation};
pub use follower::News;
use follower::{Follower, Tail};
pub use register::{FactType, Reader};
pub use resume::{last_position, passed_by, since, told_at};
use sequencer::Sequencer;
pub use sequencer::number;
pub use traces::{LoggedEventId, WebhookEventId, audit_entry, webhook_event};
use trim::Trimmer;
pub use trim::trim;

/// How long facts are kept for followers that fell behind and streams that resume.
pub const RETENTION: Duration = Duration::from_secs(600);

const INSERT: &str = "INSERT INTO outbox (id, kind, app_id, tenant_id, payload, created_at, actor, address, request_id, \
                      quiet, recorded_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, {db_now})";

/// Writes a fact, with its author, that becomes public when `tx` commits, and only then.
pub fn emit<T: FactKind>(tx: &mut Tx<'_>, scope: impl Into<FactScope>, fact: &T) -> Result<()> {
    let (id, scope): (FactId, FactScope) = (tx.new_id(), scope.into());
    let payload = serde_json::to_string(fact).map_err(Error::internal)?;
    let (actor, address, request) = fact::columns(tx.author())?;
    let (app, tenant, now, quiet) = (scope.app(), scope.tenant(), tx.now(), tx.tells_nobody_outside());
    tx.run(INSERT, &args![id, T::KIND, app, tenant, payload, now, actor, address, request, quiet])?;
    tx.wake_on_commit();
    Ok(())
}

const INSERT_ALL: &str = "INSERT INTO outbox (id, kind, app_id, tenant_id, payload, created_at, actor, address, request_id, \
     quiet, recorded_at) SELECT id, kind, app_id, tenant_id, payload, created_at, actor, address, request_id, quiet, \
     {db_now} FROM {rows} WHERE true";

/// The same for several facts of one kind, in their order.
pub fn emit_all<T: FactKind>(tx: &mut Tx<'_>, scope: impl Into<FactScope>, facts: &[T]) -> Result<()> {
    let scope: FactScope = scope.into();
    let (actor, address, request) = fact::columns(tx.author())?;
    let (actor, address, request) = (actor.as_str(), address.as_deref(), request.as_deref());
    let (app, tenant, now, quiet) = (scope.app(), scope.tenant(), tx.now(), tx.tells_nobody_outside());
    let row = |fact: &T| {
        let (id, payload): (FactId, _) = (tx.new_id(), serde_json::to_string(fact).map_err(Error::internal)?);
        Ok((id, T::KIND, app, tenant, payload, now, actor, address, request, quiet))
    };
    let rows: Vec<_> = facts.iter().map(row).collect::<Result<_>>()?;
    if rows.is_empty() {
        return Ok(());
    }
    let columns =
        ["id", "kind", "app_id", "tenant_id", "payload", "created_at", "actor", "address", "request_id", "quiet"];
    tx.insert_all(INSERT_ALL, columns, &rows)?;
    tx.wake_on_commit();
    Ok(())
}

/// A node's readers of the outbox, collected before the node starts.
pub struct Outbox {
    db: Db,
    consumers: Vec<Registered>,
    followers: Vec<Follower>,
}

const REGISTER: &str = "INSERT INTO outbox_cursors (name, position) \
                        SELECT $1, last_position FROM outbox_head WHERE id = 1 ON CONFLICT (name) DO NOTHING";

impl Outbox {
    pub fn new(db: Db) -> Self {
        Self { db, consumers: Vec::new(), followers: Vec::new() }
    }

    /// A durable reader: `handle` is called for each fact of its kinds in order, on one node at a time. What it writes
    /// through `tx` commits together with the cursor, so its effects in the database happen exactly once. A fact on
    /// which it fails is tried again with growing pauses and, after ten failures, parked and passed over. Facts of other
    /// kinds never count as work that waits.
    pub fn consume(
        &mut self,
        reader: Reader,
        handle: impl Fn(&mut Tx<'_>, &Fact) -> Result<()> + Send + Sync + 'static,
    ) {
        self.consume_together(reader, move |tx, facts| facts.iter().try_for_each(|fact| handle(tx, fact)));
    }

    /// The same for a reader that handles several facts at once, in their order, with fewer statements. When it fails, it is
    /// given them one by one.
    pub fn consume_together(
        &mut self,
        reader: Reader,
        handle: impl Fn(&mut Tx<'_>, &[Fact]) -> Result<()> + Send + Sync + 'static,
    ) {
        self.consumers.push(Registered { reader, handle: Arc::new(handle) });
    }

    /// A reader in memory, on every node: `hear` is called for each fact of its kinds committed by any node from now on,
    /// and with [`News::Gap`] when facts were missed. For caches and streams; it must be quick and must not block.
    pub fn follow(&mut self, reader: Reader, hear: impl Fn(News<'_>) + Send + Sync + 'static) {
        self.followers.push(Follower { reader, hear: Box::new(hear) });
    }

    /// Everybody who was registered so far.
    pub fn readers(&self) -> impl Iterator<Item = Reader> {
        let consumers = self.consumers.iter().map(|consumer| consumer.reader);
        consumers.chain(self.followers.iter().map(|follower| follower.reader))
    }

    /// Registers the consumers and adds the jobs. A new consumer begins with what is emitted after this, so call it
    /// before anything is emitted; caches may be filled once it has returned.
    pub async fn open(self, runner: &Runner) -> Result<()> {
        let Self { db, consumers, mut followers } = self;
        let names: Vec<&'static str> = consumers.iter().map(|registered| registered.reader.name).collect();
        db.write(move |tx| names.iter().try_for_each(|name| tx.run(REGISTER, &args![*name]))).await?;
        let head = Signal::new();
        let start = sequencer::head(&db).await?;
        let owner = lease::new_owner(db.entropy());
        runner.add(Sequencer::new(db.clone(), head.clone(), start));
        for registered in consumers {
            let news = match registered.reader.kinds {
                None => head.clone(),
                Some(_) => woken_by(registered.reader, &mut followers),
            };
            runner.add(Consumer::new(db.clone(), news, registered, owner.clone()));
        }
        runner.add(Tail::new(db.clone(), head.clone(), followers, start));
        runner.add(Trimmer { db });
        Ok(())
    }
}

/// Woken by facts of some kinds. Others must not cost each consumer a transaction; its timer moves its cursor past them.
fn woken_by(reader: Reader, followers: &mut Vec<Follower>) -> Signal {
    let news = Signal::new();
    let woken = news.clone();
    followers.push(Follower { reader, hear: Box::new(move |_| woken.wake()) });
    news
}
