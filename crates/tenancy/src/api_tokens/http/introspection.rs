//! `POST /account/api-token/introspect`: what a token allows, for whoever was presented with one.

use std::sync::Arc;

use kernel::{AppId, Code, Result, TenantId, Timestamp, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::{Created, Routes, State, Valid, Validate};

use crate::{
    Tenancy,
    api_tokens::{ApiTokenId, LiveToken},
};

pub(super) fn routes() -> Routes<Tenancy> {
    Routes::new("API tokens").post("/account/api-token/introspect", introspect, "Introspect an API token").description(
        "Compare `appId` with your own app: a valid token of another app is active too. Anything else answers \
             `{ \"active\": false }` only.",
    )
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct TokenToIntrospect {
    token: Words,
}

impl Validate for TokenToIntrospect {}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Introspection {
    Active(ActiveToken),
    Inactive(InactiveToken),
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ActiveToken {
    #[schemars(extend("const" = true))]
    active: bool,
    /// The token's record.
    sub: ApiTokenId,
    app_id: AppId,
    /// `null` for a token of the whole app.
    tenant_id: Option<TenantId>,
    #[serde(rename = "type")]
    #[schemars(extend("const" = "api"))]
    kind: &'static str,
    /// What it may do now.
    privileges: Arc<[String]>,
    /// Unix seconds; `null` for a token that does not expire.
    exp: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct InactiveToken {
    #[schemars(extend("const" = false))]
    active: bool,
}

impl Introspection {
    fn of(token: &LiveToken) -> Self {
        let record = &token.record;
        Self::Active(ActiveToken {
            active: true,
            sub: record.id,
            app_id: record.app,
            tenant_id: record.tenant_id,
            kind: "api",
            privileges: token.privileges.clone(),
            exp: record.expire_at.map(Timestamp::as_seconds),
        })
    }
}

async fn introspect(
    State(tenancy): State<Tenancy>,
    Valid(presented): Valid<TokenToIntrospect>,
) -> Result<Created<Introspection>> {
    match tenancy.api_tokens.find(&presented.token).await {
        Ok(live) => Ok(Created(Introspection::of(&live))),
        Err(error) if error.code() == Code::InvalidCredential => {
            Ok(Created(Introspection::Inactive(InactiveToken { active: false })))
        }
        Err(error) => Err(error),
    }
}
