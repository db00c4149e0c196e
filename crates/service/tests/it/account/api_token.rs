//! `/account/api-token/workspace` and `/account/api-token/app`: tokens by key.

use kernel::MemberId;
use serde_json::{Value, json};
use testkit::{
    Answer, TestApp,
    api_tokens::{app_token, bearer_of, workspace_token},
    assert_body,
    members::{disabled_member, member, set_profile, workspace, workspace_of},
    on_both_engines,
};

on_both_engines!(
    a_token_of_the_app_is_shown_once_and_listed_newest_first,
    a_token_of_a_workspace_is_made_for_an_owner_or_admin,
    a_workspace_lists_its_own_and_the_app_lists_all,
    each_wrong_field_is_named,
    a_token_says_what_the_contract_lists,
    a_token_does_what_its_privileges_say,
    a_token_grants_only_what_it_holds,
    destructive_privileges_are_granted_by_name,
    privileges_outside_the_allowed_ones_are_refused,
    a_token_of_a_workspace_acts_nowhere_else,
    a_token_is_revoked_where_it_belongs,
);

const APP: &str = "/account/api-token/app";
const WORKSPACE: &str = "/account/api-token/workspace";

fn ids(list: &Answer) -> Vec<Value> {
    list.json().as_array().expect("a list").iter().map(|record| record["id"].clone()).collect()
}

async fn a_token_of_the_app_is_shown_once_and_listed_newest_first(app: TestApp) {
    let first = app_token(&app, &["APP_READ"]).await;
    let body = json!({ "name": " Deploy ", "privileges": ["APP_READ", "APP_WRITE", "APP_READ"],
                       "expireAt": "2999-01-31T10:30:00+01:00" });
    let second = app.key().post(APP, body).await.expect(201);
    let list = app.key().get(APP).await.expect(200);
    assert_body!(list, @r#"
    [
      {
        "createdAt": "[time]",
        "createdBy": {
          "id": "[key id]",
          "type": "app_key"
        },
        "expireAt": "[time]",
        "id": "[apitoken id]",
        "lastUsedAt": null,
        "name": "Deploy",
        "privileges": [
          "APP_READ",
          "APP_WRITE"
        ],
        "tenantId": null
      },
      {
        "createdAt": "[time]",
        "createdBy": {
          "id": "[key id]",
          "type": "app_key"
        },
        "expireAt": null,
        "id": "[apitoken id]",
        "lastUsedAt": null,
        "name": "CI",
        "privileges": [
          "APP_READ"
        ],
        "tenantId": null
      }
    ]
    "#);
    assert_eq!(list.at("/0/expireAt"), "2999-01-31T09:30:00.000Z");
    assert_eq!(list.json(), json!([second.at("/record"), first.at("/record")]));
    assert_eq!(second.json().as_object().map(serde_json::Map::len), Some(2));
    assert_eq!(ids(&app.key().get(&format!("{APP}?limit=1&offset=1")).await), [first.at("/record/id")]);
}

async fn a_token_of_a_workspace_is_made_for_an_owner_or_admin(app: TestApp) {
    let (tenant, elsewhere) = (workspace(&app).await, workspace(&app).await);
    let key = app.key().in_workspace(tenant);
    let body = |who: String| json!({ "name": "Sync", "privileges": ["USER_READ"], "tenantUserId": who });
    for role in ["OWNER", "ADMIN"] {
        let person = member(&app, tenant, role).await;
        for id in [person.member.to_string(), person.user.to_string()] {
            let made = key.post(WORKSPACE, body(id)).await.expect(201);
            assert_eq!(made.at("/record/tenantId"), tenant.to_string());
        }
    }
    let not = [
        member(&app, tenant, "MEMBER").await.member,
        member(&app, elsewhere, "OWNER").await.member,
        disabled_member(&app, tenant, "OWNER").await.member,
        MemberId::from_u128(7),
    ];
    for person in not.iter().map(ToString::to_string).chain(["nobody".to_owned()]) {
        key.post(WORKSPACE, body(person)).await.error(403, "FORBIDDEN");
    }
    key.post(WORKSPACE, json!({ "name": "x", "privileges": ["USER_READ"] })).await.refuses(&["tenantUserId"]);
    app.key().get(WORKSPACE).await.error(400, "MISSING_HEADER");
    let foreign = workspace_of(&app, app.other_app().await.app_id()).await;
    app.key().in_workspace(foreign).get(WORKSPACE).await.error(404, "NOT_FOUND");
}

async fn a_workspace_lists_its_own_and_the_app_lists_all(app: TestApp) {
    let (one, other) = (workspace(&app).await, workspace(&app).await);
    let of_one = workspace_token(&app, one, &["USER_READ"]).await.at("/record/id");
    let of_other = workspace_token(&app, other, &["USER_READ"]).await.at("/record/id");
    let of_app = app_token(&app, &["APP_READ"]).await.at("/record/id");
    let own = ids(&app.key().in_workspace(one).get(WORKSPACE).await.expect(200));
    assert_eq!(own, std::slice::from_ref(&of_one));
    assert_eq!(ids(&app.key().get(APP).await.expect(200)), [of_app, of_other, of_one]);
    assert_eq!(ids(&app.other_app().await.get(APP).await.expect(200)), [Value::Null; 0]);
}

async fn each_wrong_field_is_named(app: TestApp) {
    let key = app.key();
    key.post(APP, json!({})).await.refuses(&["name", "privileges"]);
    key.post(APP, json!({ "name": "x" })).await.refuses(&["privileges"]);
    key.post(APP, json!({ "name": " ", "privileges": [] })).await.refuses(&["name", "privileges"]);
    key.post(APP, json!({ "name": "x", "privileges": "APP_READ" })).await.refuses(&["privileges"]);
    key.post(APP, json!({ "name": "x", "privileges": [1] })).await.refuses(&["privileges[0]"]);
    key.post(APP, json!({ "name": "x", "privileges": ["APP_READ"], "expireAt": "soon" })).await.refuses(&["expireAt"]);
    let body = json!({ "name": "x", "privileges": ["APP_READ", "FLY"], "expireAt": "2020-01-01T00:00:00Z" });
    key.post(APP, body).await.refuses(&["privileges[1]", "expireAt"]);
    let long: Vec<String> = (100..190).map(|n| format!("{}{n}", "A".repeat(100))).collect();
    key.post(APP, json!({ "name": "x", "privileges": long })).await.refuses(&["privileges"]);
    assert!(ids(&key.get(APP).await).is_empty());
}

async fn a_token_says_what_the_contract_lists(app: TestApp) {
    use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
    let tenant = workspace(&app).await;
    let made = workspace_token(&app, tenant, &["USER_READ"]).await;
    let token = made.text("/token");
    let parts: Vec<Value> = token
        .split('.')
        .take(2)
        .map(|part| serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).expect("base64url")).expect("JSON"))
        .collect();
    let secrets = app.operator().get(&format!("/admin/apps/{}/secrets", app.app_id())).await;
    assert_eq!(parts[0], json!({ "alg": "HS256", "typ": "JWT", "kid": secrets.at("/0/id") }));
    assert!(parts[1]["iat"].is_i64());
    let claims = json!({ "sub": made.at("/record/id"), "aid": app.app_id(), "tid": tenant, "type": "api",
                         "privileges": ["USER_READ"], "iat": parts[1]["iat"] });
    assert_eq!(parts[1], claims);
}

async fn a_token_does_what_its_privileges_say(app: TestApp) {
    let reads = bearer_of(&app, &app_token(&app, &["APP_READ"]).await);
    reads.get("/account/app").await.expect(200);
    reads.get(APP).await.expect(200);
    let body = json!({ "name": "x", "privileges": ["APP_READ"] });
    reads.post(APP, body.clone()).await.error(403, "MISSING_PRIVILEGE");
    reads.delete(&format!("{APP}/apitoken_00000000000000000000000007")).await.error(403, "MISSING_PRIVILEGE");
    let writes = bearer_of(&app, &app_token(&app, &["APP_WRITE"]).await);
    writes.get("/account/app").await.error(403, "MISSING_PRIVILEGE");
    writes.post(APP, json!({ "name": "x", "privileges": ["APP_WRITE"] })).await.expect(201);
}

async fn a_token_grants_only_what_it_holds(app: TestApp) {
    let token = bearer_of(&app, &app_token(&app, &["APP_WRITE", "APP_READ"]).await);
    let granted = token.post(APP, json!({ "name": "x", "privileges": ["APP_READ"] })).await.expect(201);
    assert_eq!(granted.at("/record/privileges"), json!(["APP_READ"]));
    let beyond = json!({ "name": "x", "privileges": ["APP_READ", "USER_READ"] });
    token.post(APP, beyond).await.error(403, "MISSING_PRIVILEGE");
    let tenant = workspace(&app).await;
    let owner = member(&app, tenant, "OWNER").await;
    let scoped = bearer_of(&app, &workspace_token(&app, tenant, &["TENANT_WRITE"]).await);
    let body = |key: &str| json!({ "name": "x", "privileges": [key], "tenantUserId": owner.member });
    scoped.post(WORKSPACE, body("TENANT_WRITE")).await.expect(201);
    scoped.post(WORKSPACE, body("TENANT_READ")).await.error(403, "MISSING_PRIVILEGE");
}

async fn destructive_privileges_are_granted_by_name(app: TestApp) {
    let made = app_token(&app, &["APP_DELETE", "TENANT_DELETE"]).await;
    assert_eq!(made.at("/record/privileges"), json!(["APP_DELETE", "TENANT_DELETE"]));
}

async fn privileges_outside_the_allowed_ones_are_refused(app: TestApp) {
    set_profile(&app, json!({ "allowedTokenPrivileges": ["APP_READ"] })).await;
    app_token(&app, &["APP_READ"]).await;
    let body = json!({ "name": "x", "privileges": ["APP_READ", "USER_READ"] });
    app.key().post(APP, body).await.error(403, "PRIVILEGE_NOT_ALLOWED");
    set_profile(&app, json!({ "allowedTokenPrivileges": [] })).await;
    let body = json!({ "name": "x", "privileges": ["APP_READ"] });
    app.key().post(APP, body).await.error(403, "PRIVILEGE_NOT_ALLOWED");
}

async fn a_token_of_a_workspace_acts_nowhere_else(app: TestApp) {
    let (tenant, elsewhere) = (workspace(&app).await, workspace(&app).await);
    let everything = ["APP_READ", "APP_WRITE", "TENANT_READ", "TENANT_WRITE"];
    let token = bearer_of(&app, &workspace_token(&app, tenant, &everything).await);
    token.get(WORKSPACE).await.expect(200);
    token.in_workspace(tenant).get(WORKSPACE).await.expect(200);
    token.in_workspace(elsewhere).get(WORKSPACE).await.error(403, "FORBIDDEN");
    token.header("x-tenant-id", "other").get(WORKSPACE).await.error(403, "FORBIDDEN");
    token.get(APP).await.error(403, "FORBIDDEN");
    token.get("/account/app").await.error(403, "FORBIDDEN");
    token.post(APP, json!({ "name": "x", "privileges": ["APP_READ"] })).await.error(403, "FORBIDDEN");
}

async fn a_token_is_revoked_where_it_belongs(app: TestApp) {
    let (tenant, elsewhere) = (workspace(&app).await, workspace(&app).await);
    let (of_app, of_workspace) =
        (app_token(&app, &["APP_READ"]).await, workspace_token(&app, tenant, &["TENANT_READ"]).await);
    let path = |base: &str, made: &Answer| format!("{base}/{}", made.text("/record/id"));
    app.key().in_workspace(elsewhere).delete(&path(WORKSPACE, &of_workspace)).await.error(404, "NOT_FOUND");
    app.key().in_workspace(tenant).delete(&path(WORKSPACE, &of_app)).await.error(404, "NOT_FOUND");
    app.other_app().await.delete(&path(APP, &of_app)).await.error(404, "NOT_FOUND");
    app.key().delete(&format!("{APP}/junk")).await.error(404, "NOT_FOUND");
    bearer_of(&app, &of_app).get("/account/app").await.expect(200);
    let gone = app.key().in_workspace(tenant).delete(&path(WORKSPACE, &of_workspace)).await.expect(200);
    assert_eq!(gone.json(), json!({ "success": true }));
    let third = workspace_token(&app, tenant, &["TENANT_READ"]).await;
    for made in [&of_app, &third] {
        app.key().delete(&path(APP, made)).await.expect(200);
        app.key().delete(&path(APP, made)).await.error(404, "NOT_FOUND");
    }
    assert!(ids(&app.key().get(APP).await).is_empty());
}
