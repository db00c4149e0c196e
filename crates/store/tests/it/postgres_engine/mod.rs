//! What only PostgreSQL has: connections that break, deadlocks, other nodes, a server that is away.

mod commits;
mod encryption;
mod estimates;
mod outages;
mod proxy;
mod strictness;

use postgres::{Client, NoTls};
use store::{DatabaseUrl, Db, EngineName, Limits, Options, testing};

use crate::schema::MIGRATIONS;

const COUNT_UP: &str = "UPDATE names SET n = n + 1 WHERE name = $1";

/// Runs a test on PostgreSQL.
fn on_postgres<F: Future<Output = ()>>(test: impl FnOnce(testing::TestDb) -> F) {
    testing::run(EngineName::Postgres, MIGRATIONS, test);
}

fn on_runtime<F: Future<Output = ()>>(test: F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be started").block_on(test);
}

pub(crate) async fn open(url: DatabaseUrl, limits: Limits) -> kernel::Result<Db> {
    Db::open(Options { url, clock: kernel::Clock::system(), entropy: kernel::Entropy::os(), limits }).await
}

/// Speaks to the server past the engine. The blocking client wants a thread that has no runtime.
fn directly<T: Send>(url: &DatabaseUrl, work: impl FnOnce(&mut Client) -> Result<T, postgres::Error> + Send) -> T {
    let DatabaseUrl::Postgres(url) = url else { panic!("not PostgreSQL") };
    let work = || Client::connect(url.expose(), NoTls).and_then(|mut client| work(&mut client));
    let outcome = std::thread::scope(|scope| scope.spawn(work).join()).expect("no panic");
    outcome.expect("the server does it")
}

/// The first column of the first row.
fn ask(url: &DatabaseUrl, sql: &str) -> i64 {
    directly(url, |client| client.query_one(sql, &[])?.try_get(0))
}

fn text(url: &DatabaseUrl, sql: &str) -> String {
    directly(url, |client| client.query_one(sql, &[])?.try_get(0))
}

pub(crate) fn run(url: &DatabaseUrl, sql: &str) {
    directly(url, |client| client.batch_execute(sql));
}

/// Ends the sessions of this database for which `condition` holds; how many there were.
fn end_sessions(url: &DatabaseUrl, condition: &str) -> i64 {
    ask(
        url,
        &format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE datname = current_database() AND application_name = 'tenantry' AND pid <> pg_backend_pid() AND ({condition})"
        ),
    )
}
