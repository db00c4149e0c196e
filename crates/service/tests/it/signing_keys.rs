//! `/admin/signing-keys`.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use testkit::{Answer, TestApp, assert_body, on_both_engines};

on_both_engines!(
    a_rotation_publishes_a_key_that_signs_later,
    while_a_rotation_is_under_way_there_is_no_other,
    the_other_node_loads_what_was_published,
    a_retired_key_is_deleted,
);

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn listed(app: &TestApp) -> Vec<Value> {
    app.operator().get("/admin/signing-keys").await.expect(200).json().as_array().expect("a list").clone()
}

async fn rotate(app: &TestApp) -> Answer {
    app.operator().post("/admin/signing-keys/rotate", json!({})).await.expect(200)
}

/// The key that signs now, by its `kid`.
fn signer(app: &TestApp) -> Value {
    let token = app.service().core().signing_keys.sign("test", &json!({})).expect("signed");
    let header = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').next().expect("a header")).expect("base64url");
    serde_json::from_slice::<Value>(&header).expect("JSON")["kid"].clone()
}

/// What is published, by `kid`.
fn published(app: &TestApp) -> Vec<Value> {
    let set: Value = serde_json::from_slice(&app.service().core().signing_keys.jwks().body).expect("JSON");
    set["keys"].as_array().expect("keys").iter().map(|key| key["kid"].clone()).collect()
}

async fn a_rotation_publishes_a_key_that_signs_later(app: TestApp) {
    let [first] = listed(&app).await.try_into().expect("one key");
    let rotated = rotate(&app).await;
    assert_body!(rotated, @r#"
    {
      "key": {
        "activeFrom": "[time]",
        "createdAt": "[time]",
        "kid": "[sigkey id]",
        "retiresAt": null
      },
      "started": true
    }
    "#);
    let [old, new] = listed(&app).await.try_into().expect("two keys");
    assert_eq!((&old["kid"], &new), (&first["kid"], &rotated.at("/key")));
    assert!(old["retiresAt"].is_string());
    assert_eq!(signer(&app), first["kid"]);
    assert_eq!(published(&app).len(), 2);
    app.advance(Duration::from_secs(601)).await;
    assert_eq!(signer(&app), new["kid"]);
}

async fn while_a_rotation_is_under_way_there_is_no_other(app: TestApp) {
    let first = rotate(&app).await;
    let second = rotate(&app).await;
    assert_eq!((first.at("/started"), second.at("/started")), (json!(true), json!(false)));
    assert_eq!(first.at("/key"), second.at("/key"));
    assert_eq!(listed(&app).await.len(), 2);
}

async fn the_other_node_loads_what_was_published(app: TestApp) {
    let node = app.another_node().await;
    rotate(&app).await;
    app.drain().await;
    node.drain().await;
    assert_eq!(published(&node), published(&app));
}

async fn a_retired_key_is_deleted(app: TestApp) {
    let new = rotate(&app).await.at("/key/kid");
    app.advance(364 * DAY).await;
    assert_eq!((listed(&app).await.len(), published(&app).len()), (2, 2));
    app.advance(2 * DAY).await;
    assert_eq!((listed(&app).await.len(), published(&app)), (1, vec![new]));
}
