//! Callers by `x-api-key`.

use std::{marker::PhantomData, sync::Arc};

use axum::extract::FromRequestParts;
use http::request::Parts;
use kernel::{AppId, Code, Error};
use web::{Access, Describe, Failure, Operation, Scope};

use super::Privilege;
use crate::{App, Tenancy, keys::KeyRecord};

/// An app's key that holds the privilege `P`.
pub struct AppCaller<P> {
    app: Arc<App>,
    key: Arc<KeyRecord>,
    privilege: PhantomData<fn() -> P>,
}

impl<P> AppCaller<P> {
    pub fn app(&self) -> AppId {
        self.app.id
    }

    pub fn key(&self) -> &KeyRecord {
        &self.key
    }
}

impl<P: Privilege> FromRequestParts<Tenancy> for AppCaller<P> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, tenancy: &Tenancy) -> Result<Self, Failure> {
        let scope = Scope::of(&parts.extensions);
        let Some(presented) = parts.headers.get("x-api-key") else {
            return Err(Error::new(Code::Unauthenticated, "Send an API key in the x-api-key header.").into());
        };
        let key = match presented.to_str() {
            Ok(presented) => tenancy.keys.find(presented).await,
            Err(_) => Err(Error::new(Code::InvalidCredential, "The API key is not valid.")),
        };
        let key = match key {
            Err(error) if error.code() == Code::InvalidCredential => {
                scope.credential_failed()?;
                return Err(error.into());
            }
            other => other?,
        };
        let Some(app) = tenancy.apps.get(key.app) else {
            return Err(Error::new(Code::InvalidCredential, "The API key's app no longer exists.").into());
        };
        scope.set_app(app.id);
        if !key.privileges.iter().any(|held| held == P::KEY) {
            return Err(Error::new(Code::MissingPrivilege, format!("This needs the privilege {}.", P::KEY)).into());
        }
        Ok(Self { app, key, privilege: PhantomData })
    }
}

impl<P: Privilege> Describe for AppCaller<P> {
    fn describe(operation: &mut Operation) {
        operation.access(Access::Key { privilege: Some(P::KEY) });
    }
}
