//! The proof that every event has its deliveries.

use serde_json::{Value, json};
use testkit::{
    Receiver, TestApp, on_both_engines,
    webhooks::{deliveries, hook, path},
};

on_both_engines!(a_delivery_that_is_missing_is_found, what_nobody_subscribed_to_is_not_missed);

async fn finding(app: &TestApp) -> Value {
    app.drain().await;
    let report = app.operator().get("/admin/doctor").await.expect(200).json();
    let findings = report["findings"].as_array().expect("a list");
    findings.iter().find(|finding| finding["check"] == "deliveries").expect("a finding").clone()
}

async fn a_delivery_that_is_missing_is_found(app: TestApp) {
    let receiver = Receiver::start().await;
    hook(&app, &receiver, &["tenant.created", "tenant.updated"]).await;
    let acme = app.workspace("acme").await;
    app.key().put(&format!("/account/tenant/{}", acme.id), json!({ "name": "Acme Ltd" })).await.expect(200);
    let sound = finding(&app).await;
    assert_eq!(sound["level"], "ok", "{sound}");
    assert_eq!(sound["message"], "each of the 2 events of the last minutes has its delivery");

    let lost = deliveries(&app).await[0]["id"].as_str().expect("an id").to_owned();
    let lost: signals::deliveries::DeliveryId = lost.parse().expect("an id");
    let delete = "DELETE FROM webhook_deliveries WHERE id = $1";
    app.service().core().db.exec_one(delete, &store::args![lost]).await.expect("deleted");
    let found = finding(&app).await;
    assert_eq!(found["level"], "problem");
    let message = found["message"].as_str().expect("a text");
    assert!(message.starts_with("1 of 2 events have no delivery: fact "), "{message}");
    assert!(message.contains(&app.app_id().to_string()), "{message}");
}

/// Before there was an address, for an endpoint that is gone, and of another type.
async fn what_nobody_subscribed_to_is_not_missed(app: TestApp) {
    let receiver = Receiver::start().await;
    app.workspace("early").await;
    let further = json!({ "url": receiver.url("/further"), "events": ["tenant.created"] });
    let endpoint = app.operator().post(&path(&app, "/endpoints"), further).await.expect(201).text("/id");
    app.workspace("further").await;
    app.operator().delete(&path(&app, &format!("/endpoints/{endpoint}"))).await.expect(200);
    hook(&app, &receiver, &["tenant.deleted"]).await;
    app.workspace("other").await;
    let sound = finding(&app).await;
    assert_eq!(
        (&sound["level"], &sound["message"]),
        (&json!("ok"), &json!("each of the 0 events of the last minutes has its delivery"))
    );
    hook(&app, &receiver, &["tenant.created"]).await;
    app.workspace("late").await;
    assert_eq!(finding(&app).await["message"], "each of the 1 events of the last minutes has its delivery");
}
