//! What this room promises, proven on both engines.
#![allow(clippy::unwrap_used, reason = "in a test, a failure is a panic")]

mod cache;
mod clock;
mod facts;
mod jobs;
mod leases;
mod lossy;
mod mail;
mod outbound;
mod outbox;
mod sequence;
mod servers;
mod sms;

use std::{future::Future, time::Duration};

use kernel::{Clock, Entropy, Result};
use store::{Db, Limits, Migration, Options, args, testing::TestDb};

/// The schema of this room, and tables for what test consumers do.
pub(crate) static MIGRATIONS: &[Migration] = &[
    Migration::per_engine(
        1,
        "outbox",
        include_str!("../../../service/migrations/sqlite/0001_outbox.sql"),
        include_str!("../../../service/migrations/postgres/0001_outbox.sql"),
    ),
    Migration::shared(2, "messages", include_str!("../../../service/migrations/0002_messages.sql")),
    Migration::shared(3, "authors", include_str!("../../../service/migrations/0017_authors.sql")),
    Migration::shared(4, "quiet_facts", include_str!("../../../service/migrations/0030_imports.sql")),
    Migration::shared(
        5,
        "test_tables",
        "CREATE TABLE seen (consumer {key} NOT NULL, ordinal {int} NOT NULL, position {int} NOT NULL) {strict};
         CREATE INDEX seen_by ON seen (consumer, ordinal);
         CREATE TABLE things (id {key} PRIMARY KEY, live {bool} NOT NULL) {strict};",
    ),
];

const SEE: &str = "INSERT INTO seen (consumer, ordinal, position) \
                   SELECT $1, CAST(count(*) AS BIGINT) + 1, $2 FROM seen WHERE consumer = $1";

/// A consumer that writes down what it sees, in the order in which it sees it.
pub(crate) fn see(tx: &mut store::Tx<'_>, consumer: &str, fact: &spine::Fact) -> Result<()> {
    tx.exec(SEE, &args![consumer, fact.position]).map(|_| ())
}

/// The positions that a consumer saw, in its order.
pub(crate) async fn seen(db: &Db, consumer: &'static str) -> Vec<i64> {
    let rows = db
        .read(move |tx| {
            tx.all::<(i64,)>("SELECT position FROM seen WHERE consumer = $1 ORDER BY ordinal", &args![consumer])
        })
        .await
        .unwrap();
    rows.into_iter().map(|(position,)| position).collect()
}

/// Another node on PostgreSQL, with a clock of its own; SQLite has but one node.
pub(crate) async fn node_with_own_clock(test: &TestDb) -> Db {
    match test.db.engine() {
        store::EngineName::Sqlite => test.db.clone(),
        store::EngineName::Postgres => Db::open(Options {
            url: test.url.clone(),
            clock: Clock::system(),
            entropy: Entropy::os(),
            limits: Limits::default(),
        })
        .await
        .unwrap(),
    }
}

/// Fails the test instead of hanging it. Nothing waits for this time to pass.
pub(crate) async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), event).await.unwrap_or_else(|_| panic!("{what} did not happen"))
}
