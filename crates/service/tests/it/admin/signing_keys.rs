//! `/admin/signing-keys`.

use std::time::Duration;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use testkit::{Answer, TestApp, assert_body, flags::flag, on_both_engines, tokens::refresh};

on_both_engines!(
    a_rotation_publishes_a_key_that_signs_later,
    while_a_rotation_is_under_way_there_is_no_other,
    the_other_node_loads_what_was_published,
    a_retired_key_is_deleted,
    a_revoked_key_ends_with_all_it_signed,
    revoking_the_signing_key_lets_the_next_one_sign_early,
    revoking_the_next_key_publishes_another,
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

async fn revoke(app: &TestApp, kid: &Value) -> Answer {
    let path = format!("/admin/signing-keys/{}/revoke", kid.as_str().expect("a kid"));
    app.operator().post(&path, json!({})).await
}

async fn a_revoked_key_ends_with_all_it_signed(app: TestApp) {
    let node = app.another_node().await;
    let ada = app.owner("ada@example.com").await;
    let tokens = ada.sign_in().await;
    let kid = signer(&app);
    // Flags remember signatures that they have checked.
    flag(&app, json!({ "key": "k", "state": "on" })).await;
    let evaluate = format!("/cloud-views/flags/evaluate/{}/k", app.app_id());
    let problem = async || {
        let body = json!({ "context": {}, "accessToken": tokens.access });
        app.anon().post(&evaluate, body).await.expect(200).at("/errorCode")
    };
    assert_eq!(problem().await, Value::Null);
    let revoked = revoke(&app, &kid).await.expect(200);
    assert_eq!((revoked.at("/made"), problem().await), (json!(true), json!("INVALID_TOKEN")));
    assert_eq!((published(&app), signer(&app)), (vec![revoked.at("/key/kid")], revoked.at("/key/kid")));
    app.drain().await;
    node.drain().await;
    assert_eq!(published(&node), published(&app));
    for node in [&app, &node] {
        let user = node.anon().with_access_token(app.app_id(), &tokens.access);
        user.get("/auth/userinfo").await.error(401, "INVALID_CREDENTIAL");
        assert_eq!(refresh(node, &tokens.refresh).await.expect(400).at("/error"), "invalid_grant");
    }
    ada.signed_in().await.get("/auth/userinfo").await.expect(200);
    revoke(&app, &kid).await.error(404, "NOT_FOUND");
    assert_eq!(listed(&app).await.len(), 1);
}

async fn revoking_the_signing_key_lets_the_next_one_sign_early(app: TestApp) {
    let (old, next) = (signer(&app), rotate(&app).await.at("/key/kid"));
    let revoked = revoke(&app, &old).await.expect(200);
    assert_eq!((revoked.at("/made"), revoked.at("/key/kid")), (json!(false), next.clone()));
    assert_eq!((published(&app), signer(&app)), (vec![next.clone()], next.clone()));
    // And the other way round: the one before goes while the next one signs.
    app.advance(Duration::from_secs(1)).await;
    rotate(&app).await;
    app.advance(Duration::from_secs(601)).await;
    let third = signer(&app);
    assert_ne!(third, next);
    assert_eq!(revoke(&app, &next).await.expect(200).at("/made"), json!(false));
    assert_eq!((published(&app), signer(&app)), (vec![third.clone()], third));
}

async fn revoking_the_next_key_publishes_another(app: TestApp) {
    let (old, next) = (signer(&app), rotate(&app).await.at("/key/kid"));
    let revoked = revoke(&app, &next).await.expect(200);
    let another = revoked.at("/key/kid");
    assert_eq!(revoked.at("/made"), json!(true));
    assert_eq!((published(&app), signer(&app)), (vec![old.clone(), another.clone()], old));
    app.advance(Duration::from_secs(601)).await;
    assert_eq!(signer(&app), another);
}
