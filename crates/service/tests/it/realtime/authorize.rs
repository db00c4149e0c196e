//! `POST /realtime/authorize`.

use serde_json::json;
use testkit::{TestApp, on_both_engines};

on_both_engines!(any_member_gets_a_token_for_their_own_channels);

async fn any_member_gets_a_token_for_their_own_channels(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@example.com", "MEMBER").await;
    let granted = app.user(&bob).post("/v1/realtime/authorize", json!({})).await.expect(200);
    let user = bob["userId"].as_str().expect("a person");
    let channels = json!([format!("app:{}", app.app_id()), format!("tenant:{}", acme.id), format!("user:{user}")]);
    assert_eq!((granted.at("/channels"), granted.at("/expiresIn")), (channels, json!(3600)));
    assert!(!granted.text("/token").is_empty());
}
