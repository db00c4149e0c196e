//! Webhooks for tests: a receiver behind an app's webhook, and what a receiver checks.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kernel::AppId;
use serde_json::{Value, json};
use vault::{hmac_sha256, hmac_sha256_hex};

use crate::{Received, Receiver, TestApp};

/// The path of the first app's webhook, or of something below it.
pub fn path(app: &TestApp, rest: &str) -> String {
    path_of(app.app_id(), rest)
}

pub fn path_of(app: AppId, rest: &str) -> String {
    format!("/admin/apps/{app}/webhook{rest}")
}

/// Lets the first app's events of these types (all when there are none) go to a receiver, from here on.
pub async fn hook(app: &TestApp, receiver: &Receiver, events: &[&str]) {
    let body = json!({ "url": receiver.url("/hooks"), "enabled": true, "events": events });
    app.operator().put(&path(app, ""), body).await.expect(200);
}

/// The secret that signs for the first app.
pub async fn secret(app: &TestApp) -> String {
    app.operator().get(&path(app, "/secret")).await.expect(200).text("/secret")
}

/// The first app's deliveries, newest first.
pub async fn deliveries(app: &TestApp) -> Vec<Value> {
    let listed = app.operator().get(&path(app, "/deliveries?limit=1000")).await.expect(200).json();
    listed.as_array().expect("a list").clone()
}

/// A delivery with its attempts.
pub async fn delivery(app: &TestApp, id: &Value) -> Value {
    let id = id.as_str().expect("an id");
    app.operator().get(&path(app, &format!("/deliveries/{id}"))).await.expect(200).json()
}

/// `t` of a request's signature.
pub fn signed_at(received: &Received) -> i64 {
    let signature = received.header("service-signature").expect("a signature");
    let t = signature.split(',').next().and_then(|part| part.strip_prefix("t=")).expect("t first");
    t.parse().expect("Unix seconds")
}

/// How many of the signatures of a request are this secret's: the same number in both forms.
pub fn signatures_of(received: &Received, secret: &str) -> usize {
    let t = signed_at(received);
    let body = std::str::from_utf8(&received.body).expect("text");
    let own = format!("v1={}", hmac_sha256_hex(secret.as_bytes(), format!("{t}.{body}").as_bytes()));
    let signature = received.header("service-signature").expect("a signature");
    let count = signature.split(',').filter(|part| *part == own).count();
    let key = BASE64_STANDARD.decode(secret.strip_prefix("whsec_").expect("whsec_")).expect("base64");
    let id = received.header("webhook-id").expect("an id");
    assert_eq!(received.header("webhook-timestamp"), Some(t.to_string().as_str()));
    let standard = BASE64_STANDARD.encode(hmac_sha256(&key, format!("{id}.{t}.{body}").as_bytes()));
    let standard = format!("v1,{standard}");
    let signatures = received.header("webhook-signature").expect("a signature");
    assert_eq!(signatures.split(' ').filter(|part| *part == standard).count(), count, "both forms say the same");
    count
}
