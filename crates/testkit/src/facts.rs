//! What the service told its own rooms, for tests that look at it.

use serde_json::Value;
use store::args;

use crate::TestApp;

/// Kinds and data of the facts whose kind begins so, in order. Each names its app and its workspace.
pub async fn told(app: &TestApp, beginning: &str) -> Vec<(String, Value)> {
    let facts = read(app, beginning).await;
    let with_workspace = |(kind, payload, of_tenant): (String, Value, Option<String>)| {
        assert!(of_tenant.is_some(), "{kind}");
        (kind, payload)
    };
    facts.into_iter().map(with_workspace).collect()
}

/// The data of the facts of a kind that are the app's affair and no workspace's.
pub async fn told_of_app(app: &TestApp, kind: &str) -> Vec<Value> {
    read(app, kind).await.into_iter().map(|(_, payload, _)| payload).collect()
}

async fn read(app: &TestApp, beginning: &str) -> Vec<(String, Value, Option<String>)> {
    let query = "SELECT kind, payload, app_id, tenant_id FROM outbox ORDER BY id";
    let read = app
        .service()
        .core()
        .db
        .read(move |tx| tx.all::<(String, String, Option<String>, Option<String>)>(query, &args![]));
    let facts = read.await.expect("the outbox can be read");
    let meant = facts.into_iter().filter(|(kind, ..)| kind.starts_with(beginning));
    meant
        .map(|(kind, payload, of_app, of_tenant)| {
            assert_eq!(of_app, Some(app.app_id().to_string()), "{kind}");
            (kind, payload.parse().expect("a fact's data is JSON"), of_tenant)
        })
        .collect()
}
