//! `/account/app/userParameters`, and `parameters` of workspace users.

use serde_json::{Map, Value, json};
use testkit::{
    Caller, TestApp,
    api_tokens::{bearer_of, workspace_token},
    on_both_engines,
};

on_both_engines!(
    parameters_are_kept_and_replaced_whole,
    a_defined_parameter_has_its_type,
    what_is_the_apps_alone_only_the_app_changes,
    definitions_are_read_and_replaced,
    claims_are_in_id_tokens_and_userinfo,
    flag_rules_read_parameters,
    parameters_are_imported,
);

const DEFINITIONS: &str = "/account/app/userParameters";

fn definition(key: &str, kind: &str, editable_by: &str, claim: bool) -> Value {
    json!({ "key": key, "type": kind, "label": key, "editableBy": editable_by, "claim": claim })
}

async fn define(app: &TestApp, definitions: Value) {
    app.key().put(DEFINITIONS, definitions).await.expect(200);
}

/// A workspace's key, and somebody in it.
async fn somebody(app: &TestApp, parameters: Value) -> (Caller, String) {
    let workspace = app.workspace("acme").await;
    let caller = app.key().in_workspace(workspace.id);
    let body = json!({ "username": "bob@example.com", "muteNotifications": true, "parameters": parameters });
    let made = caller.post("/account/tenant/user", body).await.expect(201);
    (caller, format!("/account/tenant/user/{}", made.text("/id")))
}

async fn parameters_are_kept_and_replaced_whole(app: TestApp) {
    let given = json!({ "seat": "window", "row": 7.5, "vip": true, "note": null });
    let (caller, bob) = somebody(&app, given.clone()).await;
    assert_eq!(caller.get(&bob).await.expect(200).at("/parameters"), given);
    caller.put(&bob, json!({ "firstName": "Bob" })).await.expect(200);
    assert_eq!(caller.get(&bob).await.expect(200).at("/parameters"), given);
    let put = caller.put(&bob, json!({ "parameters": { "seat": "aisle" } })).await.expect(200);
    assert_eq!(put.at("/parameters"), json!({ "seat": "aisle" }));
    assert_eq!(caller.put(&bob, json!({ "parameters": null })).await.expect(200).at("/parameters"), json!({}));
    let many: Map<String, Value> = (0..65).map(|number| (format!("k{number}"), json!(1))).collect();
    for wrong in [json!([]), json!({ "a": [] }), json!({ "a": {} }), json!({ "a": "x".repeat(17_000) }), json!(many)] {
        caller.put(&bob, json!({ "parameters": wrong })).await.error(400, "VALIDATION_FAILED");
    }
}

async fn a_defined_parameter_has_its_type(app: TestApp) {
    let kinds = json!([
        definition("text", "string", "app", false),
        definition("count", "number", "app", false),
        definition("sure", "boolean", "app", false),
    ]);
    define(&app, kinds).await;
    let (caller, bob) = somebody(&app, json!({ "text": "a", "count": 1, "sure": false, "other": 3 })).await;
    let wrong = json!({ "parameters": { "text": 1, "count": "1", "sure": "no", "other": true } });
    caller.put(&bob, wrong).await.refuses(&["parameters.text", "parameters.count", "parameters.sure"]);
    caller.put(&bob, json!({ "parameters": { "text": null } })).await.expect(200);
    let new = json!({ "username": "eve@example.com", "parameters": { "count": "1" } });
    caller.post("/account/tenant/user", new).await.refuses(&["parameters.count"]);
}

async fn what_is_the_apps_alone_only_the_app_changes(app: TestApp) {
    define(&app, json!([definition("tier", "number", "app", false), definition("desk", "string", "owner", false)]))
        .await;
    let workspace = app.workspace("acme").await;
    let caller = app.key().in_workspace(workspace.id);
    let body = json!({ "username": "bob@example.com", "muteNotifications": true, "parameters": { "tier": 1 } });
    let bob =
        format!("/account/tenant/user/{}", caller.post("/account/tenant/user", body).await.expect(201).text("/id"));
    let scoped =
        workspace_token(&app, workspace.id, &["USER_READ", "USER_WRITE", "AUTHENTICATED", "TENANT_READ"]).await;
    let scoped = bearer_of(&app, &scoped);
    scoped.put(&bob, json!({ "parameters": { "tier": 2 } })).await.error(403, "FORBIDDEN");
    scoped.put(&bob, json!({ "parameters": { "desk": "7" } })).await.error(403, "FORBIDDEN");
    scoped.put(&bob, json!({ "parameters": { "tier": 1, "desk": "7", "free": 1 } })).await.expect(200);
    let invited = json!({ "username": "eve@example.com", "parameters": { "tier": 3 } });
    scoped.post("/account/tenant/user", invited).await.error(403, "FORBIDDEN");
    let invited = json!({ "username": "eve@example.com", "parameters": { "desk": "8" } });
    let eve = scoped.post("/account/tenant/user", invited).await.expect(201);
    assert_eq!((eve.at("/status"), eve.at("/parameters")), (json!("invited"), json!({ "desk": "8" })));
    let eve = format!("/account/tenant/user/{}", eve.text("/id"));
    scoped.put(&eve, json!({ "parameters": { "tier": 3 } })).await.error(403, "FORBIDDEN");
    assert_eq!(scoped.put(&eve, json!({ "parameters": {} })).await.expect(200).at("/parameters"), json!({}));
}

async fn definitions_are_read_and_replaced(app: TestApp) {
    assert_eq!(app.key().get(DEFINITIONS).await.expect(200).json(), json!([]));
    let given = json!([definition("a", "string", "user", true)]);
    assert_eq!(app.key().put(DEFINITIONS, given.clone()).await.expect(200).json(), given);
    assert_eq!(app.key().get(DEFINITIONS).await.expect(200).json(), given);
    let least = app.key().put(DEFINITIONS, json!([{ "key": "b", "type": "number" }])).await.expect(200);
    let expected = json!([{ "key": "b", "type": "number", "label": "", "editableBy": "app", "claim": false }]);
    assert_eq!(least.json(), expected);
    let twice = json!([{ "key": "b", "type": "number" }, { "key": "b", "type": "string" }]);
    app.key().put(DEFINITIONS, twice).await.refuses(&["[1].key"]);
    app.key().put(DEFINITIONS, json!([{ "key": "b", "type": "date" }])).await.refuses(&["[0].type"]);
    app.key().put(DEFINITIONS, json!({})).await.error(400, "VALIDATION_FAILED");
    assert_eq!(app.other_app().await.get(DEFINITIONS).await.expect(200).json(), json!([]));
}

async fn claims_are_in_id_tokens_and_userinfo(app: TestApp) {
    define(&app, json!([definition("tier", "number", "app", true), definition("secret", "string", "app", false)]))
        .await;
    let person = app.owner("ada@example.com").await;
    let caller = app.key().in_workspace(person.tenant);
    let own = format!("/account/tenant/user/{}", person.member);
    caller.put(&own, json!({ "parameters": { "tier": 3, "secret": "x", "other": 1 } })).await.expect(200);
    let session = person.log_in().await.expect(200).text("/session");
    let tokens = person.exchange(&session).await.expect(200);
    assert_eq!(tokens.at("/user_profile/parameters"), json!({ "tier": 3 }));
    let told = person.signed_in().await.get("/auth/userinfo").await.expect(200);
    assert_eq!(told.at("/parameters"), json!({ "tier": 3 }));
    define(&app, json!([])).await;
    let told = person.signed_in().await.get("/auth/userinfo").await.expect(200);
    assert_eq!(told.json().get("parameters"), None);
}

async fn flag_rules_read_parameters(app: TestApp) {
    let person = app.owner("ada@example.com").await;
    let id = app.app_id();
    let condition = json!({ "attribute": "user.parameters.tier", "operator": "gt", "values": [2] });
    let rule = json!({ "branches": [{ "conditions": [condition], "returnValue": true }], "otherwiseValue": false });
    let flag = json!({ "key": "lounge", "state": "on-with-rule", "rule": rule });
    app.operator().post(&format!("/admin/apps/{id}/flags"), flag).await.expect(201);
    let token = person.sign_in().await.access;
    let own = format!("/account/tenant/user/{}", person.member);
    for (parameters, value) in [(json!({ "tier": 3 }), true), (json!({ "tier": 2 }), false), (json!({}), false)] {
        app.key().in_workspace(person.tenant).put(&own, json!({ "parameters": parameters })).await.expect(200);
        let asked = json!({ "accessToken": token, "user": { "parameters": { "tier": 9 } } });
        let answer = app.anon().post(&format!("/cloud-views/flags/evaluate/{id}/lounge"), asked).await.expect(200);
        assert_eq!(answer.at("/value"), value, "{parameters}");
    }
}

async fn parameters_are_imported(app: TestApp) {
    define(&app, json!([definition("tier", "number", "app", false)])).await;
    let user = |tier: Value| json!({ "username": "bob@example.com", "parameters": { "tier": tier, "old": "id7" } });
    let batch =
        |tier: Value| json!([{ "tenant": { "owner": { "username": "ada@example.com" } }, "users": [user(tier)] }]);
    let refused = app.key().post("/account/import/tenants", batch(json!("3"))).await.expect(200);
    assert_eq!(refused.at("/import/errors"), json!(["[0].users[0].parameters.tier: must be a number"]));
    app.key().post("/account/import/tenants", batch(json!(3))).await.expect(200);
    app.drain().await;
    let tenant = app.key().get("/account/tenant").await.expect(200).text("/0/id");
    let users = app.key().header("x-tenant-id", &tenant).get("/account/tenant/user").await.expect(200).json();
    let bob = users.as_array().expect("a list").iter().find(|user| user["email"] == "bob@example.com").expect("bob");
    assert_eq!(bob["parameters"], json!({ "tier": 3, "old": "id7" }));
}
