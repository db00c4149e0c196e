//! A workspace's directory, which provisions its people by SCIM.

use http::Method;
use serde_json::{Value, json};

use crate::{Answer, Caller, Workspace};

/// Whoever holds a SCIM token of a workspace.
#[derive(Clone)]
pub struct DirectoryCaller {
    pub caller: Caller,
    /// The id of the token's record.
    pub token_id: String,
}

impl Workspace {
    /// A directory whose token was made by a key of the whole app.
    pub async fn directory(&self) -> DirectoryCaller {
        DirectoryCaller::made_by(&self.key()).await
    }
}

impl DirectoryCaller {
    pub async fn made_by(maker: &Caller) -> Self {
        let made = maker.post("/account/scim/token", json!({ "name": "Directory" })).await.expect(201);
        let caller = maker.without_headers().header("authorization", &format!("Bearer {}", made.text("/token")));
        Self { caller, token_id: made.text("/record/id") }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.caller.get(&format!("/scim/v2{path}")).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.caller.post(&format!("/scim/v2{path}"), body).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.caller.put(&format!("/scim/v2{path}"), body).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.caller.delete(&format!("/scim/v2{path}")).await
    }

    /// A patch with these operations.
    pub async fn patch(&self, path: &str, operations: Value) -> Answer {
        let body = json!({
            "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], "Operations": operations,
        });
        self.caller.call(Method::PATCH, &format!("/scim/v2{path}"), Some(body)).await
    }

    /// Provisions a user with this address; the id.
    pub async fn provision(&self, email: &str) -> String {
        self.post("/Users", json!({ "userName": email })).await.expect(201).text("/id")
    }

    /// Makes a group with these members; the id.
    pub async fn group(&self, name: &str, members: &[&str]) -> String {
        let members: Vec<Value> = members.iter().map(|id| json!({ "value": id })).collect();
        let made = self.post("/Groups", json!({ "displayName": name, "members": members })).await.expect(201);
        made.text("/id")
    }

    /// The addresses of the users that fit a filter, in the order of the list.
    pub async fn find(&self, filter: &str) -> Vec<String> {
        let body = json!({ "filter": filter, "attributes": ["userName"] });
        let found = self.caller.post("/scim/v2/Users/.search", body).await.expect(200).at("/Resources");
        let found = found.as_array().into_iter().flatten();
        found.map(|user| user["userName"].as_str().expect("a name").to_owned()).collect()
    }
}

impl Answer {
    /// The answer must be this failure in SCIM's form; without a keyword, `""`.
    #[track_caller]
    pub fn scim_error(self, status: u16, keyword: &str) -> Self {
        assert_eq!(self.status(), status, "{self:?}");
        let body = self.json();
        assert_eq!(body["schemas"], json!(["urn:ietf:params:scim:api:messages:2.0:Error"]), "{self:?}");
        assert_eq!(body["status"], status.to_string(), "{self:?}");
        assert_eq!(body["scimType"].as_str().unwrap_or_default(), keyword, "{self:?}");
        assert!(body["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/scim+json"), "{self:?}");
        self
    }
}
