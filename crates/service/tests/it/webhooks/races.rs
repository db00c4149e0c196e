//! Rotations, replays and changes of settings at once, while the sender is at work.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{
    Receiver, TestApp, on_both_engines,
    webhooks::{deliveries, delivery, hook, path, secret, signatures_of},
};

on_both_engines!(everything_at_once_stays_signed_and_goes_where_it_should);

/// Kind, position and data of the facts about the webhook and about workspaces, in their order.
async fn facts(app: &TestApp) -> Vec<(String, i64, Value)> {
    let query = "SELECT kind, position, payload FROM outbox WHERE position IS NOT NULL ORDER BY position";
    let read = app.service().core().db.read(move |tx| tx.all::<(String, i64, String)>(query, &[]));
    let rows = read.await.expect("the outbox can be read").into_iter();
    rows.map(|(kind, position, payload)| (kind, position, payload.parse().expect("JSON"))).collect()
}

async fn everything_at_once_stays_signed_and_goes_where_it_should(app: TestApp) {
    let receivers = [Receiver::start().await, Receiver::start().await];
    hook(&app, &receivers[0], &["tenant.created", "tenant.updated"]).await;
    let acme = app.workspace("acme").await;
    app.drain().await;
    let first = deliveries(&app).await[0]["id"].as_str().expect("an id").to_owned();
    let known = secret(&app).await;
    app.service().start();
    let node = app.another_node().await;
    node.service().start();
    let work = |number: usize| {
        let caller = if number.is_multiple_of(2) { app.operator() } else { node.operator() };
        let (app, receivers, acme, first) = (&app, &receivers, &acme, &first);
        async move {
            let mut rotated = Vec::new();
            for turn in 0..4 {
                let change = json!({ "name": format!("name {number} {turn}") });
                app.key().put(&format!("/account/tenant/{}", acme.id), change).await.expect(200);
                match (number + turn) % 3 {
                    0 => {
                        let made = caller.post(&path(app, "/secret/rotate"), json!({})).await.expect(200);
                        rotated.push(made.text("/secret"));
                    }
                    1 => {
                        let url = receivers[number / 2 % 2].url(&format!("/{number}/{turn}"));
                        caller.put(&path(app, ""), json!({ "url": url })).await.expect(200);
                    }
                    _ => {
                        let replay = path(app, &format!("/deliveries/{first}/replay"));
                        caller.post(&replay, json!({})).await.expect(200);
                    }
                }
            }
            rotated
        }
    };
    let mut secrets: BTreeSet<String> = join_all((0..16).map(work)).await.into_iter().flatten().collect();
    secrets.insert(known);
    app.drain().await;
    node.drain().await;
    app.drain().await;

    let received: Vec<_> = receivers.iter().flat_map(Receiver::received).collect();
    for one in &received {
        let signatures: usize = secrets.iter().map(|secret| signatures_of(one, secret)).sum();
        let sent = one.header("service-signature").expect("a signature").matches("v1=").count();
        assert!(signatures == sent && sent > 0, "each signature is that of a secret that was valid");
    }
    let ids: BTreeSet<String> = received.iter().map(|one| one.json()["id"].to_string()).collect();
    assert_eq!(ids.len(), received.len(), "each was sent once");
    let made = deliveries(&app).await;
    assert_eq!(made.len(), received.len());
    let facts = facts(&app).await;
    for one in &made {
        assert_eq!(one["status"], "delivered");
        if one["eventId"].as_str().is_some_and(|id| id.starts_with("evt_replay_")) {
            continue;
        }
        let position = delivery(&app, &one["id"]).await["position"].as_i64().expect("a position");
        let mut before = facts.iter().filter(|(kind, at, _)| kind == "app.webhook_changed" && *at < position);
        let (_, _, settings) = before.next_back().expect("the webhook was set");
        assert_eq!(one["targetUrl"], settings["url"], "where the webhook pointed at {position}");
    }
}
