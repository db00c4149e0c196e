//! The handle to the database that everybody holds.

use std::{
    fmt,
    future::Future,
    panic::Location,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use kernel::{Author, Authored, Clock, Entropy, IdSource, Result, Ticker};
use tokio::sync::{Semaphore, broadcast, watch};

use crate::{
    Arg, Counters, DatabaseUrl, FromRow, Tx,
    counters::Cells,
    fault, ingest,
    job::{Closure, Job},
    postgres, sqlite,
    wake::{LONGEST_NOTE, Notes, Wake},
};

/// How to open a database.
pub struct Options {
    pub url: DatabaseUrl,
    pub clock: Clock,
    pub entropy: Entropy,
    pub limits: Limits,
}

/// Sizes of queues, batches and thread sets. The defaults suit a small machine.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Closures that may wait for a lane; a full lane answers 503 at once.
    pub queue: usize,
    /// Closures that share one commit on SQLite.
    pub batch: usize,
    /// Threads that serve point reads on SQLite.
    pub readers: usize,
    /// Connection threads for closures on PostgreSQL; a node opens five connections more for scans, single statements
    /// and wake-ups. All nodes together must stay below the server's `max_connections`.
    pub connections: usize,
    /// How long work waits for a PostgreSQL server that is away, counted from the start of the outage; after that it
    /// is refused at once.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { queue: 4096, batch: 256, readers: 2, connections: 8, patience: Duration::from_secs(10) }
    }
}

/// What the data takes up, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub database: u64,
    /// SQLite's write-ahead log.
    pub log: Option<u64>,
}

/// What a transaction needs beyond its connection.
pub(crate) struct Context {
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) ids: IdSource,
    pub(crate) cells: Cells,
    pub(crate) wake: Wake,
    pub(crate) notes: Notes,
    #[cfg(feature = "testing")]
    pub(crate) recorder: crate::record::Recorder,
}

impl Context {
    /// Every statement of a closure passes here.
    pub(crate) fn saw(&self, sql: &'static str) {
        self.saw_rows(sql, &[]);
    }

    /// The same for one that reads `{rows}` with these columns.
    #[cfg_attr(not(feature = "testing"), expect(unused_variables))]
    pub(crate) fn saw_rows(&self, sql: &'static str, columns: &[(&str, crate::ColumnType)]) {
        Cells::add(&self.cells.statements, 1);
        #[cfg(feature = "testing")]
        self.recorder.saw(sql, columns);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineName {
    Sqlite,
    Postgres,
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        })
    }
}

/// A write that does no harm: it moves a time by a microsecond. SQLite writes nothing where nothing changes.
const HARMLESS: &str = "UPDATE schema_migrations SET applied_at = applied_at + 1 WHERE number = 1";

/// Which queue a closure joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Write,
    Read,
    Snapshot,
    Scan,
}

/// The database. Cheap to clone; the threads behind it stop when [`Db::close`] is called or the last clone is dropped.
#[derive(Clone)]
pub struct Db {
    inner: Arc<Inner>,
    /// In whose name transactions run; `None` for the system's.
    author: Option<Arc<Author>>,
}

struct Inner {
    engine: Engine,
    pool_size: usize,
    queue: usize,
    context: Arc<Context>,
    ingest_slots: Semaphore,
}

enum Engine {
    Sqlite(sqlite::SqliteEngine),
    Postgres(postgres::PgEngine),
}

impl Db {
    /// Opens the database and starts its threads. Applies no migrations.
    pub async fn open(options: Options) -> Result<Self> {
        let Options { url, clock, entropy, limits } = options;
        let context = Arc::new(Context {
            ids: IdSource::new(clock.clone(), entropy.clone()),
            clock,
            entropy,
            cells: Cells::default(),
            wake: Wake::new(),
            notes: Notes::new(),
            #[cfg(feature = "testing")]
            recorder: crate::record::Recorder::new(match url {
                DatabaseUrl::Sqlite(_) => EngineName::Sqlite,
                DatabaseUrl::Postgres(_) => EngineName::Postgres,
            }),
        });
        let pool_size = match url {
            DatabaseUrl::Sqlite(_) => limits.readers + 1,
            DatabaseUrl::Postgres(_) => limits.connections,
        };
        let queue = limits.queue;
        let engine = match url {
            DatabaseUrl::Sqlite(path) => Engine::Sqlite(sqlite::SqliteEngine::open(path, &context, &limits)?),
            DatabaseUrl::Postgres(url) => Engine::Postgres(postgres::PgEngine::open(url, &context, &limits).await?),
        };
        let inner = Inner { engine, pool_size, queue, context, ingest_slots: ingest::slots(&limits) };
        Ok(Self { inner: Arc::new(inner), author: None })
    }

    /// The same database for changes in somebody's name: what their transactions emit carries it.
    #[must_use]
    pub fn by(&self, who: &impl Authored) -> Self {
        Self { inner: Arc::clone(&self.inner), author: Some(Arc::new(who.author())) }
    }

    /// Runs a closure in a transaction. Durable when it answers `Ok`; on any error nothing of it remains.
    #[track_caller]
    pub fn write<T, F>(&self, work: F) -> impl Future<Output = Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.run(Lane::Write, work)
    }

    /// Point reads. Several statements see one state on SQLite but not on PostgreSQL: where that matters, [`Db::snapshot`].
    #[track_caller]
    pub fn read<T, F>(&self, work: F) -> impl Future<Output = Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.run(Lane::Read, work)
    }

    /// Several reads of one consistent state.
    #[track_caller]
    pub fn snapshot<T, F>(&self, work: F) -> impl Future<Output = Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.run(Lane::Snapshot, work)
    }

    /// Long reads of one consistent state, on a lane of their own so that nobody's login queues behind a chart.
    #[track_caller]
    pub fn scan<T, F>(&self, work: F) -> impl Future<Output = Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.run(Lane::Scan, work)
    }

    /// One query for one row: a single round trip on PostgreSQL, and no other thread on SQLite, so that it has to find its row by
    /// an index.
    pub async fn get_one<T: FromRow + Send + 'static>(&self, sql: &'static str, args: &[Arg<'_>]) -> Result<Option<T>> {
        match &self.inner.engine {
            Engine::Sqlite(engine) => {
                if let Some(outcome) = engine.read_at_once(&self.inner.context, |tx| tx.opt(sql, args)) {
                    return outcome;
                }
                let args: Vec<Arg<'static>> = args.iter().cloned().map(Arg::into_owned).collect();
                self.read(move |tx| tx.opt(sql, &args)).await
            }
            Engine::Postgres(engine) => {
                self.inner.context.saw(sql);
                engine.get_one(sql, args).await
            }
        }
    }

    /// One statement in a transaction of its own; the number of rows it changed. A single round trip on PostgreSQL.
    pub async fn exec_one(&self, sql: &'static str, args: &[Arg<'_>]) -> Result<u64> {
        match &self.inner.engine {
            Engine::Sqlite(_) => {
                let args: Vec<Arg<'static>> = args.iter().cloned().map(Arg::into_owned).collect();
                self.write(move |tx| tx.exec(sql, &args)).await
            }
            Engine::Postgres(engine) => {
                self.inner.context.saw(sql);
                Self::noting(&self.inner.context, engine.exec_one(sql, args).await)
            }
        }
    }

    /// Tells every node that something was committed that others follow. Call it from [`Tx::on_commit`].
    pub fn wake(&self) {
        self.inner.context.wake.ring();
        if let Engine::Postgres(engine) = &self.inner.engine {
            engine.notify();
        }
    }

    /// Changes whenever this or another node called [`Db::wake`]. A wake-up may be lost: poll as well.
    pub fn wakeups(&self) -> watch::Receiver<u64> {
        self.inner.context.wake.subscribe()
    }

    /// Sends a note of at most [`LONGEST_NOTE`] bytes to all other nodes. Never waits, and promises nothing: while too
    /// many are on their way, or the database is away, it is dropped. `false` when that is known at once.
    pub fn send_note(&self, note: String) -> bool {
        match &self.inner.engine {
            Engine::Sqlite(_) => true,
            Engine::Postgres(engine) => note.len() <= LONGEST_NOTE && engine.send_note(note),
        }
    }

    /// The notes of other nodes. A listener that is slow misses some, and is told so.
    pub fn notes(&self) -> broadcast::Receiver<Arc<str>> {
        self.inner.context.notes.subscribe()
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<()> {
        self.get_one::<(i64,)>("SELECT CAST(1 AS BIGINT)", &[]).await.map(|_| ())
    }

    /// Whether anything can be stored. Known from the writes of others; only while those fail does this try one.
    pub async fn check_writable(&self) -> Result<()> {
        if !self.inner.context.cells.cannot_write.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.write(|tx| tx.each_unrecorded(HARMLESS, &[], &mut |_| Ok(()))).await
    }

    /// Closures that wait for a thread or a connection, by lane.
    pub fn queued(&self) -> Vec<(&'static str, usize)> {
        match &self.inner.engine {
            Engine::Sqlite(engine) => engine.queued(),
            Engine::Postgres(engine) => engine.queued(),
        }
    }

    /// Whether so many closures wait somewhere that work which nobody waits for should not add to them.
    pub fn is_busy(&self) -> bool {
        self.queued().into_iter().any(|(_, waiting)| waiting > self.inner.queue / 2)
    }

    /// Threads or connections that closures run on.
    pub fn pool_size(&self) -> usize {
        self.inner.pool_size
    }

    /// How many of them are at work.
    pub fn pool_in_use(&self) -> usize {
        self.inner.context.cells.running.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// How many bytes the data takes up.
    pub async fn sizes(&self) -> Result<Sizes> {
        match &self.inner.engine {
            Engine::Sqlite(engine) => {
                let (database, log) = engine.sizes();
                Ok(Sizes { database, log: Some(log) })
            }
            Engine::Postgres(_) => {
                let database = self.read(|tx| {
                    let mut size = 0;
                    tx.each_unrecorded("SELECT pg_database_size(current_database())", &[], &mut |row| {
                        size = row.at::<i64>(0)?;
                        Ok(())
                    })?;
                    Ok(size)
                });
                Ok(Sizes { database: database.await?.unsigned_abs(), log: None })
            }
        }
    }

    /// Remembers whether the storage could be written, as far as the outcome of a write tells.
    fn noting<T>(context: &Context, outcome: Result<T>) -> Result<T> {
        match &outcome {
            Ok(_) => context.cells.cannot_write.store(false, Ordering::Relaxed),
            Err(error) if fault::is_cannot_write(error) => context.cells.cannot_write.store(true, Ordering::Relaxed),
            Err(_) => {}
        }
        outcome
    }

    /// Stops accepting work, finishes what was accepted, and closes the connections.
    pub async fn close(&self) {
        match &self.inner.engine {
            Engine::Sqlite(engine) => engine.close().await,
            Engine::Postgres(engine) => engine.close().await,
        }
    }

    /// Writes a consistent copy of an SQLite database into a new file while writers continue.
    pub(crate) async fn copy_sqlite_to(&self, target: &Path) -> Option<Result<()>> {
        match &self.inner.engine {
            Engine::Sqlite(engine) => Some(engine.copy_to(target).await),
            Engine::Postgres(_) => None,
        }
    }

    /// For health checks, metrics and people. Domains never ask.
    pub fn engine(&self) -> EngineName {
        match &self.inner.engine {
            Engine::Sqlite(_) => EngineName::Sqlite,
            Engine::Postgres(_) => EngineName::Postgres,
        }
    }

    /// Lets PostgreSQL measure the tables that have grown much since it last did, so that statements are planned for what is there
    /// now. SQLite is told once and for all.
    pub async fn measure_grown_tables(&self) -> Result<()> {
        if self.engine() == EngineName::Sqlite {
            return Ok(());
        }
        let statements = self.read(postgres::estimates::grown).await?;
        if statements.is_empty() {
            return Ok(());
        }
        self.write(move |tx| tx.script(&statements.join("; "))).await
    }

    /// Whether this process is the only one that can write here, so that what it holds in memory is the whole truth.
    pub fn is_single_node(&self) -> bool {
        self.engine() == EngineName::Sqlite
    }

    /// Whether writes wait for SQLite's one writer. PostgreSQL has many.
    pub fn has_waiting_writers(&self) -> bool {
        match &self.inner.engine {
            Engine::Sqlite(engine) => engine.has_waiting_writers(),
            Engine::Postgres(_) => false,
        }
    }

    pub fn counters(&self) -> Counters {
        self.inner.context.cells.snapshot()
    }

    pub fn clock(&self) -> &Clock {
        &self.inner.context.clock
    }

    pub fn ids(&self) -> &IdSource {
        &self.inner.context.ids
    }

    pub fn entropy(&self) -> &Entropy {
        &self.inner.context.entropy
    }

    /// Shared by the batches of all kinds of ingested rows.
    pub(crate) fn ingest_slots(&self) -> &Semaphore {
        &self.inner.ingest_slots
    }

    /// A write while nobody else writes, as far as the caller knows: it may take its time, and no line in the log says that it
    /// did.
    #[track_caller]
    pub fn write_alone<T, F>(&self, work: F) -> impl Future<Output = Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        self.run_on(Lane::Write, work, false)
    }

    #[track_caller]
    fn run<T, F>(&self, lane: Lane, work: F) -> impl Future<Output = Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        // Only on SQLite's write lane does a slow closure hold up others.
        let log_slow = lane == Lane::Write && matches!(self.inner.engine, Engine::Sqlite(_));
        self.run_on(lane, work, log_slow)
    }

    /// `log_slow`: whether a closure that takes long is worth a line in the log.
    #[track_caller]
    fn run_on<T, F>(&self, lane: Lane, work: F, log_slow: bool) -> impl Future<Output = Result<T>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: Fn(&mut Tx<'_>) -> Result<T> + Send + 'static,
    {
        let (job, answer) = Closure::with_answer(work, self.author.clone(), Location::caller(), Ticker, log_slow);
        let accepted = self.submit(lane, job);
        let context = (lane == Lane::Write).then(|| Arc::clone(&self.inner.context));
        async move {
            accepted?;
            let outcome = answer.await.unwrap_or_else(|_| Err(fault::closed()));
            match context {
                Some(context) => Self::noting(&context, outcome),
                None => outcome,
            }
        }
    }

    fn submit(&self, lane: Lane, job: Box<dyn Job>) -> Result<()> {
        match &self.inner.engine {
            Engine::Sqlite(engine) => engine.submit(lane, job),
            Engine::Postgres(engine) => engine.submit(lane, job),
        }
    }
}
