//! Databases for tests: a fresh, migrated one per test on either engine, gone when it is dropped.
//!
//! Migrations run once per list and machine; each test gets a copy of the result. A missing PostgreSQL fails the test:
//! nothing is ever skipped.

mod own_postgres;
mod prepared;
mod schema;
mod templates;

use std::{future::Future, pin::Pin};

use kernel::{Clock, Entropy, Secret};
use tempfile::TempDir;

pub use self::{
    own_postgres::OwnPostgres,
    prepared::{sqlite_plans, unprepared},
    schema::{SchemaIndex, SchemaTable, indexes, schema, statement},
};
use crate::{DatabaseUrl, Db, EngineName, Limits, Migration, Options};

/// What a fresh test database holds. Made once per machine and then copied.
#[derive(Clone, Copy)]
pub struct Template {
    pub migrations: &'static [Migration],
    pub content: Option<TemplateContent>,
}

/// Rows that every copy starts with.
#[derive(Clone, Copy)]
pub struct TemplateContent {
    /// Another content needs another name: templates are kept by it.
    pub name: &'static str,
    pub fill: fn(Db) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// A database of its own for one test that nobody has opened yet.
pub struct TestStore {
    pub url: DatabaseUrl,
    place: TestPlace,
}

/// What goes when the test is over.
enum TestPlace {
    Folder { _removed_on_drop: TempDir },
    Database { _dropped_on_drop: templates::Database },
}

impl TestStore {
    pub fn create(engine: EngineName, template: Template) -> Self {
        match engine {
            EngineName::Sqlite => {
                let folder = tempfile::tempdir().expect("a temporary folder can be made");
                let path = folder.path().join("test.db");
                templates::copy_sqlite(template, &path);
                Self { url: DatabaseUrl::Sqlite(path), place: TestPlace::Folder { _removed_on_drop: folder } }
            }
            EngineName::Postgres => {
                let database = templates::clone_postgres(template);
                let url = DatabaseUrl::Postgres(Secret::new(database.url()));
                Self { url, place: TestPlace::Database { _dropped_on_drop: database } }
            }
        }
    }
}

/// A database of its own for one test.
pub struct TestDb {
    pub db: Db,
    pub url: DatabaseUrl,
    limits: Limits,
    // Dropped after the handle.
    store: TestStore,
}

impl TestDb {
    pub async fn create(engine: EngineName, migrations: &'static [Migration], clock: Clock, entropy: Entropy) -> Self {
        Self::with_limits(engine, migrations, clock, entropy, Limits::default()).await
    }

    pub async fn with_limits(
        engine: EngineName,
        migrations: &'static [Migration],
        clock: Clock,
        entropy: Entropy,
        limits: Limits,
    ) -> Self {
        let store = TestStore::create(engine, Template { migrations, content: None });
        let url = store.url.clone();
        let db = open(url.clone(), clock, entropy, limits.clone()).await;
        Self { db, url, limits, store }
    }

    /// A database without any schema.
    pub async fn empty(engine: EngineName) -> Self {
        Self::create(engine, &[], Clock::system(), Entropy::os()).await
    }

    /// Closes the handle and opens the database again, as a restart of the process does.
    pub async fn reopen(&mut self) {
        self.db.close().await;
        self.db = self.open_again().await;
    }

    /// The handle of another node on the same database. SQLite serves one process only: there it is the same handle.
    pub async fn another_node(&self) -> Db {
        match &self.store.place {
            TestPlace::Folder { .. } => self.db.clone(),
            TestPlace::Database { .. } => self.open_again().await,
        }
    }

    async fn open_again(&self) -> Db {
        let (clock, entropy) = (self.db.clock().clone(), self.db.entropy().clone());
        open(self.url.clone(), clock, entropy, self.limits.clone()).await
    }
}

async fn open(url: DatabaseUrl, clock: Clock, entropy: Entropy, limits: Limits) -> Db {
    Db::open(Options { url, clock, entropy, limits }).await.expect("the test database opens")
}

/// Runs one test body on one engine, with the machine's clock and randomness.
pub fn run<F: Future<Output = ()>>(
    engine: EngineName,
    migrations: &'static [Migration],
    test: impl FnOnce(TestDb) -> F,
) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime
        .expect("a runtime can be started")
        .block_on(async { test(TestDb::create(engine, migrations, Clock::system(), Entropy::os()).await).await });
}

/// Makes two tests, `name::sqlite` and `name::postgres`, of each `async fn name(test: TestDb)`:
/// `on_both_engines!(MIGRATIONS: name, other_name);`
#[macro_export]
macro_rules! on_both_engines {
    ($migrations:ident: $($name:ident),+ $(,)?) => { $(
        mod $name {
            #[test]
            fn sqlite() {
                $crate::testing::run($crate::EngineName::Sqlite, super::$migrations, super::$name);
            }

            #[test]
            fn postgres() {
                $crate::testing::run($crate::EngineName::Postgres, super::$migrations, super::$name);
            }
        }
    )+ };
}
