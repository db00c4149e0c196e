//! Callers by `x-api-key`: for the whole app, or for whichever workspace the path names.

use std::{marker::PhantomData, ops::Deref};

use axum::extract::FromRequestParts;
use http::request::Parts;
use kernel::{Author, Authored};
use web::{Access, Describe, Failure, Operation};

use super::{KeyCredential, Privilege, credential::authenticate};
use crate::Tenancy;

/// A key or token with the privilege `P`. A workspace-scoped token is let in: the handler names the workspace with
/// [`KeyCredential::in_workspace`] before it does anything.
pub struct KeyCaller<P>(KeyCredential, PhantomData<fn() -> P>);

impl<P> Deref for KeyCaller<P> {
    type Target = KeyCredential;

    fn deref(&self) -> &KeyCredential {
        &self.0
    }
}

impl<P> Authored for KeyCaller<P> {
    fn author(&self) -> Author {
        self.0.author()
    }
}

impl<S: AsRef<Tenancy> + Send + Sync, P: Privilege> FromRequestParts<S> for KeyCaller<P> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        Ok(Self(authenticate::<P>(parts, state.as_ref()).await?, PhantomData))
    }
}

impl<P: Privilege> Describe for KeyCaller<P> {
    fn describe(operation: &mut Operation) {
        operation.access(Access::Key { privilege: P::KEY });
    }
}

/// A key or token of the whole app with the privilege `P`; a workspace-scoped token is 403.
pub struct AppCaller<P>(KeyCredential, PhantomData<fn() -> P>);

impl<P> Deref for AppCaller<P> {
    type Target = KeyCredential;

    fn deref(&self) -> &KeyCredential {
        &self.0
    }
}

impl<P> Authored for AppCaller<P> {
    fn author(&self) -> Author {
        self.0.author()
    }
}

impl<S: AsRef<Tenancy> + Send + Sync, P: Privilege> FromRequestParts<S> for AppCaller<P> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let credential = authenticate::<P>(parts, state.as_ref()).await?;
        credential.for_whole_app()?;
        Ok(Self(credential, PhantomData))
    }
}

impl<P: Privilege> Describe for AppCaller<P> {
    fn describe(operation: &mut Operation) {
        operation.access(Access::Key { privilege: P::KEY });
    }
}
