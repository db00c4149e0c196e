//! `/account/scim/token`: the tokens of directories.

use std::time::Duration;

use serde_json::json;
use testkit::{DirectoryCaller, TestApp, facts::told, on_both_engines};

on_both_engines!(
    a_token_is_shown_once_and_opens_scim_alone,
    a_token_ends_with_its_time_its_maker_and_its_revocation,
    tokens_belong_to_their_workspace,
    what_makes_no_token_is_refused,
);

const TOKENS: &str = "/account/scim/token";

async fn a_token_is_shown_once_and_opens_scim_alone(app: TestApp) {
    let acme = app.workspace("acme").await;
    let made = acme.key().post(TOKENS, json!({ "name": " Entra " })).await.expect(201);
    let token = made.text("/token");
    let random = token.strip_prefix("scim_").expect("its beginning");
    assert!(random.len() == 43 && random.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{token}");
    let record = made.at("/record");
    assert_eq!((record["name"].as_str(), record["tenantId"].as_str()), (Some("Entra"), Some(&*acme.id.to_string())));
    assert_eq!((&record["expireAt"], &record["createdBy"]["type"]), (&json!(null), &json!("app_key")));
    let listed = acme.key().get(TOKENS).await.expect(200);
    assert_eq!(listed.json(), json!([record]));
    assert!(!listed.body().contains(random));
    let bearer = app.anon().header("authorization", &format!("Bearer {token}"));
    bearer.get("/scim/v2/Users").await.expect(200);
    assert!(acme.key().get(TOKENS).await.expect(200).at("/0/lastUsedAt").is_string());
    // Of nothing else: neither as a bearer nor as a key.
    bearer.get("/auth/userinfo").await.error(401, "INVALID_CREDENTIAL");
    bearer.get("/admin/apps").await.error(401, "INVALID_CREDENTIAL");
    app.anon().header("x-api-key", &token).get("/account/app").await.error(401, "INVALID_CREDENTIAL");
    let kinds: Vec<String> = told(&app, "scim_token.").await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["scim_token.created"]);
}

async fn a_token_ends_with_its_time_its_maker_and_its_revocation(app: TestApp) {
    let acme = app.workspace("acme").await;
    let maker = acme.token(&["TENANT_READ", "TENANT_WRITE"]).await;
    let child = DirectoryCaller::made_by(&maker).await;
    child.get("/Users").await.expect(200);
    let record = acme.key().get(TOKENS).await.expect(200).at("/0");
    assert_eq!(record["createdBy"]["type"], "api_token");
    let id = acme.key().get("/account/api-token/workspace").await.expect(200).text("/0/id");
    acme.key().delete(&format!("/account/api-token/workspace/{id}")).await.expect(200);
    child.get("/Users").await.scim_error(401, "");
    assert_eq!(acme.key().get(TOKENS).await.expect(200).json(), json!([]));

    let at = app.now().plus(Duration::from_secs(60));
    let made = acme.key().post(TOKENS, json!({ "name": "t", "expireAt": at })).await.expect(201);
    let brief = app.anon().header("authorization", &format!("Bearer {}", made.text("/token")));
    brief.get("/scim/v2/Users").await.expect(200);
    app.advance(Duration::from_secs(61)).await;
    brief.get("/scim/v2/Users").await.scim_error(401, "");

    let revoked = acme.directory().await;
    let path = format!("{TOKENS}/{}", revoked.token_id);
    acme.key().delete(&path).await.expect(200);
    revoked.get("/Users").await.scim_error(401, "");
    acme.key().delete(&path).await.error(404, "NOT_FOUND");
    assert_eq!(told(&app, "scim_token.revoked").await.len(), 1);
}

async fn tokens_belong_to_their_workspace(app: TestApp) {
    let (acme, bolt) = (app.workspace("acme").await, app.workspace("bolt").await);
    let directory = acme.directory().await;
    bolt.key().delete(&format!("{TOKENS}/{}", directory.token_id)).await.error(404, "NOT_FOUND");
    assert_eq!(bolt.key().get(TOKENS).await.expect(200).json(), json!([]));
    // The whole app cannot be provisioned, and a deleted workspace takes its tokens along.
    app.key().post(TOKENS, json!({ "name": "t" })).await.error(400, "MISSING_HEADER");
    app.key_with(&["TENANT_DELETE"]).await.delete(&format!("/account/tenant/{}", acme.id)).await.expect(200);
    directory.get("/Users").await.scim_error(401, "");
}

async fn what_makes_no_token_is_refused(app: TestApp) {
    let acme = app.workspace("acme").await;
    acme.key().post(TOKENS, json!({})).await.refuses(&["name"]);
    acme.key().post(TOKENS, json!({ "name": "t", "expireAt": "2001-01-01T00:00:00Z" })).await.refuses(&["expireAt"]);
    let reader = acme.token(&["TENANT_READ"]).await;
    reader.post(TOKENS, json!({ "name": "t" })).await.error(403, "MISSING_PRIVILEGE");
    reader.get(TOKENS).await.expect(200);
}
