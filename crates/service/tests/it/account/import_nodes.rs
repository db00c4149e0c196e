//! Two nodes at one import, and two callers with one. PostgreSQL only: on SQLite whoever writes is alone.

use std::{
    convert::Infallible,
    sync::{Mutex, mpsc},
};

use axum::body::Body;
use futures_util::{StreamExt as _, stream};
use http::Method;
use serde_json::Value;
use store::DatabaseUrl;
use testkit::{EngineName, TestApp};

use super::import::{IMPORT, everybody, expected, free_claims, item};

const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                       AND wait_event_type = 'Lock' AND EXISTS (SELECT 1 FROM imports WHERE lease_owner IS NOT NULL)";

/// Until so many transactions wait for a lock, and a node has claimed the import. Asked beside the service, whose statements
/// are those of both engines.
async fn until_they_wait(app: &TestApp, count: i64) {
    let DatabaseUrl::Postgres(url) = app.site().database().clone() else { panic!("PostgreSQL") };
    let asked = tokio::task::spawn_blocking(move || {
        let mut client = postgres::Client::connect(url.expose(), postgres::NoTls).expect("connects");
        while client.query_one(WAITING, &[]).expect("a row").get::<_, i64>(0) < count {
            std::thread::yield_now();
        }
    });
    asked.await.expect("they wait");
}

/// Both have read the same rows when the first of them stores them: a node that is slow may have lost its claim.
async fn at_once(app: TestApp) {
    let other = app.another_node().await;
    let batch: Vec<Value> = (0..6).map(|number| item(&format!("w{number}"), 60)).collect();
    app.key().post(IMPORT, batch.clone()).await.expect(200);
    let (inside, entered) = mpsc::channel();
    let (go, wait) = mpsc::channel();
    let (gates, id) = (Mutex::new((inside, wait)), app.app_id());
    let holder = app.service().core().db.write(move |tx| {
        tenancy::apps::hold(tx, id)?;
        let gates = gates.lock().expect("whole");
        gates.0.send(()).expect("heard");
        gates.1.recv().expect("told");
        Ok(())
    });
    tokio::task::block_in_place(|| entered.recv().expect("it holds the app"));
    let mut nodes = Vec::new();
    for (count, node) in (1..).zip([app.clone(), other.clone()]) {
        nodes.push(tokio::spawn(async move { node.drain().await }));
        until_they_wait(&app, count).await;
        free_claims(&app).await;
    }
    go.send(()).expect("it waits");
    holder.await.expect("nothing was written");
    for node in nodes {
        node.await.expect("no panic");
    }
    TestApp::drain_all(&[app.clone(), other.clone()]).await;
    assert_eq!(everybody(&app).await, expected(&batch));
    other.service().close().await;
}

#[test]
fn rows_that_another_node_has_stored_are_passed_over() {
    testkit::run(EngineName::Postgres, at_once);
}

const STAGED: &str = "SELECT count(DISTINCT import_id) FROM import_rows";
const LOCKED: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// Both have looked whether the batch was sent before, and look again when it is here.
async fn with_one_key(app: TestApp) {
    let batch = serde_json::to_string(&[item("acme", 600)]).expect("JSON");
    let (beginning, end) = batch.split_at(batch.len() - 2);
    let (go, wait) = tokio::sync::watch::channel(false);
    let sent = [1, 2].map(|_| {
        let (mut wait, beginning, end) = (wait.clone(), beginning.to_owned(), end.to_owned());
        let rest = async move {
            wait.wait_for(|told| *told).await.expect("told");
            Ok::<_, Infallible>(end)
        };
        let body = Body::from_stream(stream::iter([Ok(beginning)]).chain(stream::once(rest)));
        let caller = app.key().header("content-type", "application/json").header("idempotency-key", "monday");
        tokio::spawn(async move { caller.send(Method::POST, IMPORT, body).await.expect(200).text("/reference") })
    });
    let DatabaseUrl::Postgres(url) = app.site().database().clone() else { panic!("PostgreSQL") };
    let held = tokio::task::spawn_blocking(move || {
        let [mut holder, mut watcher] =
            [(); 2].map(|()| postgres::Client::connect(url.expose(), postgres::NoTls).expect("connects"));
        let mut until = |sql: &str| {
            while watcher.query_one(sql, &[]).expect("a row").get::<_, i64>(0) < 2 {
                std::thread::yield_now();
            }
        };
        until(STAGED);
        let mut held = holder.transaction().expect("begins");
        held.query("SELECT id FROM imports FOR UPDATE", &[]).expect("held");
        go.send(true).expect("they wait");
        until(LOCKED);
        held.commit().expect("ends");
    });
    held.await.expect("both were held");
    let [first, second] = sent;
    assert_eq!(first.await.expect("no panic"), second.await.expect("no panic"));
}

#[test]
fn a_batch_that_is_sent_twice_at_once_is_one_import() {
    testkit::run(EngineName::Postgres, with_one_key);
}
