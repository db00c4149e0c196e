//! URL, switch and filter count as they were when something happened.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{
    Receiver, Reply, TestApp, on_both_engines,
    webhooks::{deliveries, hook, path},
};

on_both_engines!(
    an_event_goes_where_the_webhook_pointed_when_it_happened,
    events_are_kept_while_the_webhook_is_disabled,
    a_retry_that_falls_due_while_disabled_is_given_up,
    further_endpoints_have_settings_of_their_own,
    an_app_has_at_most_twenty_further_endpoints,
    wrong_endpoints_are_named,
    a_deleted_endpoint_gets_nothing_more,
    an_app_from_before_there_were_webhooks_gets_them_at_the_next_start,
);

fn names(receiver: &Receiver) -> Vec<String> {
    let name = |one: &testkit::Received| one.json()["data"]["name"].as_str().expect("a name").to_owned();
    let mut names: Vec<String> = receiver.received().iter().map(name).collect();
    names.sort_unstable();
    names
}

async fn an_event_goes_where_the_webhook_pointed_when_it_happened(app: TestApp) {
    let (first, second) = (Receiver::start().await, Receiver::start().await);
    // Nothing is drained in between: reading the present profile would send everything to the last URL.
    app.workspace("before").await;
    hook(&app, &first, &["tenant.created"]).await;
    app.workspace("first").await;
    hook(&app, &first, &["tenant.updated"]).await;
    app.workspace("filtered").await;
    hook(&app, &second, &["tenant.created"]).await;
    app.workspace("second").await;
    app.operator().put(&path(&app, ""), json!({ "url": null })).await.expect(200);
    app.workspace("nowhere").await;
    app.drain().await;
    assert_eq!(names(&first), ["first"]);
    assert_eq!(names(&second), ["second"]);
    assert_eq!(deliveries(&app).await.len(), 2);
}

async fn events_are_kept_while_the_webhook_is_disabled(app: TestApp) {
    let receiver = Receiver::start().await;
    hook(&app, &receiver, &["tenant.created"]).await;
    app.operator().put(&path(&app, ""), json!({ "enabled": false })).await.expect(200);
    app.workspace("kept").await;
    app.advance(Duration::from_secs(3_600)).await;
    let kept = &deliveries(&app).await[0];
    assert_eq!((&kept["status"], &kept["lastError"]), (&json!("dlq"), &json!("webhook_disabled")));
    assert_eq!((&kept["attempt"], &kept["responseCode"]), (&json!(1), &Value::Null));
    assert!(receiver.received().is_empty());
    let replay = path(&app, &format!("/deliveries/{}/replay", kept["id"].as_str().expect("an id")));
    app.operator().post(&replay, json!({})).await.error(409, "WEBHOOK_DISABLED");
    app.operator().put(&path(&app, ""), json!({ "enabled": true })).await.expect(200);
    app.operator().post(&replay, json!({})).await.expect(200);
    app.drain().await;
    assert_eq!(names(&receiver), ["kept"]);
}

async fn a_retry_that_falls_due_while_disabled_is_given_up(app: TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply_always(Reply::Status(500));
    hook(&app, &receiver, &["tenant.created"]).await;
    app.workspace("acme").await;
    app.drain().await;
    app.operator().put(&path(&app, ""), json!({ "enabled": false })).await.expect(200);
    app.advance(Duration::from_secs(61)).await;
    let dead = &deliveries(&app).await[0];
    assert_eq!((&dead["status"], &dead["lastError"]), (&json!("dlq"), &json!("webhook_disabled")));
    assert_eq!((&dead["attempt"], &dead["nextRetryAt"]), (&json!(1), &Value::Null));
    assert_eq!(receiver.received().len(), 1);
}

async fn further_endpoints_have_settings_of_their_own(app: TestApp) {
    let (first, second) = (Receiver::start().await, Receiver::start().await);
    hook(&app, &first, &["tenant.created"]).await;
    let new = json!({ "url": second.url("/more"), "events": ["tenant.updated"], "description": "Audit" });
    let made = app.operator().post(&path(&app, "/endpoints"), new).await.expect(201);
    let (id, secret) = (made.text("/id"), made.text("/secret"));
    assert!(id.starts_with("endpoint_") && secret.starts_with("whsec_"));
    let one = path(&app, &format!("/endpoints/{id}"));
    let seen = app.operator().get(&one).await.expect(200);
    assert_eq!((seen.at("/secret"), seen.text("/description")), (Value::Null, "Audit".to_owned()));
    let acme = app.workspace("acme").await;
    app.key().put(&format!("/account/tenant/{}", acme.id), json!({ "name": "renamed" })).await.expect(200);
    app.drain().await;
    assert_eq!((names(&first), names(&second)), (vec!["acme".into()], vec!["renamed".into()]));
    let received = second.received().remove(0);
    assert_eq!(testkit::webhooks::signatures_of(&received, &secret), 1);
    let listed = app.operator().get(&path(&app, &format!("/deliveries?endpointId={id}"))).await.expect(200).json();
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["endpointId"]), (Some(1), &json!(id)));

    let rotated = app.operator().post(&format!("{one}/secret/rotate"), json!({})).await.expect(200).text("/secret");
    let changed = json!({ "events": null, "enabled": false, "description": null });
    assert_eq!(app.operator().put(&one, changed).await.expect(200).at("/events"), json!([]));
    app.operator().put(&one, json!({ "enabled": true })).await.expect(200);
    app.key().put(&format!("/account/tenant/{}", acme.id), json!({ "name": "again" })).await.expect(200);
    app.drain().await;
    let received = second.received().remove(1);
    assert_eq!(testkit::webhooks::signatures_of(&received, &rotated), 1);
    assert_eq!(testkit::webhooks::signatures_of(&received, &secret), 1, "the one before signs for five minutes");
}

async fn an_app_has_at_most_twenty_further_endpoints(app: TestApp) {
    for number in 0..20 {
        let new = json!({ "url": format!("https://hooks.example/{number}") });
        app.operator().post(&path(&app, "/endpoints"), new).await.expect(201);
    }
    let one_more = app.operator().post(&path(&app, "/endpoints"), json!({ "url": "https://hooks.example/" })).await;
    one_more.refuses(&["endpoints"]);
    let listed = app.operator().get(&path(&app, "/endpoints")).await.expect(200).json();
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["url"]), (Some(20), &json!("https://hooks.example/19")));
}

async fn wrong_endpoints_are_named(app: TestApp) {
    let new = json!({ "url": "ftp://hooks.example", "events": ["tenant.created", "nothing.happened"], "enabled": 1 });
    app.operator().post(&path(&app, "/endpoints"), new).await.refuses(&["url", "enabled", "events[1]"]);
    app.operator().post(&path(&app, "/endpoints"), json!({})).await.refuses(&["url"]);
    assert_eq!(app.operator().get(&path(&app, "/endpoints")).await.expect(200).json(), json!([]));
    let elsewhere = app.other_app().await.app_id();
    let made = app.operator().post(&path(&app, "/endpoints"), json!({ "url": "https://a.example" })).await.expect(201);
    let foreign = testkit::webhooks::path_of(elsewhere, &format!("/endpoints/{}", made.text("/id")));
    app.operator().get(&foreign).await.error(404, "NOT_FOUND");
    app.operator().put(&foreign, json!({ "enabled": false })).await.error(404, "NOT_FOUND");
    app.operator().post(&format!("{foreign}/secret/rotate"), json!({})).await.error(404, "NOT_FOUND");
    app.operator().delete(&foreign).await.error(404, "NOT_FOUND");
}

async fn a_deleted_endpoint_gets_nothing_more(app: TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply_always(Reply::Status(500));
    let new = json!({ "url": receiver.url("/"), "events": ["tenant.created"] });
    let made = app.operator().post(&path(&app, "/endpoints"), new).await.expect(201).text("/id");
    app.workspace("acme").await;
    app.drain().await;
    app.operator().delete(&path(&app, &format!("/endpoints/{made}"))).await.expect(200);
    app.workspace("other").await;
    app.advance(Duration::from_secs(3_600)).await;
    assert_eq!(receiver.received().len(), 1);
    let dead = &deliveries(&app).await[0];
    assert_eq!((&dead["status"], &dead["lastError"]), (&json!("dlq"), &json!("The endpoint was deleted.")));
    let replay = path(&app, &format!("/deliveries/{}/replay", dead["id"].as_str().expect("an id")));
    app.operator().post(&replay, json!({})).await.error(409, "NO_WEBHOOK_URL");
}

async fn an_app_from_before_there_were_webhooks_gets_them_at_the_next_start(app: TestApp) {
    let receiver = Receiver::start().await;
    hook(&app, &receiver, &["tenant.created"]).await;
    app.drain().await;
    let db = app.service().core().db.clone();
    for forget in ["DELETE FROM webhook_targets", "DELETE FROM webhook_secrets"] {
        db.exec_one(forget, &[]).await.expect("deleted");
    }
    app.restart().await;
    app.workspace("acme").await;
    app.drain().await;
    assert_eq!(names(&receiver), ["acme"]);
    let secret = testkit::webhooks::secret(&app).await;
    assert_eq!(testkit::webhooks::signatures_of(&receiver.received()[0], &secret), 1);
}
