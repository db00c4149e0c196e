//! `/admin/apps/{app_id}/keys`.

use kernel::KeyId;
use serde_json::{Value, json};
use testkit::{TestApp, assert_body, on_both_engines};

on_both_engines!(
    a_key_is_shown_once_and_then_only_its_record,
    a_key_has_what_was_asked_for,
    each_wrong_field_is_named_and_no_key_is_made,
    a_revoked_key_is_refused_at_once,
    a_key_is_revoked_only_under_its_own_app,
);

fn keys_of(app: &TestApp) -> String {
    format!("/admin/apps/{}/keys", app.app_id())
}

async fn listed(app: &TestApp) -> Vec<Value> {
    app.operator().get(&keys_of(app)).await.expect(200).json().as_array().expect("a list").clone()
}

async fn a_key_is_shown_once_and_then_only_its_record(app: TestApp) {
    let made = app.operator().post(&keys_of(&app), json!({ "name": " CI " })).await.expect(201);
    assert_body!(made, @r#"
    {
      "key": "[API key]",
      "record": {
        "createdAt": "[time]",
        "id": "[key id]",
        "name": "CI",
        "privileges": [
          "AUTHENTICATED",
          "USER_READ",
          "USER_WRITE",
          "TENANT_READ",
          "TENANT_WRITE",
          "APP_READ",
          "APP_WRITE"
        ]
      }
    }
    "#);
    app.anon().with_api_key(app.app_id(), &made.text("/key")).get("/account/app").await.expect(200);
    let list = listed(&app).await;
    assert_eq!((list.len(), &list[0], &list[1]["name"]), (2, &made.at("/record"), &json!("First key")));
    assert!(!json!(list).to_string().contains("tnt_"));
}

async fn a_key_has_what_was_asked_for(app: TestApp) {
    let usual =
        json!(["AUTHENTICATED", "USER_READ", "USER_WRITE", "TENANT_READ", "TENANT_WRITE", "APP_READ", "APP_WRITE"]);
    for (asked, granted) in [
        (json!({ "name": "k" }), usual.clone()),
        (json!({ "name": "k", "privileges": null }), usual),
        (json!({ "name": "k", "privileges": ["TENANT_READ", "APP_DELETE"] }), json!(["TENANT_READ", "APP_DELETE"])),
        (
            json!({ "name": "k", "privileges": ["APP_DELETE"] }),
            json!([
                "AUTHENTICATED",
                "USER_READ",
                "USER_WRITE",
                "TENANT_READ",
                "TENANT_WRITE",
                "APP_READ",
                "APP_WRITE",
                "APP_DELETE"
            ]),
        ),
    ] {
        let made = app.operator().post(&keys_of(&app), asked.clone()).await.expect(201);
        assert_eq!(made.at("/record/privileges"), granted, "{asked}");
    }
    app.key_with(&["TENANT_READ"]).await.get("/account/app").await.error(403, "MISSING_PRIVILEGE");
}

async fn each_wrong_field_is_named_and_no_key_is_made(app: TestApp) {
    for (body, field) in [
        (json!({}), "name"),
        (json!({ "name": "" }), "name"),
        (json!({ "name": "a\0b" }), "name"),
        (json!({ "name": "k", "privileges": [] }), "privileges"),
        (json!({ "name": "k", "privileges": "APP_READ" }), "privileges"),
        (json!({ "name": "k", "privileges": ["APP_READ", "FLY"] }), "privileges[1]"),
    ] {
        app.operator().post(&keys_of(&app), body).await.refuses(&[field]);
    }
    assert_eq!(listed(&app).await.len(), 1);
}

async fn a_revoked_key_is_refused_at_once(app: TestApp) {
    let key = app.key_with(&["APP_READ"]).await;
    key.get("/account/app").await.expect(200);
    let path = format!("{}/{}", keys_of(&app), key.key_id());
    assert_eq!(app.operator().delete(&path).await.expect(200).json(), json!({ "success": true }));
    key.get("/account/app").await.error(401, "INVALID_CREDENTIAL");
    app.operator().delete(&path).await.error(404, "NOT_FOUND");
    app.drain().await;
    key.get("/account/app").await.error(401, "INVALID_CREDENTIAL");
    app.key().get("/account/app").await.expect(200);
}

async fn a_key_is_revoked_only_under_its_own_app(app: TestApp) {
    let (key, other) = (app.key_with(&["APP_READ"]).await, app.other_app().await);
    let elsewhere = format!("/admin/apps/{}/keys/{}", other.app_id(), key.key_id());
    app.operator().delete(&elsewhere).await.error(404, "NOT_FOUND");
    key.get("/account/app").await.expect(200);
    for id in [KeyId::from_u128(7).to_string().as_str(), "key_x", app.app_id().to_string().as_str()] {
        app.operator().delete(&format!("{}/{id}", keys_of(&app))).await.error(404, "NOT_FOUND");
    }
}
