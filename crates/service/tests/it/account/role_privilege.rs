//! `/account/role/privilege`.

use serde_json::{Value, json};
use testkit::{
    Caller, TestApp, assert_body,
    catalog::{role, role_path},
    on_both_engines,
};

on_both_engines!(
    a_new_app_has_the_built_in_ones,
    a_privilege_is_made_changed_and_found,
    wrong_fields_are_named,
    keys_are_unique,
    the_built_in_ones_keep_their_key_and_stay,
    a_deleted_privilege_leaves_every_role,
    no_role_loses_its_last_privilege,
    another_apps_privileges_are_not_found,
);

const PRIVILEGES: &str = "/account/role/privilege";

fn path(privilege: &Value) -> String {
    format!("{PRIVILEGES}/{}", privilege["id"].as_str().expect("a privilege has an id"))
}

async fn new(key: &Caller, name: &str) -> Value {
    key.post(PRIVILEGES, json!({ "key": name })).await.expect(200).json()
}

async fn built_in(key: &Caller) -> Value {
    let list = key.get(PRIVILEGES).await.expect(200).json();
    let list = list.as_array().expect("a list");
    list.iter().find(|privilege| privilege["key"] == "USER_READ").expect("it is built in").clone()
}

async fn a_new_app_has_the_built_in_ones(app: TestApp) {
    let list = app.key().get(PRIVILEGES).await.expect(200).json();
    let keys: Vec<&Value> = list.as_array().expect("a list").iter().map(|privilege| &privilege["key"]).collect();
    let expected = [
        "AUTHENTICATED",
        "USER_READ",
        "USER_WRITE",
        "TENANT_READ",
        "TENANT_WRITE",
        "TENANT_DELETE",
        "APP_READ",
        "APP_WRITE",
        "APP_DELETE",
    ];
    assert_eq!(keys, expected);
}

async fn a_privilege_is_made_changed_and_found(app: TestApp) {
    let key = app.key();
    let made = key.post(PRIVILEGES, json!({ "key": "reports:read", "description": "See reports" })).await.expect(200);
    assert_body!(made, @r#"
    {
      "description": "See reports",
      "id": "[privilege id]",
      "key": "reports:read"
    }
    "#);
    let made = made.json();
    assert_eq!(key.get(&path(&made)).await.expect(200).json(), made);
    assert_eq!(key.get(&format!("{PRIVILEGES}?limit=1")).await.expect(200).json(), json!([made]));
    let renamed = key.put(&path(&made), json!({ "key": "REPORTS" })).await.expect(200).json();
    assert_eq!(renamed, json!({ "id": made["id"], "key": "REPORTS", "description": "See reports" }));
    let cleared = key.put(&path(&made), json!({ "description": null })).await.expect(200);
    assert_eq!(cleared.json(), json!({ "id": made["id"], "key": "REPORTS", "description": "" }));
    assert_eq!(key.delete(&path(&made)).await.expect(200).json(), json!({ "success": true }));
    key.get(&path(&made)).await.error(404, "NOT_FOUND");
}

async fn wrong_fields_are_named(app: TestApp) {
    let key = app.key();
    for body in [
        json!({}),
        json!({ "key": "" }),
        json!({ "key": "two words" }),
        json!({ "key": "openid" }),
        json!({ "key": 1 }),
    ] {
        key.post(PRIVILEGES, body).await.refuses(&["key"]);
    }
    key.post(PRIVILEGES, json!({ "key": "A", "description": 1 })).await.refuses(&["description"]);
    let made = new(&key, "A").await;
    key.put(&path(&made), json!({ "key": null })).await.refuses(&["key"]);
    key.put(&path(&made), json!({ "key": "email" })).await.refuses(&["key"]);
}

async fn keys_are_unique(app: TestApp) {
    let key = app.key();
    let made = new(&key, "REPORTS").await;
    key.post(PRIVILEGES, json!({ "key": "REPORTS" })).await.error(409, "PRIVILEGE_KEY_TAKEN");
    key.post(PRIVILEGES, json!({ "key": "USER_READ" })).await.error(409, "PRIVILEGE_KEY_TAKEN");
    key.put(&path(&made), json!({ "key": "USER_READ" })).await.error(409, "PRIVILEGE_KEY_TAKEN");
    key.put(&path(&made), json!({ "key": "REPORTS" })).await.expect(200);
    new(&app.other_app().await, "REPORTS").await;
}

async fn the_built_in_ones_keep_their_key_and_stay(app: TestApp) {
    let key = app.key();
    let privilege = built_in(&key).await;
    key.put(&path(&privilege), json!({ "key": "MINE" })).await.error(409, "BUILT_IN_PRIVILEGE");
    key.delete(&path(&privilege)).await.error(409, "BUILT_IN_PRIVILEGE");
    let changed = key.put(&path(&privilege), json!({ "description": "In" })).await.expect(200);
    assert_eq!((changed.at("/key"), changed.text("/description").as_str()), (privilege["key"].clone(), "In"));
}

async fn a_deleted_privilege_leaves_every_role(app: TestApp) {
    let key = app.key();
    let (own, other) = (new(&key, "REPORTS").await, built_in(&key).await);
    for name in ["ONE", "TWO"] {
        let body = json!({ "name": name, "key": name, "privileges": [own["id"], other["id"]] });
        key.post("/account/role", body).await.expect(200);
    }
    key.delete(&path(&own)).await.expect(200);
    for name in ["ONE", "TWO"] {
        assert_eq!(role(&key, name).await["privileges"], json!([other]));
    }
}

async fn no_role_loses_its_last_privilege(app: TestApp) {
    let key = app.key();
    let own = new(&key, "REPORTS").await;
    key.post("/account/role", json!({ "name": "A", "key": "A", "privileges": [own["id"]] })).await.expect(200);
    let refused = key.delete(&path(&own)).await.error(409, "LAST_PRIVILEGE");
    assert!(refused.text("/message").contains("of A:"), "{refused:?}");
    key.delete(&role_path(&role(&key, "A").await)).await.expect(200);
    key.delete(&path(&own)).await.expect(200);
}

async fn another_apps_privileges_are_not_found(app: TestApp) {
    let (key, other) = (app.key(), app.other_app().await);
    let foreign = new(&other, "REPORTS").await;
    key.get(&path(&foreign)).await.error(404, "NOT_FOUND");
    key.put(&path(&foreign), json!({ "key": "MINE" })).await.error(404, "NOT_FOUND");
    key.delete(&path(&foreign)).await.error(404, "NOT_FOUND");
    assert_eq!(other.get(&path(&foreign)).await.expect(200).json(), foreign);
}
