//! API tokens.

use kernel::TenantId;
use serde_json::{Value, json};

use crate::{Answer, Caller, TestApp, members::member};

const APP: &str = "/account/api-token/app";
const WORKSPACE: &str = "/account/api-token/workspace";
const INTROSPECT: &str = "/account/api-token/introspect";

/// A caller by the token that was made.
pub fn bearer_of(app: &TestApp, made: &Answer) -> Caller {
    app.anon().with_api_key(app.app_id(), &made.text("/token"))
}

pub async fn app_token(app: &TestApp, privileges: &[&str]) -> Answer {
    app.key().post(APP, json!({ "name": "CI", "privileges": privileges })).await.expect(201)
}

pub async fn workspace_token(app: &TestApp, tenant: TenantId, privileges: &[&str]) -> Answer {
    let owner = member(app, tenant, "OWNER").await;
    let body = json!({ "name": "Sync", "privileges": privileges, "tenantUserId": owner.member });
    app.key().in_workspace(tenant).post(WORKSPACE, body).await.expect(201)
}

pub async fn introspect(app: &TestApp, token: &str) -> Value {
    app.anon().post(INTROSPECT, json!({ "token": token })).await.expect(201).json()
}
