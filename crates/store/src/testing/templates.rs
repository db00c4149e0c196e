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

use super::Template;
use crate::{DatabaseUrl, EngineName, Limits, dialect, migrations};

/// Any number; it only has to be the same in all test processes.
const BUILD_LOCK: i64 = 0x7465_6e61_6e74;
/// A test database that is older than this belongs to a run that was killed.
const STALE_AFTER_SECONDS: i64 = 3600;

/// Short, and different for templates that hold different things.
fn fingerprint(template: Template, engine: EngineName) -> String {
    let mut texts = vec![dialect::migration(migrations::CREATE_TABLE, engine)];
    texts
        .extend(template.migrations.iter().map(|step| format!("{} {}\n{}", step.number, step.name, step.text(engine))));
    texts.extend(template.content.map(|content| content.name.to_owned()));
    digest(&SHA256, texts.join("\n").as_bytes()).as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs on a thread without a runtime, where blocking clients and a runtime of one's own are allowed.
pub(super) fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match thread::scope(|scope| scope.spawn(work).join()) {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn build(url: DatabaseUrl, template: Template) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be started");
    runtime.block_on(async {
        let db = super::open(url, Clock::system(), Entropy::os(), Limits::default()).await;
        db.migrate(template.migrations).await.expect("the migrations apply");
        if let Some(content) = template.content {
            (content.fill)(db.clone()).await;
        }
        db.close().await;
    });
}

/// Puts a migrated database at `target`.
pub(super) fn copy_sqlite(template: Template, target: &Path) {
    let file = sqlite_templates().join(format!("{}.db", fingerprint(template, EngineName::Sqlite)));
    if !file.exists() {
        on_own_thread(|| build_sqlite(template, &file));
    }
    std::fs::copy(&file, target).expect("the template can be copied");
}

/// Beside the test programs, so that templates go when those go.
fn sqlite_templates() -> PathBuf {
    let program = std::env::current_exe().expect("the test program knows its path");
    program.with_file_name("sqlite-templates")
}

fn build_sqlite(template: Template, file: &Path) {
    let home = file.parent().expect("a template lies in a folder");
    std::fs::create_dir_all(home).expect("the folder of templates can be made");
    let folder = tempfile::tempdir_in(home).expect("a temporary folder can be made");
    let path = folder.path().join("template.db");
    build(DatabaseUrl::Sqlite(path.clone()), template);
    // When several processes get here, the last one wins; any of them will do.
    std::fs::rename(path, file).expect("the template can be put in place");
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

pub(super) fn clone_postgres(template: Template) -> Database {
    let server = std::env::var("TENANTRY_TEST_POSTGRES")
        .expect("TENANTRY_TEST_POSTGRES is not set: run the tests with ./scripts/test, which starts a PostgreSQL");
    on_own_thread(|| {
        let mut client = Client::connect(&server, NoTls).expect("the PostgreSQL at TENANTRY_TEST_POSTGRES answers");
        let original = format!("tenantry_template_{}", fingerprint(template, EngineName::Postgres));
        if !exists(&mut client, &original) {
            build_postgres(&mut client, &server, &original, template);
            drop_stale(&mut client);
        }
        let now = Clock::system().now().as_seconds();
        let random = u64::from_be_bytes(Entropy::os().bytes());
        let name = format!("tenantry_test_{now}_{random:016x}");
        create(&mut client, &name, &original);
        Database { name, server: server.clone() }
    })
}

/// A copy of files is many times cheaper than replaying each page through the log, where durability is switched off.
fn create(client: &mut Client, name: &str, original: &str) {
    run(client, &format!("CREATE DATABASE {name} TEMPLATE {original} STRATEGY FILE_COPY"));
}

fn exists(client: &mut Client, name: &str) -> bool {
    let found = client.query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&name]);
    found.expect("the server lists its databases").is_some()
}

fn build_postgres(client: &mut Client, server: &str, original: &str, template: Template) {
    run(client, &format!("SELECT pg_advisory_lock({BUILD_LOCK})"));
    if !exists(client, original) {
        let building = format!("{original}_building");
        run(client, &format!("DROP DATABASE IF EXISTS {building} WITH (FORCE)"));
        run(client, &format!("CREATE DATABASE {building} TEMPLATE template0"));
        build(DatabaseUrl::Postgres(Secret::new(on_database(server, &building))), template);
        // Whoever connects to a template keeps others from copying it.
        run(client, &format!("ALTER DATABASE {building} WITH ALLOW_CONNECTIONS false"));
        run(client, &format!("ALTER DATABASE {building} RENAME TO {original}"));
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
