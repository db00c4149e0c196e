//! Operations in one workspace that its members call with their access token, and backends with a key.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use http::request::Parts;
use kernel::{AppId, Author, Authored, TenantId};
use web::{Access, Describe, Failure, Operation};

use super::{Permission, Privilege, SignedIn, TenantCaller, user};
use crate::Tenancy;

/// A signed-in user with the permission `U` (access token and `x-app-id`), or a key with the privilege `K` and its
/// workspace (`x-api-key` and `x-tenant-id`).
pub enum UserOrKey<U, K> {
    User(Box<SignedIn>, PhantomData<fn() -> U>),
    Key(TenantCaller<K>),
}

impl<U, K> UserOrKey<U, K> {
    pub fn app_id(&self) -> AppId {
        match self {
            Self::User(user, _) => user.app(),
            Self::Key(key) => key.app_id(),
        }
    }

    pub fn tenant(&self) -> TenantId {
        match self {
            Self::User(user, _) => user.tenant(),
            Self::Key(key) => key.tenant(),
        }
    }
}

impl<U, K> Authored for UserOrKey<U, K> {
    fn author(&self) -> Author {
        match self {
            Self::User(user, _) => user.author(),
            Self::Key(key) => key.author(),
        }
    }
}

impl<S: AsRef<Tenancy> + Send + Sync, U: Permission, K: Privilege> FromRequestParts<S> for UserOrKey<U, K> {
    type Rejection = Failure;

    /// A key counts when both are sent.
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        if !parts.headers.contains_key("x-api-key") && parts.headers.contains_key(http::header::AUTHORIZATION) {
            let user = user::authenticate_with_app::<U>(parts, state.as_ref()).await?;
            return Ok(Self::User(Box::new(user), PhantomData));
        }
        Ok(Self::Key(TenantCaller::from_request_parts(parts, state).await?))
    }
}

impl<U: Permission, K: Privilege> Describe for UserOrKey<U, K> {
    fn describe(operation: &mut Operation) {
        operation.access(Access::UserOrKey { permission: U::NAME, privilege: K::KEY });
        operation.failure(404, "There is no such workspace here");
    }
}
