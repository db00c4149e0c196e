//! The table that is written and read, and the ways to do so.

use std::sync::Arc;

use bench::{Result, load::Caller};
use kernel::{AppId, Id, Timestamp};
use store::{Db, Ingest, Ingestor, Migration, Tx, args};

kernel::id_kinds! {
    EventId(Event) = "event";
}

pub const MIGRATIONS: &[Migration] = &[Migration::shared(
    1,
    "events",
    "CREATE TABLE events (id {key} PRIMARY KEY, app_id {key} NOT NULL, name TEXT NOT NULL, at {int} NOT NULL) {strict};",
)];

const INSERT: &str = "INSERT INTO events (id, app_id, name, at) VALUES ($1, $2, $3, $4)";
const INSERT_ALL: &str = "INSERT INTO events (id, app_id, name, at) SELECT id, app_id, name, at FROM {rows} WHERE true";
const FIND: &str = "SELECT name, at FROM events WHERE id = $1";
const NAME: &str = "document.opened";

/// One event, as the ingest batcher takes it.
pub struct Row {
    id: Id<Event>,
    app: AppId,
    at: Timestamp,
}

pub struct Events;

impl Ingest for Events {
    type Row = Row;
    type Answer = ();

    fn store(tx: &mut Tx<'_>, rows: &[Row]) -> kernel::Result<Vec<()>> {
        let values: Vec<_> = rows.iter().map(|row| (row.id, row.app, NAME, row.at)).collect();
        tx.insert_all(INSERT_ALL, ["id", "app_id", "name", "at"], &values)?;
        Ok(vec![(); rows.len()])
    }
}

/// How a caller works with the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A closure per row.
    Write,
    /// A statement per row.
    ExecOne,
    /// Through the ingest batcher.
    Ingest,
    /// A point read as a single statement.
    GetOne,
    /// A point read in a closure.
    Read,
    /// Four point reads, then one write.
    Mixed,
}

/// Everything a caller needs.
#[derive(Clone)]
pub struct Place {
    pub db: Db,
    pub ingestor: Ingestor<Events>,
    app: AppId,
    /// Rows that can be read.
    known: Arc<[Id<Event>]>,
}

impl Place {
    /// A migrated database with `rows` rows in it.
    pub async fn fill(db: Db, rows: usize) -> Result<Self> {
        db.migrate(MIGRATIONS).await?;
        let mut place = Self { ingestor: db.ingestor(), app: db.ids().next(), known: Arc::new([]), db };
        let known: Vec<Id<Event>> = (0..rows).map(|_| place.db.ids().next()).collect();
        for part in known.chunks(1_000) {
            let (part, app) = (part.to_vec(), place.app);
            let insert = move |tx: &mut Tx<'_>| {
                let rows: Vec<Row> = part.iter().map(|&id| Row { id, app, at: tx.now() }).collect();
                Events::store(tx, &rows)
            };
            place.db.write(insert).await?;
        }
        place.known = known.into();
        Ok(place)
    }

    pub fn callers(&self, way: Way, count: usize) -> Vec<EventCaller> {
        (0..count).map(|number| EventCaller { place: self.clone(), way, turn: number * 7_919 }).collect()
    }

    async fn write(&self) -> kernel::Result<()> {
        let app = self.app;
        self.db
            .write(move |tx| {
                let id: Id<Event> = tx.new_id();
                tx.exec(INSERT, &args![id, app, NAME, tx.now()]).map(|_| ())
            })
            .await
    }

    async fn exec_one(&self) -> kernel::Result<()> {
        let (id, now) = (self.db.ids().next::<Event>(), self.db.clock().now());
        self.db.exec_one(INSERT, &args![id, self.app, NAME, now]).await.map(|_| ())
    }

    async fn ingest(&self) -> kernel::Result<()> {
        let (id, at) = (self.db.ids().next(), self.db.clock().now());
        self.ingestor.store(Row { id, app: self.app, at }).await
    }

    async fn get_one(&self, id: Id<Event>) -> kernel::Result<Option<(String, i64)>> {
        self.db.get_one(FIND, &args![id]).await
    }

    async fn read(&self, id: Id<Event>) -> kernel::Result<Option<(String, i64)>> {
        self.db.read(move |tx| tx.opt(FIND, &args![id])).await
    }
}

pub struct EventCaller {
    place: Place,
    way: Way,
    turn: usize,
}

impl EventCaller {
    /// Walks through the known rows in strides, so that neighbours in time are none in the table.
    fn next_known(&mut self) -> Id<Event> {
        self.turn += 7_919;
        self.place.known[self.turn % self.place.known.len()]
    }

    async fn look_up(&mut self, single: bool) -> Result<()> {
        let id = self.next_known();
        let found = if single { self.place.get_one(id).await? } else { self.place.read(id).await? };
        found.map(|_| ()).ok_or_else(|| format!("{id} was not found").into())
    }
}

impl Caller for EventCaller {
    async fn call(&mut self) -> Result<()> {
        match self.way {
            Way::Write => Ok(self.place.write().await?),
            Way::ExecOne => Ok(self.place.exec_one().await?),
            Way::Ingest => Ok(self.place.ingest().await?),
            Way::GetOne => self.look_up(true).await,
            Way::Read => self.look_up(false).await,
            Way::Mixed if self.turn.is_multiple_of(5) => {
                self.turn += 7_919;
                Ok(self.place.write().await?)
            }
            Way::Mixed => self.look_up(true).await,
        }
    }
}
