//! Callers that act in one workspace: a key with `x-tenant-id`, or a workspace-scoped token, which names its own.

use std::{marker::PhantomData, ops::Deref};

use axum::extract::FromRequestParts;
use http::request::Parts;
use kernel::{Author, Authored, Code, Error, Result, TenantId};
use web::{Access, Describe, Failure, Operation, optional_header};

use super::{KeyCredential, Privilege, credential::authenticate};
use crate::{Tenancy, workspaces};

/// A key with the privilege `P` and the workspace that it acts in, which exists and belongs to its app.
pub struct TenantCaller<P> {
    credential: KeyCredential,
    tenant: TenantId,
    privilege: PhantomData<fn() -> P>,
}

impl<P> TenantCaller<P> {
    pub fn tenant(&self) -> TenantId {
        self.tenant
    }
}

impl<P> Deref for TenantCaller<P> {
    type Target = KeyCredential;

    fn deref(&self) -> &KeyCredential {
        &self.credential
    }
}

impl<P> Authored for TenantCaller<P> {
    fn author(&self) -> Author {
        self.credential.author()
    }
}

impl<S: AsRef<Tenancy> + Send + Sync, P: Privilege> FromRequestParts<S> for TenantCaller<P> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let credential = authenticate::<P>(parts, state.as_ref()).await?;
        let tenant = workspace(parts, &credential)?;
        if !workspaces::exists(&state.as_ref().db, credential.app_id(), tenant).await? {
            return Err(Error::not_found("workspace").into());
        }
        Ok(Self { credential, tenant, privilege: PhantomData })
    }
}

fn workspace(parts: &Parts, credential: &KeyCredential) -> Result<TenantId> {
    let named = optional_header(&parts.headers, "x-tenant-id")?;
    match (named, credential.tenant) {
        // A token that is sent along with another workspace was refused already.
        (_, Some(own)) => Ok(own),
        (None, None) => Err(Error::new(Code::MissingHeader, "Specify the workspace in the x-tenant-id header.")),
        // What cannot be an id is as unknown as an id of nothing.
        (Some(named), None) => named.parse().map_err(|_| Error::not_found("workspace")),
    }
}

impl<P: Privilege> Describe for TenantCaller<P> {
    fn describe(operation: &mut Operation) {
        operation.access(Access::KeyWithTenant { privilege: P::KEY });
        operation.failure(404, "There is no such workspace here");
    }
}
