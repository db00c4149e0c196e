//! A workspace's directory: `Authorization: Bearer <SCIM token>`. Nothing else opens the routes that take it.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use kernel::{Actor, AppId, Author, Authored, Code, Error, Result, TenantId};
use web::{Access, Describe, Failure, Operation, Scope};

use super::operator::bearer;
use crate::{
    App, Authority, Tenancy,
    scim_tokens::{self, ScimTokenRecord},
};

/// A SCIM token that was checked for this request.
pub struct ScimCaller {
    pub app: Arc<App>,
    record: ScimTokenRecord,
    scope: Arc<Scope>,
}

impl ScimCaller {
    pub fn app_id(&self) -> AppId {
        self.app.id
    }

    pub fn tenant(&self) -> TenantId {
        self.record.tenant_id
    }

    pub fn authority(&self) -> Authority {
        self.record.authority()
    }
}

impl Authored for ScimCaller {
    fn author(&self) -> Author {
        self.scope.author(Actor::scim(self.record.id))
    }
}

impl<S: AsRef<Tenancy> + Send + Sync> FromRequestParts<S> for ScimCaller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let (tenancy, scope) = (state.as_ref(), Scope::of(&parts.extensions));
        let Some(presented) = bearer(parts) else {
            let message = "Send a SCIM token as Authorization: Bearer <token>.";
            return Err(Error::new(Code::Unauthenticated, message).into());
        };
        let record = match scim_tokens::find(tenancy, presented).await {
            Ok(record) => record,
            Err(error) => {
                if error.code() == Code::InvalidCredential {
                    scope.key_refused()?;
                }
                return Err(error.into());
            }
        };
        let app = tenancy.apps.find(record.app).await?;
        let app = app.ok_or_else(|| Error::credential("The SCIM token's app no longer exists."))?;
        scope.caller_of(app.id)?;
        scope.set_tenant(record.tenant_id);
        Ok(Self { app, record, scope })
    }
}

impl Describe for ScimCaller {
    fn describe(operation: &mut Operation) {
        operation.access(Access::Scim);
    }
}
