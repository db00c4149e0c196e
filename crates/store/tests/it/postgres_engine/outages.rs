//! A server that is away, comes back, or was never there.

use std::time::Duration;

use kernel::{Code, Secret, Ticker};
use store::{DatabaseUrl, Limits, args, testing::OwnPostgres};

use super::{COUNT_UP, ask, end_sessions, on_postgres, on_runtime, open};
use crate::schema::{MIGRATIONS, add_entry, entries};

const FIND: &str = "SELECT id FROM entries WHERE id = $1";
const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                        AND application_name = 'tenantry'";

#[test]
fn an_unreachable_server_is_named_without_its_password() {
    on_runtime(async {
        // Bound but not listened to by PostgreSQL: closed again before anybody connects.
        let port =
            std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("free").port();
        let url = DatabaseUrl::Postgres(Secret::new(format!("postgres://me:s3cret@127.0.0.1:{port}/app")));
        let started = Ticker.now();
        let error = open(url, Limits::default()).await.err().expect("nobody is there");
        assert!(Ticker.since(started) < Duration::from_secs(2));
        assert_eq!(error.code(), Code::StorageUnavailable);
        assert!(error.public().contains(&format!("127.0.0.1:{port}, database app")), "{error}");
        assert!(!format!("{error:?}").contains("s3cret"));
    });
}

#[test]
fn a_missing_database_is_named() {
    on_postgres(async |test| {
        let DatabaseUrl::Postgres(url) = &test.url else { panic!("not PostgreSQL") };
        let url = url.expose().replace("tenantry_test_", "no_such_");
        let error = open(DatabaseUrl::Postgres(Secret::new(url)), Limits::default()).await.err().expect("missing");
        assert!(error.public().contains("does not exist"), "{error}");
    });
}

#[test]
fn work_waits_for_a_server_then_is_refused_at_once_then_goes_on() {
    let server = OwnPostgres::start_new();
    on_runtime(async {
        let patience = Duration::from_millis(300);
        let db = open(server.url(), Limits { patience, ..Limits::default() }).await.expect("the database opens");
        db.migrate(MIGRATIONS).await.expect("the migrations apply");
        db.write(|tx| add_entry(tx, 1)).await.expect("stored");

        server.stop("fast");
        let started = Ticker.now();
        let error = db.write(|tx| add_entry(tx, 2)).await.expect_err("away");
        assert_eq!(error.code(), Code::StorageUnavailable, "{error:?}");
        assert!(error.retry_after().is_some());
        assert!(Ticker.since(started) >= patience);
        let started = Ticker.now();
        for _ in 0..20 {
            let read = db.read(|tx| tx.opt::<(i64,)>(FIND, &args![1])).await;
            assert_eq!(read.expect_err("away").code(), Code::StorageUnavailable);
            assert_eq!(db.ping().await.expect_err("away").code(), Code::StorageUnavailable);
        }
        assert!(Ticker.since(started) < Duration::from_secs(2), "refused at once");

        server.start();
        // Whoever comes first after the server is back may still be told of the outage.
        while db.ping().await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        db.write(|tx| add_entry(tx, 3)).await.expect("stored");
        assert_eq!(db.get_one::<(i64,)>(FIND, &args![3]).await.expect("read"), Some((3,)));
        assert_eq!(entries(&db).await, [1, 3]);
        db.close().await;
    });
}

#[test]
fn a_full_server_is_called_full() {
    let server = OwnPostgres::start_new();
    on_runtime(async {
        let patience = Duration::from_millis(300);
        let db = open(server.url(), Limits { patience, ..Limits::default() }).await.expect("the database opens");
        let others = take_all_connections(&server.url());
        assert!(!others.is_empty());
        // The one that loses patience, and those that come after it.
        for _ in 0..5 {
            let error = db.read(|tx| tx.opt::<(i64,)>(FIND, &args![1])).await.expect_err("full");
            assert_eq!(error.code(), Code::StorageUnavailable);
            assert!(format!("{error:?}").contains("too many clients already"), "{error:?}");
        }
        std::thread::scope(|scope| scope.spawn(|| drop(others)).join()).expect("no panic");
        db.close().await;
    });
}

/// Connects until the server takes no more.
fn take_all_connections(url: &DatabaseUrl) -> Vec<postgres::Client> {
    let DatabaseUrl::Postgres(url) = url else { panic!("not PostgreSQL") };
    let connect = || std::iter::from_fn(|| postgres::Client::connect(url.expose(), postgres::NoTls).ok()).collect();
    std::thread::scope(|scope| scope.spawn(connect).join()).expect("no panic")
}

#[test]
fn every_path_survives_the_end_of_its_session() {
    on_postgres(async |test| {
        let db = &test.db;
        for id in 0..3 {
            db.write(move |tx| add_entry(tx, id)).await.expect("stored");
            assert_eq!(db.get_one::<(i64,)>(FIND, &args![id]).await.expect("read"), Some((id,)));
            assert_eq!(db.scan(move |tx| tx.opt::<(i64,)>(FIND, &args![id])).await.expect("scanned"), Some((id,)));
            assert_eq!(db.exec_one(COUNT_UP, &args!["nobody"]).await.expect("none"), 0);
            assert!(end_sessions(&test.url, "true") >= 4);
        }
        assert_eq!(entries(db).await, [0, 1, 2]);
    });
}

#[test]
fn a_wake_reaches_the_other_nodes() {
    on_postgres(async |test| {
        let other = test.another_node().await;
        let (mut here, mut there) = (test.db.wakeups(), other.wakeups());
        test.db.wake();
        there.changed().await.expect("woken");
        here.changed().await.expect("woken without the server");
        // A node that lost its connection may have missed something: it looks for itself.
        end_sessions(&test.url, "query LIKE '%LISTEN%' OR query LIKE '%NOTIFY%'");
        here.changed().await.expect("woken");
        there.changed().await.expect("woken");
        other.wake();
        here.changed().await.expect("woken");
        other.close().await;
    });
}

#[test]
fn sessions_end_with_their_database() {
    on_postgres(async |test| {
        let closed = test.another_node().await;
        let dropped = test.another_node().await;
        for db in [&closed, &dropped] {
            db.write(|tx| add_entry(tx, 1)).await.expect("stored");
            db.scan(|tx| tx.opt::<(i64,)>(FIND, &args![1])).await.expect("scanned");
            db.ping().await.expect("pinged");
        }
        closed.close().await;
        drop(dropped);
        test.db.close().await;
        while ask(&test.url, SESSIONS) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}
