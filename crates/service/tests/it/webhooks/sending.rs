//! From an event to its receiver: the request, what acknowledges it, and how it is retried.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use testkit::{
    Receiver, Reply, TestApp, on_both_engines,
    webhooks::{deliveries, delivery, hook, path, path_of, secret, signatures_of, signed_at},
};

on_both_engines!(
    an_event_arrives_signed_in_both_forms,
    without_a_url_there_is_no_delivery,
    forty_hours_make_seven_attempts_at_seven_moments,
    a_retry_that_is_acknowledged_ends_the_delivery,
    only_a_2xx_acknowledges,
    a_private_target_is_refused_at_each_attempt,
    a_receiver_that_hangs_delays_nobody_else,
    an_app_with_many_endpoints_that_hang_delays_nobody_else,
    what_waits_behind_a_failure_arrives_once,
    a_deleted_workspace_is_told_and_a_deleted_app_is_silent,
    an_idle_year_costs_no_steps,
    what_ended_long_ago_is_forgotten,
);

const HOUR: Duration = Duration::from_secs(3_600);

async fn an_event_arrives_signed_in_both_forms(app: TestApp) {
    let receiver = Receiver::start().await;
    hook(&app, &receiver, &["tenant.created"]).await;
    let before = app.now().as_seconds();
    let acme = app.workspace("acme").await;
    app.drain().await;
    let received = receiver.wait_for(1).await.remove(0);
    assert_eq!((received.method.as_str(), received.path.as_str()), ("POST", "/hooks"));
    assert_eq!(received.header("content-type"), Some("application/json"));
    assert_eq!(received.header("service-event-type"), Some("tenant.created"));
    let event = received.json();
    let id = event["id"].as_str().expect("an id").to_owned();
    assert!(id.starts_with("evt_") && !id.starts_with("evt_replay_"), "{id}");
    assert_eq!(received.header("service-event-id"), Some(id.as_str()));
    assert_eq!(received.header("webhook-id"), Some(id.as_str()));
    let created = event["created"].as_i64().expect("Unix seconds");
    assert!((before..=before + 60).contains(&created));
    let data = json!({ "id": acme.id, "name": "acme", "plan": null });
    assert_eq!(
        event,
        json!({ "id": id, "type": "tenant.created", "created": created, "app_id": app.app_id(), "workspace_id": acme.id, "data": data })
    );
    let secret = secret(&app).await;
    assert!(secret.starts_with("whsec_"));
    assert_eq!(signatures_of(&received, &secret), 1);
    assert!((signed_at(&received) - created).abs() < 60);

    let listed = deliveries(&app).await;
    let [made] = listed.as_slice() else { panic!("one delivery: {listed:?}") };
    assert!(made["id"].as_str().is_some_and(|id| id.starts_with("delivery_")));
    assert_eq!((&made["eventId"], &made["eventType"]), (&json!(id), &json!("tenant.created")));
    assert_eq!(
        (&made["status"], &made["attempt"], &made["responseCode"]),
        (&json!("delivered"), &json!(1), &json!(200))
    );
    assert_eq!((&made["lastError"], &made["nextRetryAt"]), (&Value::Null, &Value::Null));
    assert!(made["deliveredAt"].is_string() && made["createdAt"].is_string());
    assert_eq!((&made["targetUrl"], &made["payload"]), (&json!(receiver.url("/hooks")), &event));
    assert_eq!(made.get("endpointId"), None);
}

async fn without_a_url_there_is_no_delivery(app: TestApp) {
    app.workspace("acme").await;
    app.drain().await;
    assert!(deliveries(&app).await.is_empty());
}

async fn forty_hours_make_seven_attempts_at_seven_moments(app: TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply_always(Reply::Status(500));
    hook(&app, &receiver, &["tenant.created"]).await;
    app.workspace("acme").await;
    app.drain().await;
    let first = &deliveries(&app).await[0];
    assert_eq!(
        (&first["status"], &first["attempt"], &first["responseCode"]),
        (&json!("failed"), &json!(1), &json!(500))
    );
    assert!(first["nextRetryAt"].is_string() && first["lastError"].is_string() && first["deliveredAt"].is_null());
    app.advance(40 * HOUR).await;
    let received = receiver.received();
    let moments: Vec<i64> = received.iter().map(signed_at).collect();
    let pauses: Vec<i64> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let minutes = [1, 5, 30, 120, 720, 1_440];
    assert_eq!(pauses.len(), 6, "{pauses:?}");
    for (pause, minutes) in pauses.iter().zip(minutes) {
        assert!((0..=2).contains(&(pause - minutes * 60)), "{pauses:?}");
    }
    let bodies: std::collections::BTreeSet<Vec<u8>> = received.iter().map(|one| one.body.clone()).collect();
    assert_eq!(bodies.len(), 1, "the same bytes each time");
    let secret = secret(&app).await;
    assert!(received.iter().all(|one| signatures_of(one, &secret) == 1), "signed again at each attempt");
    let dead = delivery(&app, &first["id"]).await;
    assert_eq!((&dead["status"], &dead["attempt"], &dead["nextRetryAt"]), (&json!("dlq"), &json!(7), &Value::Null));
    let attempts = dead["attempts"].as_array().expect("a list").clone();
    let numbers: Vec<i64> = attempts.iter().filter_map(|one| one["attempt"].as_i64()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    for one in &attempts {
        assert!(one["at"].is_string() && one["error"].is_string() && one["latencyMs"].is_i64(), "{one}");
        assert_eq!(one["responseCode"], 500);
    }
    app.advance(100 * HOUR).await;
    assert_eq!(receiver.received().len(), 7, "no further retry");
}

async fn a_retry_that_is_acknowledged_ends_the_delivery(app: TestApp) {
    let receiver = Receiver::start().await;
    receiver.answer_next(&[503, 404, 204]);
    hook(&app, &receiver, &["tenant.created"]).await;
    app.workspace("acme").await;
    app.advance(HOUR).await;
    let made = &deliveries(&app).await[0];
    assert_eq!(
        (&made["status"], &made["attempt"], &made["responseCode"]),
        (&json!("delivered"), &json!(3), &json!(204))
    );
    assert!(made["deliveredAt"].is_string() && made["lastError"].is_null());
    assert_eq!(receiver.received().len(), 3);
}

async fn only_a_2xx_acknowledges(app: TestApp) {
    let (receiver, elsewhere) = (Receiver::start().await, Receiver::start().await);
    let replies = [
        Reply::Redirect(elsewhere.url("/")),
        Reply::Reset,
        Reply::Half,
        Reply::Status(304),
        Reply::Status(410),
        Reply::Status(299),
    ];
    receiver.reply_next(replies);
    hook(&app, &receiver, &["tenant.created"]).await;
    app.workspace("acme").await;
    app.advance(20 * HOUR).await;
    let made = delivery(&app, &deliveries(&app).await[0]["id"]).await;
    let codes: Vec<Value> =
        made["attempts"].as_array().expect("a list").iter().map(|one| one["responseCode"].clone()).collect();
    assert_eq!(codes, [json!(302), json!(null), json!(null), json!(304), json!(410), json!(299)]);
    assert_eq!((&made["status"], &made["attempt"]), (&json!("delivered"), &json!(6)));
    assert!(elsewhere.received().is_empty(), "redirects are not followed");
}

async fn a_private_target_is_refused_at_each_attempt(app: TestApp) {
    for (name, url) in [("one", "http://10.0.0.1/"), ("two", "http://[fd00::1]/"), ("three", "http://169.254.169.254/")]
    {
        let body = json!({ "url": url, "events": ["tenant.created"] });
        app.operator().put(&path(&app, ""), body).await.expect(200);
        app.workspace(name).await;
        app.advance(Duration::from_secs(62)).await;
        let made = &deliveries(&app).await[0];
        assert_eq!((&made["status"], &made["attempt"]), (&json!("failed"), &json!(2)), "{url}");
        assert_eq!(made["responseCode"], Value::Null);
        assert_eq!(made["lastError"], "The target is not a public HTTP address.");
    }
}

async fn a_receiver_that_hangs_delays_nobody_else(app: TestApp) {
    let (hanging, quick) = (Receiver::start().await, Receiver::start().await);
    hanging.reply_always(Reply::Hang);
    hook(&app, &hanging, &[]).await;
    let other = app.other_app().await;
    let body = json!({ "url": quick.url("/"), "events": ["tenant.created"] });
    app.operator().put(&path_of(other.app_id(), ""), body).await.expect(200);
    for number in 0..20 {
        app.workspace(&format!("w{number}")).await;
    }
    let owner = json!({ "email": "o@other.example", "firstName": "O", "lastName": "O" });
    other.post("/account/tenant", json!({ "owner": owner, "muteNotifications": true })).await.expect(200);
    let draining = app.clone();
    let sending = tokio::spawn(async move { draining.drain().await });
    quick.wait_for(1).await;
    assert!(hanging.wait_for(16).await.len() == 16, "no more than sixteen to one endpoint");
    // Their connections end with it.
    drop(hanging);
    sending.await.expect("drained");
}

/// Twenty endpoints of one app could take every place on the wire.
async fn an_app_with_many_endpoints_that_hang_delays_nobody_else(app: TestApp) {
    let (hanging, quick) = (Receiver::start().await, Receiver::start().await);
    hanging.reply_always(Reply::Hang);
    for number in 1..20 {
        let endpoint = json!({ "url": hanging.url(&format!("/{number}")), "events": ["tenant.created"] });
        app.operator().post(&path(&app, "/endpoints"), endpoint).await.expect(201);
    }
    let other = app.other_app().await;
    let body = json!({ "url": quick.url("/"), "events": ["tenant.created"] });
    app.operator().put(&path_of(other.app_id(), ""), body).await.expect(200);
    for number in 0..20 {
        app.workspace(&format!("w{number}")).await;
    }
    app.service().start();
    let taken = hanging.wait_for(192).await.len();
    let owner = json!({ "email": "o@other.example", "firstName": "O", "lastName": "O" });
    other.post("/account/tenant", json!({ "owner": owner, "muteNotifications": true })).await.expect(200);
    quick.wait_for(1).await;
    assert_eq!((taken, hanging.received().len()), (192, 192), "what is kept is not taken, and nobody has given up yet");
    drop(hanging);
}

/// A quick receiver has many claimed ahead; those are neither lost nor sent twice when it fails in between.
async fn what_waits_behind_a_failure_arrives_once(app: TestApp) {
    let receiver = Receiver::start().await;
    let acme = app.workspace("acme").await;
    hook(&app, &receiver, &["tenant.updated"]).await;
    for number in 0..200 {
        let change = json!({ "name": format!("name {number}") });
        app.key().put(&format!("/account/tenant/{}", acme.id), change).await.expect(200);
    }
    let mut answers = [200; 151];
    (answers[60], answers[61], answers[150]) = (500, 500, 503);
    receiver.answer_next(&answers);
    let sending = app.clone();
    let sending = tokio::spawn(async move { sending.advance(Duration::from_secs(90)).await });
    // Sooner than claims would run out that nobody gives back.
    receiver.wait_for(203).await;
    sending.await.expect("advanced");
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for received in receiver.received() {
        *times.entry(received.json()["id"].to_string()).or_default() += 1;
    }
    assert_eq!((times.len(), times.values().sum::<usize>()), (200, 203), "{times:?}");
    assert!(deliveries(&app).await.iter().all(|one| one["status"] == "delivered"));
}

async fn a_deleted_workspace_is_told_and_a_deleted_app_is_silent(app: TestApp) {
    let receiver = Receiver::start().await;
    let acme = app.workspace("acme").await;
    hook(&app, &receiver, &[]).await;
    app.key_with(&["TENANT_DELETE"]).await.delete(&format!("/account/tenant/{}", acme.id)).await.expect(200);
    app.advance(2 * HOUR).await;
    let told: Vec<Value> = receiver.received().iter().map(|one| one.json()["type"].clone()).collect();
    assert_eq!(told, ["tenant.deleted"]);
    assert_eq!(deliveries(&app).await.len(), 1, "kept after the workspace is gone");

    receiver.reply_always(Reply::Status(500));
    app.workspace("other").await;
    app.drain().await;
    let sent = receiver.received().len();
    app.operator().delete(&format!("/admin/apps/{}", app.app_id())).await.expect(200);
    app.advance(2 * HOUR).await;
    assert_eq!(receiver.received().len(), sent);
    let count = "SELECT (SELECT count(*) FROM webhook_deliveries) + (SELECT count(*) FROM webhook_targets) \
                 + (SELECT count(*) FROM webhook_secrets)";
    let left: Option<(i64,)> = app.service().core().db.get_one(count, &[]).await.expect("counted");
    assert_eq!(left, Some((0,)));
}

async fn an_idle_year_costs_no_steps(app: TestApp) {
    let receiver = Receiver::start().await;
    hook(&app, &receiver, &[]).await;
    app.workspace("acme").await;
    app.drain().await;
    assert_eq!(app.service().next_due().await.expect("known"), None);
    app.advance(365 * 24 * HOUR).await;
}

async fn what_ended_long_ago_is_forgotten(app: TestApp) {
    let receiver = Receiver::start().await;
    hook(&app, &receiver, &["tenant.created"]).await;
    app.workspace("arrives").await;
    app.drain().await;
    receiver.reply_always(Reply::Status(500));
    app.workspace("dies").await;
    app.advance(29 * 24 * HOUR).await;
    assert_eq!(deliveries(&app).await.len(), 2);
    app.advance(2 * 24 * HOUR).await;
    let left = deliveries(&app).await;
    assert_eq!((left.len(), &left[0]["status"]), (1, &json!("dlq")));
    app.advance(62 * 24 * HOUR).await;
    assert!(deliveries(&app).await.is_empty());
}
