//! `/account/role`.

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{
    Caller, TestApp, assert_body,
    catalog::{role, role_path as path},
    on_both_engines,
};

on_both_engines!(
    a_new_app_has_three_roles,
    a_role_is_answered_whole_with_its_privileges,
    wrong_fields_are_named_and_nothing_is_made,
    a_partial_change_keeps_the_rest,
    making_another_role_the_default_moves_the_flag,
    the_default_flag_is_never_taken_away,
    owner_keeps_its_key_and_stays,
    keys_are_unique_in_an_app_and_free_in_another,
    of_eight_at_once_one_gets_the_key,
    a_role_that_a_member_holds_stays,
    a_deleted_role_leaves_its_privileges,
    another_apps_roles_are_not_found,
    a_change_counts_at_once_for_those_who_are_signed_in,
    the_roles_of_a_deleted_app_are_purged,
);

fn keys(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|entry| entry["key"].as_str().expect("a key")).collect()
}

/// The id of the app's privilege with this key.
async fn privilege(key: &Caller, name: &str) -> Value {
    let privileges = key.get("/account/role/privilege").await.expect(200).json();
    let found = privileges.as_array().expect("a list").iter().find(|privilege| privilege["key"] == name).cloned();
    found.unwrap_or_else(|| panic!("no privilege {name} in {privileges}"))["id"].clone()
}

async fn new_role(key: &Caller, name: &str) -> Value {
    let body = json!({ "name": name, "key": name, "privileges": [privilege(key, "USER_READ").await] });
    key.post("/account/role", body).await.expect(200).json()
}

async fn a_new_app_has_three_roles(app: TestApp) {
    let other = app.other_app().await;
    for key in [app.key(), other] {
        let roles = key.get("/account/role").await.expect(200).json();
        assert_eq!(keys(&roles), ["OWNER", "ADMIN", "MEMBER"]);
        let usual =
            ["AUTHENTICATED", "USER_READ", "USER_WRITE", "TENANT_READ", "TENANT_WRITE", "APP_READ", "APP_WRITE"];
        let mut owner = usual.to_vec();
        owner.insert(5, "TENANT_DELETE");
        assert_eq!(keys(&roles[0]["privileges"]), owner);
        assert_eq!(keys(&roles[1]["privileges"]), usual);
        assert_eq!(keys(&roles[2]["privileges"]), ["AUTHENTICATED", "USER_READ", "TENANT_READ"]);
        let defaults: Vec<&Value> = roles.as_array().into_iter().flatten().map(|role| &role["isDefault"]).collect();
        assert_eq!(defaults, [false, false, true]);
    }
}

async fn a_role_is_answered_whole_with_its_privileges(app: TestApp) {
    let key = app.key();
    let privileges = [privilege(&key, "USER_READ").await, privilege(&key, "APP_READ").await];
    let twice = [&privileges[..], &privileges[..1]].concat();
    let body = json!({ "name": " Support ", "key": "SUPPORT", "description": "Helps", "privileges": twice, "id": "x" });
    let made = key.post("/account/role", body).await.expect(200);
    assert_body!(made, @r#"
    {
      "description": "Helps",
      "id": "[role id]",
      "isDefault": false,
      "key": "SUPPORT",
      "name": "Support",
      "privileges": [
        {
          "description": "See the members of a workspace",
          "id": "[privilege id]",
          "key": "USER_READ"
        },
        {
          "description": "See the app's settings, catalog and roles",
          "id": "[privilege id]",
          "key": "APP_READ"
        }
      ]
    }
    "#);
    assert_eq!(key.get(&path(&made.json())).await.expect(200).json(), made.json());
    let list = key.get("/v1/account/role?limit=1").await.expect(200);
    assert_eq!(list.json(), json!([made.json()]));
}

async fn wrong_fields_are_named_and_nothing_is_made(app: TestApp) {
    let key = app.key();
    let (known, unknown) = (privilege(&key, "USER_READ").await, "privilege_00000000000000000000000007");
    let foreign = privilege(&app.other_app().await, "USER_READ").await;
    for (body, fields) in [
        (json!({}), &["name", "key", "privileges"][..]),
        (json!({ "name": "A", "key": "A" }), &["privileges"]),
        (json!({ "name": " ", "key": "two words", "privileges": [] }), &["name", "key", "privileges"]),
        (json!({ "name": "A", "key": "A", "privileges": [known, "USER_READ"] }), &["privileges[1]"]),
        (
            json!({ "name": "A", "key": "A", "privileges": [unknown, known, foreign] }),
            &["privileges[0]", "privileges[2]"],
        ),
        (json!({ "name": "A", "key": "A", "privileges": [known], "isDefault": "yes" }), &["isDefault"]),
    ] {
        key.post("/account/role", body).await.refuses(fields);
    }
    let member = role(&key, "MEMBER").await;
    for (body, fields) in [
        (json!({ "name": null }), &["name"][..]),
        (json!({ "privileges": [] }), &["privileges"]),
        (json!({ "privileges": null }), &["privileges"]),
        (json!({ "name": "B", "privileges": [known, unknown] }), &["privileges[1]"]),
    ] {
        key.put(&path(&member), body).await.refuses(fields);
    }
    assert_eq!(role(&key, "MEMBER").await, member);
    assert_eq!(key.get("/account/role").await.json().as_array().map(Vec::len), Some(3));
}

async fn a_partial_change_keeps_the_rest(app: TestApp) {
    let key = app.key();
    let before = new_role(&key, "SUPPORT").await;
    let changed = key.put(&path(&before), json!({ "description": "Helps", "id": "x", "other": 1 })).await.expect(200);
    let mut expected = before.clone();
    expected["description"] = "Helps".into();
    assert_eq!(changed.json(), expected);
    let admin = privilege(&key, "APP_WRITE").await;
    let body = json!({ "description": null, "key": "HELP", "name": "Help", "privileges": [admin] });
    let changed = key.put(&path(&before), body).await.expect(200).json();
    assert_eq!((&changed["key"], &changed["description"]), (&json!("HELP"), &json!("")));
    assert_eq!(keys(&changed["privileges"]), ["APP_WRITE"]);
    assert_eq!(key.get(&path(&before)).await.expect(200).json(), changed);
}

async fn making_another_role_the_default_moves_the_flag(app: TestApp) {
    let key = app.key();
    let defaults = async || {
        let roles = key.get("/account/role").await.expect(200).json();
        let roles = roles.as_array().expect("a list").clone();
        let defaults = roles.into_iter().filter(|role| role["isDefault"] == true);
        defaults.map(|role| role["key"].as_str().expect("a key").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(defaults().await, ["MEMBER"]);
    let body =
        json!({ "name": "A", "key": "A", "isDefault": true, "privileges": [privilege(&key, "USER_READ").await] });
    assert_eq!(key.post("/account/role", body).await.expect(200).at("/isDefault"), true);
    assert_eq!(defaults().await, ["A"]);
    let admin = role(&key, "ADMIN").await;
    assert_eq!(key.put(&path(&admin), json!({ "isDefault": true })).await.expect(200).at("/isDefault"), true);
    assert_eq!(defaults().await, ["ADMIN"]);
    key.delete(&path(&role(&key, "A").await)).await.expect(200);
}

async fn the_default_flag_is_never_taken_away(app: TestApp) {
    let key = app.key();
    let member = role(&key, "MEMBER").await;
    key.put(&path(&member), json!({ "isDefault": false })).await.error(409, "DEFAULT_ROLE_REQUIRED");
    key.put(&path(&member), json!({ "isDefault": true, "name": "Everybody" })).await.expect(200);
    key.delete(&path(&member)).await.error(409, "DEFAULT_ROLE_REQUIRED");
}

async fn owner_keeps_its_key_and_stays(app: TestApp) {
    let key = app.key();
    let owner = role(&key, "OWNER").await;
    key.put(&path(&owner), json!({ "key": "BOSS" })).await.error(409, "OWNER_ROLE_PROTECTED");
    key.delete(&path(&owner)).await.error(409, "OWNER_ROLE_PROTECTED");
    let changed = key.put(&path(&owner), json!({ "key": "OWNER", "name": "Boss" })).await.expect(200);
    assert_eq!(changed.text("/name"), "Boss");
}

async fn keys_are_unique_in_an_app_and_free_in_another(app: TestApp) {
    let (key, other) = (app.key(), app.other_app().await);
    let support = new_role(&key, "SUPPORT").await;
    new_role(&other, "SUPPORT").await;
    let again = json!({ "name": "B", "key": "SUPPORT", "privileges": [privilege(&key, "USER_READ").await] });
    key.post("/account/role", again).await.error(409, "ROLE_KEY_TAKEN");
    key.put(&path(&support), json!({ "key": "ADMIN" })).await.error(409, "ROLE_KEY_TAKEN");
    key.put(&path(&support), json!({ "key": "SUPPORT" })).await.expect(200);
}

async fn of_eight_at_once_one_gets_the_key(app: TestApp) {
    let key = app.key();
    let body =
        json!({ "name": "A", "key": "A", "isDefault": true, "privileges": [privilege(&key, "USER_READ").await] });
    let race = join_all((0..8).map(|_| key.post("/account/role", body.clone()))).await;
    assert_eq!(race.iter().filter(|answer| answer.status() == 200).count(), 1);
    for answer in race.into_iter().filter(|answer| answer.status() != 200) {
        answer.error(409, "ROLE_KEY_TAKEN");
    }
}

async fn a_role_that_a_member_holds_stays(app: TestApp) {
    let key = app.key();
    let support = new_role(&key, "SUPPORT").await;
    let workspace = app.workspace("acme").await;
    let member = workspace.add("bob@acme.example", "SUPPORT").await;
    key.delete(&path(&support)).await.error(409, "ROLE_IN_USE");
    // Somebody who is disabled may be enabled again.
    workspace.key().put(&workspace.path_of(&member), json!({ "enabled": false })).await.expect(200);
    key.delete(&path(&support)).await.error(409, "ROLE_IN_USE");
    workspace.key().delete(&workspace.path_of(&member)).await.expect(200);
    key.delete(&path(&support)).await.expect(200);
}

async fn a_deleted_role_leaves_its_privileges(app: TestApp) {
    let key = app.key();
    let privileges = key.get("/account/role/privilege").await.json();
    let support = new_role(&key, "SUPPORT").await;
    assert_eq!(key.delete(&path(&support)).await.expect(200).json(), json!({ "success": true }));
    key.get(&path(&support)).await.error(404, "NOT_FOUND");
    key.delete(&path(&support)).await.error(404, "NOT_FOUND");
    key.put(&path(&support), json!({})).await.error(404, "NOT_FOUND");
    assert_eq!(key.get("/account/role/privilege").await.json(), privileges);
}

async fn another_apps_roles_are_not_found(app: TestApp) {
    let (key, other) = (app.key(), app.other_app().await);
    let admin = role(&other, "ADMIN").await;
    key.get(&path(&admin)).await.error(404, "NOT_FOUND");
    key.put(&path(&admin), json!({ "name": "Mine" })).await.error(404, "NOT_FOUND");
    key.delete(&path(&admin)).await.error(404, "NOT_FOUND");
    for id in ["role_00000000000000000000000007", "x", "user_00000000000000000000000007"] {
        key.get(&format!("/account/role/{id}")).await.error(404, "NOT_FOUND");
    }
    assert_eq!(role(&other, "ADMIN").await, admin);
}

async fn a_change_counts_at_once_for_those_who_are_signed_in(app: TestApp) {
    let (key, owner) = (app.key(), app.workspace("acme").await.owner());
    let token = json!({ "name": "t", "privileges": ["TENANT_WRITE"] });
    owner.post("/account/api-token/me/app", token.clone()).await.expect(201);
    let role = role(&key, "OWNER").await;
    let only_read = json!({ "privileges": [privilege(&key, "TENANT_READ").await] });
    key.put(&path(&role), only_read).await.expect(200);
    owner.post("/account/api-token/me/app", token.clone()).await.expect(403);
    let all: Vec<&Value> = role["privileges"].as_array().into_iter().flatten().map(|held| &held["id"]).collect();
    key.put(&path(&role), json!({ "privileges": all })).await.expect(200);
    owner.post("/account/api-token/me/app", token).await.expect(201);
}

async fn the_roles_of_a_deleted_app_are_purged(app: TestApp) {
    let other = app.other_app().await;
    let left = async || {
        let (db, id) = (app.service().core().db.clone(), other.app_id());
        let sql = "SELECT (SELECT count(*) FROM roles WHERE app_id = $1), (SELECT count(*) FROM privileges WHERE app_id = $1), \
             (SELECT count(*) FROM role_privileges WHERE app_id = $1)";
        let counted = db.get_one::<(i64, i64, i64)>(sql, &store::args![id]).await;
        counted.expect("can be counted").expect("a row")
    };
    assert_eq!(left().await, (3, 9, 18));
    app.operator().delete(&format!("/admin/apps/{}", other.app_id())).await.expect(200);
    app.drain().await;
    assert_eq!(left().await, (0, 0, 0));
}
