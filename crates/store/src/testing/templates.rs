//! Migrated templates, made once per list of migrations and copied for each test.
//!
//! A template appears under its name only when it is complete, so that a killed run leaves no half template behind.

use std::{
    path::{Path, PathBuf},
    thread,
};

use aws_lc_rs::digest::{SHA256, digest};
use kernel::{Clock, Entropy, Secret};
use postgres::{Client, NoTls};

use crate::{DatabaseUrl, EngineName, Limits, Migration};

/// Any number; it only has to be the same in all test processes.
const BUILD_LOCK: i64 = 0x7465_6e61_6e74;
/// A test database that is older than this belongs to a run that was killed.
const STALE_AFTER_SECONDS: i64 = 3600;

/// Short, and different for lists that make different schemas.
fn fingerprint(migrations: &[Migration], engine: EngineName) -> String {
    let texts: Vec<String> = migrations
        .iter()
        .map(|migration| format!("{} {}\n{}", migration.number, migration.name, migration.text(engine)))
        .collect();
    digest(&SHA256, texts.join("\n").as_bytes()).as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs on a thread without a runtime, where blocking clients and a runtime of one's own are allowed.
fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match thread::scope(|scope| scope.spawn(work).join()) {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn migrate(url: DatabaseUrl, migrations: &'static [Migration]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be started");
    runtime.block_on(async {
        let db = super::open(url, Clock::system(), Entropy::os(), Limits::default()).await;
        db.migrate(migrations).await.expect("the migrations apply");
        db.close().await;
    });
}

/// Puts a migrated database at `target`.
pub(super) fn copy_sqlite(migrations: &'static [Migration], target: &Path) {
    let template = sqlite_templates().join(format!("{}.db", fingerprint(migrations, EngineName::Sqlite)));
    if !template.exists() {
        on_own_thread(|| build_sqlite(migrations, &template));
    }
    std::fs::copy(&template, target).expect("the template can be copied");
}

/// Beside the test programs, so that templates go when those go.
fn sqlite_templates() -> PathBuf {
    let program = std::env::current_exe().expect("the test program knows its path");
    program.with_file_name("sqlite-templates")
}

fn build_sqlite(migrations: &'static [Migration], template: &Path) {
    let home = template.parent().expect("a template lies in a folder");
    std::fs::create_dir_all(home).expect("the folder of templates can be made");
    let folder = tempfile::tempdir_in(home).expect("a temporary folder can be made");
    let path = folder.path().join("template.db");
    migrate(DatabaseUrl::Sqlite(path.clone()), migrations);
    // When several processes get here, the last one wins; all of them made the same.
    std::fs::rename(path, template).expect("the template can be put in place");
}

/// One test's database on the PostgreSQL of the test run.
pub(super) struct Database {
    name: String,
    server: String,
}

impl Database {
    pub(super) fn url(&self) -> String {
        on_database(&self.server, &self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        on_own_thread(|| {
            let outcome = Client::connect(&self.server, NoTls)
                .and_then(|mut client| client.batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", self.name)));
            if let Err(error) = outcome {
                tracing::warn!(%error, name = self.name, "a test database could not be dropped; a later run will");
            }
        });
    }
}

/// The server's URL with another database.
fn on_database(server: &str, name: &str) -> String {
    let (rest, query) = server.split_once('?').map_or((server, None), |(rest, query)| (rest, Some(query)));
    let authority = rest.rsplit_once('/').map_or(rest, |(authority, _)| authority);
    query.map_or_else(|| format!("{authority}/{name}"), |query| format!("{authority}/{name}?{query}"))
}

pub(super) fn clone_postgres(migrations: &'static [Migration]) -> Database {
    let server = std::env::var("TENANTRY_TEST_POSTGRES")
        .expect("TENANTRY_TEST_POSTGRES is not set: run the tests with ./scripts/test, which starts a PostgreSQL");
    on_own_thread(|| {
        let mut client = Client::connect(&server, NoTls).expect("the PostgreSQL at TENANTRY_TEST_POSTGRES answers");
        let template = format!("tenantry_template_{}", fingerprint(migrations, EngineName::Postgres));
        if !exists(&mut client, &template) {
            build_postgres(&mut client, &server, &template, migrations);
            drop_stale(&mut client);
        }
        let now = Clock::system().now().as_seconds();
        let random = u64::from_be_bytes(Entropy::os().bytes());
        let name = format!("tenantry_test_{now}_{random:016x}");
        create(&mut client, &name, &template);
        Database { name, server: server.clone() }
    })
}

/// A copy of files is many times cheaper than replaying each page through the log, where durability is switched off.
fn create(client: &mut Client, name: &str, template: &str) {
    run(client, &format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY"));
}

fn exists(client: &mut Client, name: &str) -> bool {
    let found = client.query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&name]);
    found.expect("the server lists its databases").is_some()
}

fn build_postgres(client: &mut Client, server: &str, template: &str, migrations: &'static [Migration]) {
    run(client, &format!("SELECT pg_advisory_lock({BUILD_LOCK})"));
    if !exists(client, template) {
        let building = format!("{template}_building");
        run(client, &format!("DROP DATABASE IF EXISTS {building} WITH (FORCE)"));
        run(client, &format!("CREATE DATABASE {building} TEMPLATE template0"));
        migrate(DatabaseUrl::Postgres(Secret::new(on_database(server, &building))), migrations);
        // Whoever connects to a template keeps others from copying it.
        run(client, &format!("ALTER DATABASE {building} WITH ALLOW_CONNECTIONS false"));
        run(client, &format!("ALTER DATABASE {building} RENAME TO {template}"));
    }
    run(client, &format!("SELECT pg_advisory_unlock({BUILD_LOCK})"));
}

fn run(client: &mut Client, sql: &str) {
    client.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn drop_stale(client: &mut Client) {
    let names = client.query("SELECT datname FROM pg_database WHERE datname LIKE 'tenantry\\_test\\_%'", &[]);
    let oldest = Clock::system().now().as_seconds() - STALE_AFTER_SECONDS;
    for row in names.expect("the server lists its databases") {
        let name: String = row.get(0);
        let made = name.split('_').nth(2).and_then(|seconds| seconds.parse::<i64>().ok());
        if made.is_some_and(|made| made < oldest) {
            // Another process may be faster.
            drop(client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")));
        }
    }
}
