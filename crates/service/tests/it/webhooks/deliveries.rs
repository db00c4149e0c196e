//! `/webhooks/deliveries/…` for people, and what the operator does with deliveries.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{
    Receiver, Reply, TestApp, on_both_engines,
    webhooks::{deliveries, hook, path, path_of},
};

on_both_engines!(
    a_workspace_sees_its_own_twenty_newest_first,
    a_workspace_does_not_see_the_receivers_password,
    another_app_in_the_path_is_refused,
    a_replay_is_a_new_delivery_of_the_same_event,
    a_replay_goes_to_the_current_url,
    nobody_replays_what_they_do_not_see,
    the_operator_finds_deliveries_by_what_they_are,
    a_sample_is_sent_and_kept_nowhere,
    what_was_missed_is_sent_again_once,
);

async fn a_workspace_sees_its_own_twenty_newest_first(app: TestApp) {
    let receiver = Receiver::start().await;
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    hook(&app, &receiver, &[]).await;
    for number in 0..25 {
        let change = json!({ "name": format!("name {number}") });
        app.key().put(&format!("/account/tenant/{}", acme.id), change).await.expect(200);
    }
    app.key().put(&format!("/account/tenant/{}", other.id), json!({ "name": "elsewhere" })).await.expect(200);
    app.drain().await;
    let own = format!("/webhooks/deliveries/{}", app.app_id());
    let listed = acme.owner().get(&own).await.expect(200).json();
    let names: Vec<&str> =
        listed.as_array().expect("a list").iter().filter_map(|one| one["payload"]["data"]["name"].as_str()).collect();
    assert_eq!((names.len(), names[0], names[19]), (20, "name 24", "name 5"));
    let next = acme.owner().get(&format!("{own}?limit=3&offset=20")).await.expect(200).json();
    assert_eq!((next.as_array().map(Vec::len), &next[0]["payload"]["data"]["name"]), (Some(3), &json!("name 4")));
    assert_eq!(other.owner().get(&own).await.expect(200).json().as_array().map(Vec::len), Some(1));
    let bob = acme.add("bob@example.com", "MEMBER").await;
    app.user(&bob).get(&own).await.error(403, "FORBIDDEN");
    // Members of the operator workspace act for the whole app.
    app.key().put("/account/app", json!({ "operatorTenantId": other.id })).await.expect(200);
    let all = other.owner().get(&format!("{own}?limit=1000")).await.expect(200).json();
    assert!(all.as_array().is_some_and(|all| all.len() >= 26));
}

async fn a_workspace_does_not_see_the_receivers_password(app: TestApp) {
    let acme = app.workspace("acme").await;
    let body = json!({ "url": "http://me:s3cret@10.0.0.1/in?a=1", "enabled": true, "events": ["tenant.updated"] });
    app.operator().put(&path(&app, ""), body).await.expect(200);
    app.key().put(&format!("/account/tenant/{}", acme.id), json!({ "name": "Changed" })).await.expect(200);
    app.drain().await;
    let listed = format!("/webhooks/deliveries/{}", app.app_id());
    assert_eq!(acme.owner().get(&listed).await.expect(200).text("/0/targetUrl"), "http://10.0.0.1/in?a=1");
    assert_eq!(deliveries(&app).await[0]["targetUrl"], "http://me:s3cret@10.0.0.1/in?a=1");
}

async fn another_app_in_the_path_is_refused(app: TestApp) {
    let acme = app.workspace("acme").await;
    for wrong in [app.other_app().await.app_id().to_string(), "app_nothing".into(), "%20".into()] {
        acme.owner().get(&format!("/webhooks/deliveries/{wrong}")).await.error(400, "VALIDATION_FAILED");
    }
}

/// A delivery of a workspace's creation.
async fn delivered(app: &TestApp, receiver: &Receiver) -> (testkit::Workspace, Value) {
    hook(app, receiver, &["tenant.created"]).await;
    let acme = app.workspace("acme").await;
    app.drain().await;
    (acme, deliveries(app).await[0].clone())
}

fn replay_of(delivery: &Value) -> String {
    format!("/webhooks/deliveries/{}/replay", delivery["id"].as_str().expect("an id"))
}

async fn a_replay_is_a_new_delivery_of_the_same_event(app: TestApp) {
    let receiver = Receiver::start().await;
    let (acme, first) = delivered(&app, &receiver).await;
    app.advance(Duration::from_secs(100)).await;
    let replayed = acme.owner().post(&replay_of(&first), json!({})).await.expect(200);
    assert_eq!(replayed.at("/ok"), json!(true));
    app.drain().await;
    let received = receiver.received();
    let (before, after) = (received[0].json(), received[1].json());
    let id = after["id"].as_str().expect("an id");
    assert!(id.starts_with("evt_replay_"));
    assert_eq!(received[1].header("service-event-id"), Some(id));
    let mut same = after.clone();
    same["id"] = before["id"].clone();
    assert_eq!(same, before, "created and data stay");
    let listed = deliveries(&app).await;
    assert_eq!((listed.len(), &listed[0]["id"], &listed[1]["id"]), (2, &replayed.at("/deliveryId"), &first["id"]));
    assert_eq!((&listed[0]["attempt"], &listed[0]["status"]), (&json!(1), &json!("delivered")));
    assert_eq!(listed[1], first, "the original is kept");
    // A replay is a delivery like any other.
    acme.owner().post(&replay_of(&listed[0]), json!({})).await.expect(200);
    app.drain().await;
    assert_eq!(receiver.received().len(), 3);
}

async fn a_replay_goes_to_the_current_url(app: TestApp) {
    let (first, second) = (Receiver::start().await, Receiver::start().await);
    let (acme, made) = delivered(&app, &first).await;
    hook(&app, &second, &[]).await;
    acme.owner().post(&replay_of(&made), json!({})).await.expect(200);
    app.drain().await;
    assert_eq!((first.received().len(), second.received().len()), (1, 1));
    app.operator().put(&path(&app, ""), json!({ "url": null })).await.expect(200);
    acme.owner().post(&replay_of(&made), json!({})).await.error(409, "NO_WEBHOOK_URL");
}

async fn nobody_replays_what_they_do_not_see(app: TestApp) {
    let receiver = Receiver::start().await;
    let (_, made) = delivered(&app, &receiver).await;
    let other = app.workspace("other").await;
    other.owner().post(&replay_of(&made), json!({})).await.error(404, "NOT_FOUND");
    let unknown = signals::deliveries::DeliveryId::from_u128(7);
    for id in [unknown.to_string(), "nothing".into()] {
        other.owner().post(&format!("/webhooks/deliveries/{id}/replay"), json!({})).await.error(404, "NOT_FOUND");
    }
    let elsewhere = app.other_app().await.app_id();
    let id = made["id"].as_str().expect("an id");
    app.operator().get(&path_of(elsewhere, &format!("/deliveries/{id}"))).await.error(404, "NOT_FOUND");
    let replay = path_of(elsewhere, &format!("/deliveries/{id}/replay"));
    app.operator().post(&replay, json!({})).await.error(404, "NOT_FOUND");
    app.key().put("/account/app", json!({ "operatorTenantId": other.id })).await.expect(200);
    other.owner().post(&replay_of(&made), json!({})).await.expect(200);
}

async fn the_operator_finds_deliveries_by_what_they_are(app: TestApp) {
    let receiver = Receiver::start().await;
    hook(&app, &receiver, &[]).await;
    let acme = app.workspace("acme").await;
    app.drain().await;
    app.advance(Duration::from_secs(10)).await;
    receiver.reply_always(Reply::Status(500));
    app.workspace("other").await;
    app.drain().await;
    let all = deliveries(&app).await;
    // Newest first; the two of one workspace need not be of the same instant.
    let at = |place: usize| all[place]["createdAt"].as_str().expect("a time").to_owned();
    let found = |query: String| {
        let path = path(&app, &format!("/deliveries?{query}"));
        let operator = app.operator();
        async move { operator.get(&path).await.expect(200).json().as_array().map_or(0, Vec::len) }
    };
    assert_eq!(all.len(), 4);
    assert_eq!(found("status=failed".into()).await, 2);
    assert_eq!(found("eventType=tenant.created".into()).await, 2);
    assert_eq!(found(format!("tenantId={}", acme.id)).await, 2);
    assert_eq!(found(format!("tenantId={}&status=failed", acme.id)).await, 0);
    assert_eq!(found(format!("from={}", at(1))).await, 2);
    assert_eq!(found(format!("to={}", at(0))).await, 4);
    assert_eq!(found(format!("to={}&limit=3", at(0))).await, 3);
    assert_eq!(found(format!("to={}", at(2))).await, 2);
    assert_eq!(found("status=dlq".into()).await, 0);
    for wrong in ["status=gone", "eventType=x", "from=yesterday", "limit=0", "tenantId=x"] {
        app.operator().get(&path(&app, &format!("/deliveries?{wrong}"))).await.error(400, "VALIDATION_FAILED");
    }
}

async fn a_sample_is_sent_and_kept_nowhere(app: TestApp) {
    let receiver = Receiver::start().await;
    let test = path(&app, "/test");
    app.operator().post(&test, json!({})).await.error(409, "NO_WEBHOOK_URL");
    let sent = json!({ "type": "payment.failed", "url": receiver.url("/try") });
    let outcome = app.operator().post(&test, sent).await.expect(200).json();
    assert_eq!(
        (&outcome["delivered"], &outcome["responseCode"], &outcome["error"]),
        (&json!(true), &json!(200), &Value::Null)
    );
    assert!(outcome["latencyMs"].is_i64());
    let received = receiver.received().remove(0);
    assert_eq!(received.json()["type"], "payment.failed");
    assert!(received.header("webhook-id").is_some_and(|id| id.starts_with("evt_test_")));
    assert_eq!(testkit::webhooks::signatures_of(&received, &testkit::webhooks::secret(&app).await), 1);
    hook(&app, &receiver, &[]).await;
    receiver.reply_always(Reply::Status(418));
    let outcome = app.operator().post(&test, json!({})).await.expect(200).json();
    assert_eq!((&outcome["delivered"], &outcome["responseCode"]), (&json!(false), &json!(418)));
    let refused = app.operator().post(&test, json!({ "url": "http://192.168.0.1/" })).await.expect(200).json();
    assert_eq!((&refused["delivered"], &refused["responseCode"]), (&json!(false), &Value::Null));
    app.operator().post(&test, json!({ "type": "x", "url": "ftp://a" })).await.refuses(&["type", "url"]);
    app.drain().await;
    assert!(deliveries(&app).await.is_empty());
}

async fn what_was_missed_is_sent_again_once(app: TestApp) {
    let receiver = Receiver::start().await;
    let recover = path(&app, "/recover");
    let since = app.now();
    app.operator().post(&recover, json!({ "since": since })).await.error(409, "NO_WEBHOOK_URL");
    receiver.reply_always(Reply::Status(500));
    hook(&app, &receiver, &["tenant.created", "tenant.updated"]).await;
    for name in ["one", "two", "three"] {
        app.workspace(name).await;
    }
    app.advance(Duration::from_secs(40 * 3_600)).await;
    receiver.reply_always(Reply::Status(200));
    let sent = receiver.received().len();
    let only = json!({ "since": since, "types": ["tenant.updated"] });
    assert_eq!(app.operator().post(&recover, only).await.expect(202).at("/replayed"), json!(0));
    let before = json!({ "since": since, "until": since });
    assert_eq!(app.operator().post(&recover, before).await.expect(202).at("/replayed"), json!(0));
    assert_eq!(app.operator().post(&recover, json!({ "since": since })).await.expect(202).at("/replayed"), json!(3));
    app.drain().await;
    assert_eq!(receiver.received().len(), sent + 3);
    let again = deliveries(&app).await;
    let names: Vec<&Value> = again[..3].iter().rev().map(|one| &one["payload"]["data"]["name"]).collect();
    assert_eq!(names, ["one", "two", "three"], "in order");
    assert_eq!(app.operator().post(&recover, json!({ "since": since })).await.expect(202).at("/replayed"), json!(0));
    let later = app.now().plus(Duration::from_secs(60));
    app.operator().post(&recover, json!({ "since": later })).await.refuses(&["since"]);
    app.operator()
        .post(&recover, json!({ "since": since, "until": "2020-01-01T00:00:00Z", "types": ["x"] }))
        .await
        .refuses(&["types[0]"]);
    app.operator().post(&recover, json!({ "since": since, "until": "2020-01-01T00:00:00Z" })).await.refuses(&["until"]);
    app.operator().put(&path(&app, ""), json!({ "enabled": false })).await.expect(200);
    app.operator().post(&recover, json!({ "since": since })).await.error(409, "WEBHOOK_DISABLED");
}
