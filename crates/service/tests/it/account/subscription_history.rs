//! `/account/tenant/{tenant_id}/subscription/history`.

use serde_json::json;
use testkit::{TestApp, on_both_engines};

on_both_engines!(every_change_is_in_the_history_with_who_made_it);

async fn every_change_is_in_the_history_with_who_made_it(app: TestApp) {
    let workspace = app.workspace("acme").await;
    let path = format!("/account/tenant/{}/subscription/history", workspace.id);
    assert_eq!(app.key().get(&path).await.expect(200).json(), json!([]));
    let details = format!("/account/tenant/{}/paymentDetails", workspace.id);
    app.key().post(&details, json!({ "planKey": "free" })).await.expect(200);
    workspace.owner().post("/billing/cancel", json!({})).await.expect(201);
    workspace.owner().post("/billing/cancel", json!({})).await.expect(201);
    let listed = app.key().get(&path).await.expect(200);
    let shown = |place: usize| ["from", "to", "plan", "cause"].map(|member| listed.at(&format!("/{place}/{member}")));
    assert_eq!(shown(0), ["active", "cancel_at_period_end", "free", "cancel_requested"].map(|text| json!(text)));
    assert_eq!(shown(1), [json!(null), json!("active"), json!("free"), json!("assigned")]);
    assert_eq!((listed.at("/0/actor/type"), listed.at("/1/actor/type")), (json!("user"), json!("app_key")));
    assert_eq!(app.key().get(&format!("{path}?limit=1&offset=1")).await.expect(200).at("/0"), listed.at("/1"));
    app.other_app().await.get(&path).await.error(404, "NOT_FOUND");
    let elsewhere = app.workspace("other").await.token(&["TENANT_READ"]).await;
    elsewhere.get(&path).await.error(403, "FORBIDDEN");
}
