//! Several nodes send together, and one that lost a claim does not speak for it.

use std::{collections::BTreeMap, time::Duration};

use serde_json::json;
use store::args;
use testkit::{
    Receiver, Reply, TestApp, on_both_engines,
    webhooks::{deliveries, delivery, hook},
};

on_both_engines!(
    nodes_share_deliveries_and_send_each_once,
    an_attempt_without_an_outcome_is_repeated_under_its_number,
    claims_of_the_dead_can_be_ended,
    who_lost_a_claim_writes_no_outcome,
);

async fn nodes_share_deliveries_and_send_each_once(app: TestApp) {
    let receiver = Receiver::start().await;
    let acme = app.workspace("acme").await;
    hook(&app, &receiver, &["tenant.updated"]).await;
    let node = app.another_node().await;
    for number in 0..60 {
        let change = json!({ "name": format!("name {number}") });
        app.key().put(&format!("/account/tenant/{}", acme.id), change).await.expect(200);
    }
    TestApp::drain_all(&[app.clone(), node]).await;
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for received in receiver.received() {
        *times.entry(received.json()["id"].to_string()).or_default() += 1;
    }
    assert_eq!(times.len(), 60);
    assert!(times.values().all(|count| *count == 1), "{times:?}");
}

/// One attempt failed, and a node claimed the second and died: what it left is a claim until some moment.
async fn claimed_by_a_dead_node(app: &TestApp, until: i64) -> Receiver {
    let receiver = Receiver::start().await;
    receiver.answer_next(&[500]);
    hook(app, &receiver, &["tenant.created"]).await;
    app.workspace("acme").await;
    app.drain().await;
    let claim = "UPDATE webhook_deliveries SET attempt = made + 1, lease_owner = 'node_dead', lease_until = $1";
    app.service().core().db.exec_one(claim, &args![until]).await.expect("claimed");
    receiver
}

async fn an_attempt_without_an_outcome_is_repeated_under_its_number(app: TestApp) {
    let _receiver = claimed_by_a_dead_node(&app, 1).await;
    assert_eq!(deliveries(&app).await[0]["attempt"], 2, "under way");
    app.advance(Duration::from_secs(61)).await;
    let made = delivery(&app, &deliveries(&app).await[0]["id"]).await;
    assert_eq!((&made["status"], &made["attempt"]), (&json!("delivered"), &json!(2)));
    assert_eq!(made["attempts"].as_array().map(Vec::len), Some(2));
}

/// As a restart does where no other node can hold one: the claim would last for ages.
async fn claims_of_the_dead_can_be_ended(app: TestApp) {
    let _receiver = claimed_by_a_dead_node(&app, 4_000_000_000_000_000).await;
    let db = app.service().core().db.clone();
    db.write(|tx| spine::lease::free(tx, signals::CLAIMS)).await.expect("freed");
    app.advance(Duration::from_secs(61)).await;
    assert_eq!(deliveries(&app).await[0]["status"], "delivered");
}

async fn who_lost_a_claim_writes_no_outcome(app: TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply_next([Reply::Hang]);
    hook(&app, &receiver, &["tenant.created"]).await;
    app.workspace("acme").await;
    let draining = app.clone();
    let sending = tokio::spawn(async move { draining.drain().await });
    receiver.wait_for(1).await;
    // Somebody else takes the claim over while this one waits for an answer.
    let db = app.service().core().db.clone();
    let taken = "UPDATE webhook_deliveries SET lease_owner = 'node_other', lease_until = 4000000000000000";
    db.exec_one(taken, &[]).await.expect("taken");
    drop(receiver);
    sending.await.expect("drained");
    let made = delivery(&app, &deliveries(&app).await[0]["id"]).await;
    assert_eq!((&made["status"], &made["attempt"]), (&json!("pending"), &json!(1)));
    assert_eq!(made["attempts"], json!([]));
    db.exec_one("DELETE FROM webhook_deliveries", &[]).await.expect("deleted");
}
