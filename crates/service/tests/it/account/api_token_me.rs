//! `/account/api-token/me/app`: tokens by signed-in users.

use serde_json::{Value, json};
use testkit::{
    TestApp,
    api_tokens::{app_token, bearer_of, workspace_token},
    assert_body,
    members::{member, set_profile, workspace},
    on_both_engines,
};

on_both_engines!(
    an_owner_makes_lists_and_revokes_tokens_of_the_workspace,
    a_member_sees_but_does_not_change,
    nobody_grants_beyond_their_own,
    the_available_privileges_are_those_that_can_be_granted,
    members_of_the_operator_workspace_act_for_the_whole_app,
    a_user_token_is_no_key_and_a_token_no_user,
    a_demoted_owner_can_no_longer_create,
);

const ME: &str = "/account/api-token/me/app";

fn body(privileges: &[&str]) -> Value {
    json!({ "name": "Mine", "privileges": privileges })
}

async fn an_owner_makes_lists_and_revokes_tokens_of_the_workspace(app: TestApp) {
    let tenant = workspace(&app).await;
    let elsewhere = workspace_token(&app, workspace(&app).await, &["TENANT_READ"]).await;
    let of_app = app_token(&app, &["APP_READ"]).await;
    for role in ["OWNER", "ADMIN"] {
        let caller = member(&app, tenant, role).await.signed_in(&app);
        let made = caller.post(ME, body(&["TENANT_READ"])).await.expect(201);
        assert_eq!(made.at("/record/tenantId"), tenant.to_string());
        bearer_of(&app, &made).get("/account/api-token/workspace").await.expect(200);
        assert_eq!(caller.get(ME).await.expect(200).at("/0/id"), made.at("/record/id"));
        for other in [&elsewhere, &of_app] {
            caller.delete(&format!("{ME}/{}", other.text("/record/id"))).await.error(404, "NOT_FOUND");
        }
        let gone = caller.delete(&format!("{ME}/{}", made.text("/record/id"))).await.expect(200);
        assert_eq!(gone.json(), json!({ "success": true }));
        bearer_of(&app, &made).get("/account/api-token/workspace").await.error(401, "INVALID_CREDENTIAL");
        assert_eq!(caller.get(ME).await.json(), json!([]));
    }
}

async fn a_member_sees_but_does_not_change(app: TestApp) {
    let tenant = workspace(&app).await;
    let made = workspace_token(&app, tenant, &["TENANT_READ"]).await;
    let caller = member(&app, tenant, "MEMBER").await.signed_in(&app);
    assert_eq!(caller.get(ME).await.expect(200).json(), json!([made.at("/record")]));
    caller.get(&format!("{ME}/available-privileges")).await.expect(200);
    caller.post(ME, body(&["TENANT_READ"])).await.error(403, "FORBIDDEN");
    caller.delete(&format!("{ME}/{}", made.text("/record/id"))).await.error(403, "FORBIDDEN");
    app.anon().get(ME).await.error(401, "UNAUTHENTICATED");
}

async fn nobody_grants_beyond_their_own(app: TestApp) {
    let owner = member(&app, workspace(&app).await, "OWNER").await;
    owner.signed_in(&app).post(ME, body(&["APP_DELETE"])).await.error(403, "MISSING_PRIVILEGE");
    owner.signed_in(&app).post(ME, body(&["FLY"])).await.refuses(&["privileges[0]"]);
    owner.signed_in(&app).post(ME, body(&["TENANT_DELETE"])).await.expect(201);
    let narrowed = owner.signed_in_with(&app, "TENANT_READ");
    narrowed.post(ME, body(&["TENANT_READ"])).await.expect(201);
    narrowed.post(ME, body(&["TENANT_READ", "TENANT_WRITE"])).await.error(403, "MISSING_PRIVILEGE");
}

async fn the_available_privileges_are_those_that_can_be_granted(app: TestApp) {
    let tenant = workspace(&app).await;
    let path = format!("{ME}/available-privileges");
    let answer = member(&app, tenant, "MEMBER").await.signed_in(&app).get(&path).await.expect(200);
    assert_body!(answer, @r#"
    [
      {
        "description": "Is signed in",
        "key": "AUTHENTICATED"
      },
      {
        "description": "See the members of a workspace",
        "key": "USER_READ"
      },
      {
        "description": "See workspaces and their billing",
        "key": "TENANT_READ"
      }
    ]
    "#);
    let owner = member(&app, tenant, "OWNER").await.signed_in(&app);
    assert_eq!(owner.get(&path).await.json().as_array().map(Vec::len), Some(8));
    set_profile(&app, json!({ "allowedTokenPrivileges": ["TENANT_READ", "APP_DELETE"] })).await;
    let left = owner.get(&path).await;
    assert_eq!(left.at("/0/key"), "TENANT_READ");
    assert_eq!(left.json().as_array().map(Vec::len), Some(1));
}

async fn members_of_the_operator_workspace_act_for_the_whole_app(app: TestApp) {
    let (operators, customers) = (workspace(&app).await, workspace(&app).await);
    set_profile(&app, json!({ "operatorTenantId": operators })).await;
    let of_customer = workspace_token(&app, customers, &["TENANT_READ"]).await;
    let admin = member(&app, operators, "ADMIN").await.signed_in(&app);
    let made = admin.post(ME, body(&["APP_READ"])).await.expect(201);
    assert_eq!(made.at("/record/tenantId"), Value::Null);
    bearer_of(&app, &made).get("/account/app").await.expect(200);
    assert_eq!(admin.get(ME).await.json(), json!([made.at("/record"), of_customer.at("/record")]));
    let customer = member(&app, customers, "OWNER").await.signed_in(&app);
    assert_eq!(customer.get(ME).await.json(), json!([of_customer.at("/record")]));
    customer.delete(&format!("{ME}/{}", made.text("/record/id"))).await.error(404, "NOT_FOUND");
    admin.delete(&format!("{ME}/{}", of_customer.text("/record/id"))).await.expect(200);
}

async fn a_user_token_is_no_key_and_a_token_no_user(app: TestApp) {
    let owner = member(&app, workspace(&app).await, "OWNER").await;
    let access = owner.access_token(&app, "APP_READ TENANT_READ");
    app.anon().header("x-api-key", &access).get("/account/app").await.error(401, "INVALID_CREDENTIAL");
    let token = app_token(&app, &["APP_READ"]).await.text("/token");
    app.anon().with_operator_key(&token).get(ME).await.error(401, "INVALID_CREDENTIAL");
}

async fn a_demoted_owner_can_no_longer_create(app: TestApp) {
    let owner = member(&app, workspace(&app).await, "OWNER").await;
    let caller = owner.signed_in(&app);
    caller.post(ME, body(&["TENANT_WRITE"])).await.expect(201);
    let (db, id, member) = (app.service().core().db.clone(), app.app_id(), owner.member);
    let demoted = db.write(move |tx| {
        tx.exec(
            "UPDATE members SET role_id = (SELECT id FROM roles WHERE app_id = $1 AND key = 'ADMIN') WHERE id = $2",
            &store::args![id, member],
        )
    });
    demoted.await.expect("a role can be changed");
    caller.post(ME, body(&["TENANT_DELETE"])).await.error(403, "MISSING_PRIVILEGE");
    caller.post(ME, body(&["TENANT_WRITE"])).await.expect(201);
}
