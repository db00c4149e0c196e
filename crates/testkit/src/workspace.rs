//! A workspace and the people in it.

use kernel::{MemberId, TenantId, UserId};
use serde_json::{Value, json};
use tenancy::callers::privileges::BUILT_IN;

use crate::{Caller, TestApp};

/// A workspace of the first app. Nobody in it was sent a mail.
#[derive(Clone)]
pub struct Workspace {
    app: TestApp,
    pub id: TenantId,
    /// The first owner, as the service shows members.
    pub owner: Value,
}

impl TestApp {
    /// Makes a workspace whose owner is `owner@<name>.example`.
    pub async fn workspace(&self, name: &str) -> Workspace {
        let owner = json!({ "email": format!("owner@{name}.example"), "firstName": "Olive", "lastName": "Owner" });
        let body = json!({ "owner": owner, "name": name, "muteNotifications": true });
        let made = self.key().post("/account/tenant", body).await.expect(200);
        let id: TenantId = made.id("/id");
        let members = self.key().in_workspace(id).get("/account/tenant/user").await.expect(200);
        Workspace { app: self.clone(), id, owner: members.at("/0") }
    }

    /// A member of the first app, signed in with every privilege that their role grants.
    pub fn user(&self, member: &Value) -> Caller {
        let text = |pointer: &str| member.pointer(pointer).and_then(Value::as_str).expect("a member has ids");
        let user = text("/userId").parse().expect("the id of a person");
        let tenant = text("/tenant/id").parse().expect("the id of a workspace");
        self.signed_in(user, tenant)
    }

    /// A person signed in to a workspace, with every privilege that their role grants.
    pub fn signed_in(&self, user: UserId, tenant: TenantId) -> Caller {
        let service = self.service();
        let core = service.core();
        let now = core.db.clock().now().as_seconds();
        let scope: Vec<&str> = BUILT_IN.iter().map(|privilege| privilege.key).collect();
        let claims = json!({
            "iss": *core.tenancy.issuer, "sub": user, "aid": self.app_id(), "tid": tenant, "scope": scope.join(" "),
            "iat": now, "exp": now + 3600,
        });
        let token = core.signing_keys.sign("at+jwt", &claims).expect("an access token can be signed");
        self.anon().with_access_token(self.app_id(), &token)
    }
}

impl Workspace {
    /// The app's key, acting in this workspace.
    pub fn key(&self) -> Caller {
        self.app.key().in_workspace(self.id)
    }

    /// The first owner, signed in.
    pub fn owner(&self) -> Caller {
        self.app.user(&self.owner)
    }

    /// Adds a member without a mail; as the service shows them.
    pub async fn add(&self, email: &str, role: &str) -> Value {
        let body = json!({ "username": email, "role": role, "muteNotifications": true });
        self.key().post("/account/tenant/user", body).await.expect(201).json()
    }

    /// An API token that acts in this workspace only.
    pub async fn token(&self, privileges: &[&str]) -> Caller {
        let body = json!({ "name": "Test", "privileges": privileges, "tenantUserId": self.owner["id"] });
        let made = self.key().post("/account/api-token/workspace", body).await.expect(201);
        self.app.anon().with_api_key(self.app.app_id(), &made.text("/token"))
    }

    /// The path of one of its members.
    pub fn path_of(&self, member: &Value) -> String {
        let id: MemberId = member["id"].as_str().and_then(|id| id.parse().ok()).expect("a member has an id");
        format!("/account/tenant/user/{id}")
    }
}
