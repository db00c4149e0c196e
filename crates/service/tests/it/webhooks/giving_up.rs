//! A receiver that fails for good: its webhook is disabled, and those who run the app hear of it.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{
    Receiver, Reply, TestApp, on_both_engines,
    webhooks::{deliveries, hook, path},
};

on_both_engines!(
    fifty_exhausted_in_a_row_disable_the_webhook,
    one_delivered_in_between_starts_the_count_again,
    a_further_endpoint_is_disabled_alone,
);

const LADDER: Duration = Duration::from_secs(40 * 3_600);

/// So many events of one type, in one workspace that is there.
async fn events(app: &TestApp, workspace: &testkit::Workspace, count: usize) {
    let path = format!("/account/tenant/{}", workspace.id);
    for number in 0..count {
        let name = format!("{} {number}", app.service().core().db.entropy().base62(8));
        app.key().put(&path, json!({ "name": name })).await.expect(200);
    }
}

async fn webhook_finding(app: &TestApp) -> Value {
    let report = app.operator().get("/admin/doctor").await.expect(200).json();
    let findings = report["findings"].as_array().expect("a list");
    findings.iter().find(|finding| finding["check"] == "webhooks").expect("a finding").clone()
}

async fn fifty_exhausted_in_a_row_disable_the_webhook(app: TestApp) {
    let receiver = Receiver::start().await;
    receiver.reply_always(Reply::Status(500));
    let acme = app.workspace("acme").await;
    app.key().put("/account/app", json!({ "operatorTenantId": acme.id })).await.expect(200);
    hook(&app, &receiver, &["tenant.updated"]).await;
    events(&app, &acme, 49).await;
    app.advance(LADDER).await;
    assert_eq!(app.operator().get(&path(&app, "")).await.expect(200).at("/enabled"), json!(true));
    assert_eq!(webhook_finding(&app).await["level"], "ok");
    events(&app, &acme, 1).await;
    app.advance(LADDER).await;
    assert_eq!(app.operator().get(&path(&app, "")).await.expect(200).at("/enabled"), json!(false));
    assert_eq!(app.key().get("/account/app").await.expect(200).at("/webhookEnabled"), json!(false));
    let mails: Vec<String> = app.mails().iter().map(|mail| mail.subject.clone()).collect();
    assert_eq!(mails.iter().filter(|subject| subject.contains("webhook was disabled")).count(), 1, "{mails:?}");
    let finding = webhook_finding(&app).await;
    assert_eq!(finding["level"], "problem");
    assert!(finding["message"].as_str().is_some_and(|text| text.contains(&app.app_id().to_string())));

    // What happens meanwhile is kept, and does not count.
    let sent = receiver.received().len();
    events(&app, &acme, 2).await;
    app.advance(LADDER).await;
    assert_eq!(receiver.received().len(), sent);
    let kept = deliveries(&app).await;
    assert!(kept[..2].iter().all(|one| one["status"] == "dlq" && one["lastError"] == "webhook_disabled"));

    // Enabling starts over.
    app.operator().put(&path(&app, ""), json!({ "enabled": true })).await.expect(200);
    app.drain().await;
    assert_eq!(webhook_finding(&app).await["level"], "ok");
    events(&app, &acme, 1).await;
    app.advance(LADDER).await;
    assert_eq!(app.operator().get(&path(&app, "")).await.expect(200).at("/enabled"), json!(true));
}

async fn one_delivered_in_between_starts_the_count_again(app: TestApp) {
    let receiver = Receiver::start().await;
    let acme = app.workspace("acme").await;
    hook(&app, &receiver, &["tenant.updated"]).await;
    receiver.reply_always(Reply::Status(500));
    events(&app, &acme, 30).await;
    app.advance(LADDER).await;
    receiver.answer_next(&[200]);
    events(&app, &acme, 1).await;
    app.drain().await;
    events(&app, &acme, 49).await;
    app.advance(LADDER).await;
    assert_eq!(app.operator().get(&path(&app, "")).await.expect(200).at("/enabled"), json!(true));
    // So does a new URL.
    app.operator().put(&path(&app, ""), json!({ "url": receiver.url("/other") })).await.expect(200);
    events(&app, &acme, 1).await;
    app.advance(LADDER).await;
    assert_eq!(app.operator().get(&path(&app, "")).await.expect(200).at("/enabled"), json!(true));
}

async fn a_further_endpoint_is_disabled_alone(app: TestApp) {
    let (good, bad) = (Receiver::start().await, Receiver::start().await);
    bad.reply_always(Reply::Status(500));
    let acme = app.workspace("acme").await;
    hook(&app, &good, &["tenant.updated"]).await;
    let new = json!({ "url": bad.url("/"), "events": ["tenant.updated"] });
    let made = app.operator().post(&path(&app, "/endpoints"), new).await.expect(201).text("/id");
    events(&app, &acme, 50).await;
    app.advance(LADDER).await;
    let seen = app.operator().get(&path(&app, &format!("/endpoints/{made}"))).await.expect(200);
    assert_eq!(seen.at("/enabled"), json!(false));
    assert_eq!(app.operator().get(&path(&app, "")).await.expect(200).at("/enabled"), json!(true));
    assert_eq!(good.received().len(), 50);
    assert!(webhook_finding(&app).await["message"].as_str().is_some_and(|text| text.contains(&made)));
}
