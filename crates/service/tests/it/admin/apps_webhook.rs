//! `/admin/apps/{app_id}/webhook`.

use kernel::AppId;
use serde_json::json;
use testkit::{TestApp, assert_body, on_both_engines};

on_both_engines!(the_operator_and_the_profile_see_one_webhook, wrong_fields_are_named, an_unknown_app_is_not_found);

async fn the_operator_and_the_profile_see_one_webhook(app: TestApp) {
    let path = format!("/admin/apps/{}/webhook", app.app_id());
    assert_body!(app.operator().get(&path).await.expect(200), @r#"
    {
      "enabled": true,
      "events": [],
      "url": null
    }
    "#);
    let change = json!({ "url": "https://hooks.example/in", "events": ["tenant.created"] });
    let changed = app.operator().put(&path, change).await.expect(200);
    let expected = json!({ "enabled": true, "url": "https://hooks.example/in", "events": ["tenant.created"] });
    assert_eq!((changed.json(), app.operator().get(&path).await.json()), (expected.clone(), expected));
    assert_eq!(app.key().get("/account/app").await.text("/webhookUrl"), "https://hooks.example/in");

    app.key().put("/account/app", json!({ "webhookEnabled": false, "webhookEvents": null })).await.expect(200);
    let expected = json!({ "enabled": false, "url": "https://hooks.example/in", "events": [] });
    assert_eq!(app.operator().get(&path).await.json(), expected);
    assert_eq!(app.operator().put(&path, json!({ "url": null })).await.expect(200).at("/url"), json!(null));
}

async fn wrong_fields_are_named(app: TestApp) {
    let path = format!("/admin/apps/{}/webhook", app.app_id());
    let body = json!({ "url": "hooks.example", "events": ["tenant.created", "x"] });
    app.operator().put(&path, body).await.refuses(&["url", "events[1]"]);
    app.operator().put(&path, json!({ "enabled": null })).await.refuses(&["enabled"]);
}

async fn an_unknown_app_is_not_found(app: TestApp) {
    let path = format!("/admin/apps/{}/webhook", AppId::from_u128(7));
    app.operator().get(&path).await.error(404, "NOT_FOUND");
    app.operator().put(&path, json!({})).await.error(404, "NOT_FOUND");
}
