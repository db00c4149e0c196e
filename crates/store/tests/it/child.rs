//! This test program, started once more as another process that can be killed.

use std::{
    io::Write as _,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use kernel::{Clock, Entropy, Secret};
use store::{DatabaseUrl, Db, Limits, Options};

use crate::schema::add_entry;

const ROLE: &str = "TENANTRY_TEST_CHILD";
const URL: &str = "TENANTRY_TEST_CHILD_URL";
const FROM: &str = "TENANTRY_TEST_CHILD_FROM";

/// Where the other process starts. In a usual test run there is no role to play.
#[test]
fn entry() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let url = std::env::var(URL).expect("the parent passes the database").parse().expect("the parent passes a URL");
    let from = std::env::var(FROM).expect("the parent passes a number").parse().expect("the parent passes a number");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be started").block_on(async {
        let options = Options { url, clock: Clock::system(), entropy: Entropy::os(), limits: Limits::default() };
        let db = Db::open(options).await.expect("the database opens");
        match role.as_str() {
            "write until killed" => write_until_killed(db, from).await,
            "write once" => db.write(move |tx| add_entry(tx, from)).await.expect("stored"),
            "write slowly" => {
                tracing_subscriber::fmt().with_ansi(false).init();
                write_slowly(&db).await;
            }
            other => panic!("no role is called {other}"),
        }
    });
}

/// 64 callers; each acknowledged id goes out as one line, which the parent holds even when this process is gone.
async fn write_until_killed(db: Db, from: i64) {
    let next = Arc::new(AtomicI64::new(from));
    let callers: Vec<_> = (0..64)
        .map(|_| {
            let (db, next) = (db.clone(), next.clone());
            tokio::spawn(async move {
                let take = || next.fetch_add(1, Ordering::Relaxed);
                let mut id = take();
                while db.write(move |tx| add_entry(tx, id)).await.is_ok() {
                    // One write call per line: lines of several callers do not mix.
                    std::io::stdout().write_all(format!("ack {id}\n").as_bytes()).expect("the parent reads");
                    id = take();
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("writes until killed");
    }
}

/// A quick closure and one that holds the writer for longer than it should.
async fn write_slowly(db: &Db) {
    db.write(|tx| add_entry(tx, 1)).await.expect("stored");
    let slow = db.write(|tx| {
        let started = kernel::Ticker.now();
        while kernel::Ticker.since(started).as_millis() <= 15 {
            std::hint::spin_loop();
        }
        add_entry(tx, 2)
    });
    slow.await.expect("stored");
}

/// Starts another process in a role. Its standard output is piped.
pub(crate) fn start(role: &str, url: &DatabaseUrl, from: i64, environment: &[(&str, &str)]) -> Child {
    let url = match url {
        DatabaseUrl::Sqlite(path) => format!("sqlite:{}", path.display()),
        DatabaseUrl::Postgres(url) => Secret::expose(url).clone(),
    };
    Command::new(std::env::current_exe().expect("the test program knows its path"))
        .args(["child::entry", "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(URL, url)
        .env(FROM, from.to_string())
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test program can be started once more")
}
