//! Two nodes at one import. PostgreSQL only: SQLite has one node.

use std::sync::{Mutex, mpsc};

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
