//! Authority moves only with authority: nobody hands out what they do not hold, by whichever door, and what was handed out
//! ends with whoever did it.

use std::time::Duration;

use futures_util::future::{join, join_all};
use serde_json::{Value, json};
use testkit::{
    Caller, TestApp,
    api_tokens::{app_token, bearer_of},
    catalog::{role, role_path},
    on_both_engines,
};

on_both_engines!(
    settings_that_move_power_need_it,
    a_role_takes_no_privilege_that_its_editor_lacks,
    a_renamed_privilege_is_a_new_one_to_those_who_have_it,
    a_restricted_key_gives_what_it_holds,
    nobody_becomes_a_person_whose_role_they_could_not_give,
    what_a_token_made_ends_with_it,
    what_a_token_made_expires_no_later,
    what_a_token_made_goes_with_its_secret,
    what_a_member_made_ends_with_them,
    what_a_member_made_ends_with_their_role,
    a_narrowed_token_has_none_of_its_roles_power,
    tokens_say_who_made_them,
    no_child_survives_a_revocation_under_way,
    no_token_survives_a_removal_under_way,
);

const APP: &str = "/account/api-token/app";
const WORKSPACE: &str = "/account/api-token/workspace";
const ME: &str = "/account/api-token/me/app";
const POWER: [&str; 7] =
    ["AUTHENTICATED", "USER_READ", "USER_WRITE", "TENANT_READ", "TENANT_WRITE", "APP_READ", "APP_WRITE"];

async fn token(app: &TestApp, privileges: &[&str]) -> Caller {
    bearer_of(app, &app_token(app, privileges).await)
}

async fn settings_that_move_power_need_it(app: TestApp) {
    let own = app.workspace("evil").await;
    let powerful = [
        json!({ "operatorTenantId": own.id }),
        json!({ "allowedTokenPrivileges": ["APP_READ"] }),
        json!({ "redirectUris": ["https://evil.example/callback"] }),
        json!({ "defaultCallbackUri": "https://evil.example/callback" }),
        json!({ "allowedOrigins": ["https://evil.example"] }),
        json!({ "uiUrl": "https://evil.example" }),
        json!({ "requirePkce": true }),
        json!({ "webhookUrl": "https://evil.example/hook" }),
        json!({ "emailSenderEmail": "mallory@evil.example" }),
        json!({ "emailSenderName": "Your bank" }),
    ];
    let (weak, strong) = (token(&app, &["APP_READ", "APP_WRITE"]).await, token(&app, &POWER).await);
    for setting in &powerful {
        weak.put("/account/app", setting.clone()).await.error(403, "MISSING_PRIVILEGE");
        app.key_with(&["APP_WRITE"]).await.put("/account/app", setting.clone()).await.error(403, "MISSING_PRIVILEGE");
    }
    weak.put("/account/app/credentials", json!({ "payproviderSecretKey": "sk" })).await.error(403, "MISSING_PRIVILEGE");
    weak.put("/account/app/credentials", json!({ "socialOneClientId": null })).await.error(403, "MISSING_PRIVILEGE");
    // What moves nothing is theirs to change, also beside what stays as it is.
    weak.put("/account/app/credentials", json!({})).await.expect(200);
    let before = weak.get("/account/app").await.expect(200).json();
    let mut whole = before.clone();
    whole["name"] = "Renamed".into();
    weak.put("/account/app", whole).await.expect(200);
    for setting in powerful {
        strong.put("/account/app", setting).await.expect(200);
    }
    strong.put("/account/app/credentials", json!({ "payproviderSecretKey": "sk" })).await.expect(200);
}

async fn privilege(app: &TestApp, key: &str) -> Value {
    let list = app.key().get("/account/role/privilege").await.expect(200).json();
    list.as_array().into_iter().flatten().find(|one| one["key"] == key).expect("is defined")["id"].clone()
}

async fn a_role_takes_no_privilege_that_its_editor_lacks(app: TestApp) {
    let weak = token(&app, &["APP_READ", "APP_WRITE"]).await;
    let (read, delete) = (privilege(&app, "APP_READ").await, privilege(&app, "APP_DELETE").await);
    let new = |key: &str, privileges: Value, default: bool| json!({ "name": key, "key": key, "privileges": privileges, "isDefault": default });
    weak.post("/account/role", new("A", json!([read, delete]), false)).await.error(403, "MISSING_PRIVILEGE");
    weak.post("/account/role", new("A", json!([read]), false)).await.expect(200);
    let owner = role(&app.key(), "OWNER").await;
    let kept: Vec<Value> =
        owner["privileges"].as_array().expect("a list").iter().map(|one| one["id"].clone()).collect();
    let more: Vec<Value> = kept.iter().cloned().chain([delete.clone()]).collect();
    weak.put(&role_path(&owner), json!({ "privileges": more })).await.error(403, "MISSING_PRIVILEGE");
    // Everybody who joins gets the default role, so that making it one gives it away.
    weak.put(&role_path(&owner), json!({ "isDefault": true })).await.error(403, "MISSING_PRIVILEGE");
    weak.put(&role_path(&owner), json!({ "name": "Boss", "privileges": kept })).await.expect(200);
    // What the key ADMIN stands for goes with it.
    let (admin, member) = (role(&app.key(), "ADMIN").await, role(&app.key(), "MEMBER").await);
    weak.put(&role_path(&admin), json!({ "key": "FORMER" })).await.error(403, "MISSING_PRIVILEGE");
    app.key().put(&role_path(&admin), json!({ "key": "FORMER" })).await.expect(200);
    weak.put(&role_path(&member), json!({ "key": "ADMIN" })).await.error(403, "MISSING_PRIVILEGE");
    weak.post("/account/role", new("ADMIN", json!([read]), false)).await.error(403, "MISSING_PRIVILEGE");
    assert_eq!(role(&app.key(), "OWNER").await["privileges"], owner["privileges"]);
    app.key().put(&role_path(&owner), json!({ "privileges": more })).await.expect(200);
}

async fn what_a_member_made_ends_with_their_role(app: TestApp) {
    let acme = app.workspace("acme").await;
    let bob = acme.add("bob@acme.example", "ADMIN").await;
    let make = async |privileges: &[&str]| {
        let made = app.user(&bob).post(ME, json!({ "name": "t", "privileges": privileges })).await.expect(201);
        bearer_of(&app, &made)
    };
    let (strong, weak) = (make(&["TENANT_WRITE", "USER_WRITE", "USER_READ"]).await, make(&["USER_READ"]).await);
    let child = json!({ "name": "c", "privileges": ["USER_WRITE"], "tenantUserId": acme.owner["id"] });
    let child = bearer_of(&app, &strong.post(WORKSPACE, child).await.expect(201));
    acme.key().put(&acme.path_of(&bob), json!({ "role": "MEMBER" })).await.expect(200);
    for token in [&strong, &child] {
        token.put(&acme.path_of(&bob), json!({ "role": "ADMIN" })).await.error(401, "INVALID_CREDENTIAL");
    }
    weak.get("/account/tenant/user").await.expect(200);

    // The same when the role itself loses a privilege.
    acme.key().put(&acme.path_of(&bob), json!({ "role": "ADMIN" })).await.expect(200);
    let strong = make(&["USER_WRITE", "USER_READ"]).await;
    let admin = role(&app.key(), "ADMIN").await;
    let fewer: Vec<&Value> = admin["privileges"].as_array().expect("a list").iter().collect();
    let fewer: Vec<&Value> = fewer.into_iter().filter(|one| one["key"] != "USER_WRITE").map(|one| &one["id"]).collect();
    app.key().put(&role_path(&admin), json!({ "privileges": fewer })).await.expect(200);
    strong.get("/account/tenant/user").await.error(401, "INVALID_CREDENTIAL");
    weak.get("/account/tenant/user").await.expect(200);
}

async fn a_narrowed_token_has_none_of_its_roles_power(app: TestApp) {
    let ada = app.owner("ada@acme.example").await;
    let tokens = ada.sign_in().await;
    let narrowed = json!({
        "client_id": app.app_id(), "grant_type": "refresh_token", "refresh_token": tokens.refresh,
        "scope": "TENANT_READ AUTHENTICATED",
    });
    let access = app.anon().post("/auth/token", narrowed).await.expect(200).text("/access_token");
    let caller = |token: &str| app.anon().with_access_token(app.app_id(), token);
    let (whole, narrow) = (caller(&tokens.access), caller(&access));
    narrow.get("/account/tenant").await.expect(200);
    for path in [format!("/webhooks/deliveries/{}", app.app_id()), "/event-log/audit/workspace".to_owned()] {
        whole.get(&path).await.expect(200);
        narrow.get(&path).await.error(403, "MISSING_PRIVILEGE");
    }
    let rotate = format!("/webhooks/secrets/rotate/{}", app.app_id());
    narrow.post(&rotate, json!({})).await.error(403, "MISSING_PRIVILEGE");
    let made = whole.post(ME, wanted(&["USER_WRITE"])).await.expect(201).text("/record/id");
    narrow.delete(&format!("{ME}/{made}")).await.error(403, "MISSING_PRIVILEGE");
    // What it makes is bounded by itself.
    narrow.post(ME, wanted(&["USER_WRITE"])).await.error(403, "MISSING_PRIVILEGE");
    narrow.post(ME, wanted(&["TENANT_READ"])).await.expect(201);
    whole.post(&rotate, json!({})).await.expect(200);
}

async fn a_renamed_privilege_is_a_new_one_to_those_who_have_it(app: TestApp) {
    let made = app.key().post("/account/role/privilege", json!({ "key": "SEE" })).await.expect(200).text("/id");
    let path = format!("/account/role/privilege/{made}");
    let weak = token(&app, &["APP_WRITE", "SEE"]).await;
    weak.put(&path, json!({ "key": "REFUND" })).await.error(403, "MISSING_PRIVILEGE");
    weak.put(&path, json!({ "key": "SEE", "description": "Look" })).await.expect(200);
    app.key().put(&path, json!({ "key": "REFUND" })).await.expect(200);
}

async fn a_restricted_key_gives_what_it_holds(app: TestApp) {
    let acme = app.workspace("acme").await;
    let new = |privileges: &[&str]| json!({ "name": "x", "privileges": privileges, "tenantUserId": acme.owner["id"] });
    let key = app.key_with(&["TENANT_WRITE"]).await.in_workspace(acme.id);
    key.post(WORKSPACE, new(&["USER_WRITE"])).await.error(403, "MISSING_PRIVILEGE");
    key.post(WORKSPACE, new(&["TENANT_WRITE"])).await.expect(201);
    let key = app.key_with(&["APP_WRITE"]).await;
    key.post(APP, new(&["APP_WRITE", "APP_DELETE"])).await.error(403, "MISSING_PRIVILEGE");
    let key = app.key_with(&["USER_WRITE"]).await.in_workspace(acme.id);
    let admin = json!({ "username": "bob@acme.example", "role": "ADMIN" });
    key.post("/account/tenant/user", admin.clone()).await.error(403, "FORBIDDEN");
    // Opting in to what is destructive restricts nothing.
    let key = app.key_with(&["TENANT_DELETE"]).await;
    key.post(APP, new(&["APP_DELETE"])).await.expect(201);
    key.in_workspace(acme.id).post("/account/tenant/user", admin).await.expect(201);
}

async fn nobody_becomes_a_person_whose_role_they_could_not_give(app: TestApp) {
    let (acme, other) = (app.workspace("acme").await, app.workspace("other").await);
    let weak = token(&app, &["USER_READ", "USER_WRITE"]).await.in_workspace(acme.id);
    let (bob, eve) = (acme.add("bob@acme.example", "MEMBER").await, acme.add("eve@acme.example", "MEMBER").await);
    other.add("eve@acme.example", "OWNER").await;
    let (link, factors) = (
        |member: &Value| format!("{}/passwordLink", acme.path_of(member)),
        |member: &Value| format!("{}/mfa", acme.path_of(member)),
    );
    for owner in [&acme.owner, &eve] {
        weak.get(&link(owner)).await.error(403, "FORBIDDEN");
        weak.delete(&factors(owner)).await.error(403, "FORBIDDEN");
        acme.key().get(&link(owner)).await.expect(200);
        acme.key().delete(&factors(owner)).await.expect(200);
    }
    weak.get(&link(&bob)).await.expect(200);
    weak.delete(&factors(&bob)).await.expect(200);
    // In its own workspace a token may help whom it could have made.
    let own = acme.token(&["USER_WRITE"]).await;
    own.delete(&factors(&bob)).await.expect(200);
    own.delete(&factors(&acme.owner)).await.error(403, "FORBIDDEN");
}

fn wanted(privileges: &[&str]) -> Value {
    json!({ "name": "Child", "privileges": privileges })
}

async fn what_a_token_made_ends_with_it(app: TestApp) {
    let made = app_token(&app, &POWER).await;
    let parent = bearer_of(&app, &made);
    let child = bearer_of(&app, &parent.post(APP, wanted(&POWER)).await.expect(201));
    let acme = app.workspace("acme").await;
    let mut in_acme = wanted(&["TENANT_READ", "TENANT_WRITE"]);
    in_acme["tenantUserId"] = acme.owner["id"].clone();
    let grandchild = bearer_of(&app, &child.in_workspace(acme.id).post(WORKSPACE, in_acme).await.expect(201));
    let stranger = token(&app, &["APP_READ"]).await;
    grandchild.get("/account/tenant").await.expect(200);
    app.key().delete(&format!("{APP}/{}", made.text("/record/id"))).await.expect(200);
    for gone in [&parent, &child, &grandchild] {
        gone.get("/account/tenant").await.error(401, "INVALID_CREDENTIAL");
    }
    stranger.get("/account/app").await.expect(200);
    assert_eq!(app.key().get(APP).await.expect(200).json().as_array().map(Vec::len), Some(1));
}

async fn what_a_token_made_expires_no_later(app: TestApp) {
    let at = app.now().plus(Duration::from_secs(300));
    let mut short = wanted(&POWER);
    short["expireAt"] = json!(at);
    let parent = bearer_of(&app, &app.key().post(APP, short.clone()).await.expect(201));
    let lasting = parent.post(APP, wanted(&["APP_READ"])).await.expect(201);
    assert_eq!(lasting.at("/record/expireAt"), json!(at));
    short["expireAt"] = json!(at.plus(Duration::from_secs(60)));
    assert_eq!(parent.post(APP, short.clone()).await.expect(201).at("/record/expireAt"), json!(at));
    short["expireAt"] = json!(at.minus(Duration::from_secs(60)));
    assert_eq!(parent.post(APP, short.clone()).await.expect(201).at("/record/expireAt"), short["expireAt"]);
    app.advance(Duration::from_secs(301)).await;
    bearer_of(&app, &lasting).get("/account/app").await.error(401, "INVALID_CREDENTIAL");
}

async fn what_a_token_made_goes_with_its_secret(app: TestApp) {
    let secrets = format!("/admin/apps/{}/secrets", app.app_id());
    let first = app.operator().get(&secrets).await.expect(200).text("/0/id");
    let parent = token(&app, &["APP_READ", "APP_WRITE"]).await;
    app.operator().post(&format!("{secrets}/rotate"), json!({})).await.expect(201);
    let child = bearer_of(&app, &parent.post(APP, wanted(&["APP_READ"])).await.expect(201));
    child.get("/account/app").await.expect(200);
    app.operator().delete(&format!("{secrets}/{first}")).await.expect(200);
    child.get("/account/app").await.error(401, "INVALID_CREDENTIAL");
}

async fn what_a_member_made_ends_with_them(app: TestApp) {
    let acme = app.workspace("acme").await;
    for ending in ["removed", "disabled"] {
        let admin = acme.add(&format!("{ending}@acme.example"), "ADMIN").await;
        let caller = app.user(&admin);
        let own = bearer_of(&app, &caller.post(ME, wanted(&["TENANT_READ", "TENANT_WRITE"])).await.expect(201));
        let mut in_name = wanted(&["TENANT_READ"]);
        in_name["tenantUserId"] = admin["id"].clone();
        let by_key = bearer_of(&app, &acme.key().post(WORKSPACE, in_name.clone()).await.expect(201));
        in_name["tenantUserId"] = acme.owner["id"].clone();
        let by_token = bearer_of(&app, &own.post(WORKSPACE, in_name).await.expect(201));
        let path = acme.path_of(&admin);
        acme.key().put(&path, json!({ "teams": ["red"], "onboarded": true })).await.expect(200);
        by_key.get("/account/tenant").await.expect(200);
        match ending {
            "removed" => acme.key().delete(&path).await.expect(200),
            _ => acme.key().put(&path, json!({ "enabled": false })).await.expect(200),
        };
        for gone in [own, by_key, by_token] {
            gone.get("/account/tenant").await.error(401, "INVALID_CREDENTIAL");
        }
    }
    let lasting = acme.token(&["TENANT_READ"]).await;
    lasting.get("/account/tenant").await.expect(200);
}

async fn tokens_say_who_made_them(app: TestApp) {
    let acme = app.workspace("acme").await;
    let key = app.key_with(&["APP_READ", "APP_WRITE", "TENANT_READ", "TENANT_WRITE"]).await;
    let made = key.post(APP, wanted(&["APP_WRITE", "TENANT_WRITE"])).await.expect(201);
    assert_eq!(made.at("/record/createdBy"), json!({ "type": "app_key", "id": key.key_id() }));
    let child = bearer_of(&app, &made).post(APP, wanted(&["APP_WRITE"])).await.expect(201);
    assert_eq!(child.at("/record/createdBy"), json!({ "type": "api_token", "id": made.at("/record/id") }));
    let by_owner = acme.owner().post(ME, wanted(&["TENANT_READ"])).await.expect(201);
    let owner = json!({ "type": "member", "id": acme.owner["id"] });
    assert_eq!(by_owner.at("/record/createdBy"), owner);
    let mut in_name = wanted(&["TENANT_READ"]);
    in_name["tenantUserId"] = acme.owner["userId"].clone();
    let by_key = acme.key().post(WORKSPACE, in_name).await.expect(201);
    assert_eq!(by_key.at("/record/createdBy"), owner);
    assert_eq!(acme.key().get(WORKSPACE).await.expect(200).at("/0/createdBy"), owner);
}

async fn no_child_survives_a_revocation_under_way(app: TestApp) {
    for _ in 0..4 {
        let made = app_token(&app, &["APP_READ", "APP_WRITE"]).await;
        let parent = bearer_of(&app, &made);
        let bodies = wanted(&["APP_READ"]);
        let children = join_all((0..6).map(|_| parent.post(APP, bodies.clone())));
        let path = format!("{APP}/{}", made.text("/record/id"));
        let key = app.key();
        let (children, revoked) = join(children, key.delete(&path)).await;
        revoked.expect(200);
        for child in children.iter().filter(|child| child.status() == 201) {
            bearer_of(&app, child).get("/account/app").await.error(401, "INVALID_CREDENTIAL");
        }
    }
}

async fn no_token_survives_a_removal_under_way(app: TestApp) {
    let acme = app.workspace("acme").await;
    for round in 0..4 {
        let admin = acme.add(&format!("{round}@acme.example"), "ADMIN").await;
        let caller = app.user(&admin);
        let body = wanted(&["TENANT_READ"]);
        let made = join_all((0..6).map(|_| caller.post(ME, body.clone())));
        let (key, path) = (acme.key(), acme.path_of(&admin));
        let (made, removed) = join(made, key.delete(&path)).await;
        removed.expect(200);
        for token in made.iter().filter(|made| made.status() == 201) {
            bearer_of(&app, token).get("/account/tenant").await.error(401, "INVALID_CREDENTIAL");
        }
    }
}
