//! `/webhooks/secrets/rotate/{app_id}` and the operator's view of the signing secret.

use std::time::Duration;

use serde_json::json;
use testkit::{
    Receiver, TestApp, on_both_engines,
    webhooks::{hook, path, path_of, secret, signatures_of},
};

on_both_engines!(
    every_app_has_a_secret_from_the_start,
    replaced_secrets_sign_for_five_minutes,
    who_may_rotate,
    a_change_of_the_master_key_keeps_the_secret,
    rotations_at_once_leave_one_secret,
);

async fn every_app_has_a_secret_from_the_start(app: TestApp) {
    let seen = app.operator().get(&path(&app, "/secret")).await.expect(200);
    assert_eq!(seen.text("/secret").len(), "whsec_".len() + 44);
    assert!(seen.at("/rotatedAt").is_string());
    assert_eq!(secret(&app).await, seen.text("/secret"));
    let other = app.other_app().await.app_id();
    app.drain().await;
    let others = app.operator().get(&path_of(other, "/secret")).await.expect(200).text("/secret");
    assert_ne!(others, seen.text("/secret"));
    app.restart().await;
    assert_eq!(secret(&app).await, seen.text("/secret"));
    let unknown = path_of(kernel::AppId::from_u128(7), "/secret");
    app.operator().get(&unknown).await.error(404, "NOT_FOUND");
    app.operator().post(&format!("{unknown}/rotate"), json!({})).await.error(404, "NOT_FOUND");
}

async fn replaced_secrets_sign_for_five_minutes(app: TestApp) {
    let receiver = Receiver::start().await;
    hook(&app, &receiver, &["tenant.created"]).await;
    let first = secret(&app).await;
    let rotate = || async { app.operator().post(&path(&app, "/secret/rotate"), json!({})).await.expect(200) };
    let (second, third) = (rotate().await.text("/secret"), rotate().await.text("/secret"));
    app.workspace("acme").await;
    app.advance(Duration::from_secs(301)).await;
    app.workspace("other").await;
    app.drain().await;
    let received = receiver.received();
    for secret in [&first, &second, &third] {
        assert_eq!(signatures_of(&received[0], secret), 1);
    }
    let signature = received[0].header("service-signature").expect("a signature");
    assert_eq!(signature.matches("v1=").count(), 3);
    let body = std::str::from_utf8(&received[0].body).expect("text");
    let t = testkit::webhooks::signed_at(&received[0]);
    let newest = vault::hmac_sha256_hex(third.as_bytes(), format!("{t}.{body}").as_bytes());
    assert!(signature.starts_with(&format!("t={t},v1={newest},")), "newest first");
    assert_eq!(signatures_of(&received[1], &third), 1);
    assert_eq!((signatures_of(&received[1], &second), signatures_of(&received[1], &first)), (0, 0));
}

async fn finding(app: &TestApp) -> String {
    let report = app.operator().get("/admin/doctor").await.expect(200).json();
    let mut findings = report["findings"].as_array().expect("a list").iter();
    let one = findings.find(|finding| finding["check"] == "webhook secrets").expect("a finding");
    one["level"].as_str().expect("a level").to_owned()
}

async fn who_may_rotate(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let own = format!("/webhooks/secrets/rotate/{}", app.app_id());
    app.user(&bob).post(&own, json!({})).await.error(403, "FORBIDDEN");
    let admin = acme.add("admin@example.com", "ADMIN").await;
    let rotated = app.user(&admin).post(&own, json!({})).await.expect(200);
    assert_eq!(rotated.text("/secret"), secret(&app).await);
    assert!(rotated.at("/rotatedAt").is_string());
    for wrong in [app.other_app().await.app_id().to_string(), "app_nothing".into(), "x".into()] {
        let path = format!("/webhooks/secrets/rotate/{wrong}");
        acme.owner().post(&path, json!({})).await.error(400, "VALIDATION_FAILED");
    }
    app.operator().put(&path(&app, ""), json!({ "url": "https://hooks.example" })).await.expect(200);
    assert_eq!(finding(&app).await, "warning");
    app.key().put("/account/app", json!({ "operatorTenantId": other.id })).await.expect(200);
    assert_eq!(finding(&app).await, "ok");
    acme.owner().post(&own, json!({})).await.error(403, "FORBIDDEN");
    other.owner().post(&own, json!({})).await.expect(200);
}

async fn a_change_of_the_master_key_keeps_the_secret(app: TestApp) {
    let before = secret(&app).await;
    let new = "ff".repeat(32);
    app.restart_with(|options| {
        options.keys.master_previous = options.keys.master.replace(kernel::Secret::new(new.clone()));
    })
    .await;
    app.drain().await;
    app.restart_with(|options| options.keys.master = Some(kernel::Secret::new(new.clone()))).await;
    assert_eq!(secret(&app).await, before);
}

async fn rotations_at_once_leave_one_secret(app: TestApp) {
    let receiver = Receiver::start().await;
    hook(&app, &receiver, &["tenant.created"]).await;
    let node = app.another_node().await;
    let rotate = |number: usize| {
        let who = if number.is_multiple_of(2) { app.operator() } else { node.operator() };
        let path = path(&app, "/secret/rotate");
        async move { who.post(&path, json!({})).await.expect(200).text("/secret") }
    };
    let rotated = futures_util::future::join_all((0..16).map(rotate)).await;
    assert!(rotated.contains(&secret(&app).await));
    app.workspace("acme").await;
    app.drain().await;
    let received = receiver.received().remove(0);
    assert!(rotated.iter().all(|secret| signatures_of(&received, secret) == 1), "all of them are owed");
    node.drain().await;
}
