//! Operations for a key that a signed-in user may call as well.

use axum::extract::FromRequestParts;
use http::request::Parts;
use kernel::{Author, Authored};
use web::{Access, Describe, Failure, Operation};

use super::{KeyCredential, Privilege, SignedIn, credential, user};
use crate::Tenancy;

/// A key with the privilege `P`, or a signed-in user. What a user may do depends on whose workspace it is, so the
/// handler asks ([`SignedIn::require`]).
pub enum KeyOrUser<P> {
    Key(KeyCredential, std::marker::PhantomData<fn() -> P>),
    User(Box<SignedIn>),
}

impl<P> Authored for KeyOrUser<P> {
    fn author(&self) -> Author {
        match self {
            Self::Key(credential, _) => credential.author(),
            Self::User(user) => user.author(),
        }
    }
}

impl<S: AsRef<Tenancy> + Send + Sync, P: Privilege> FromRequestParts<S> for KeyOrUser<P> {
    type Rejection = Failure;

    /// A key counts when both are sent.
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        if !parts.headers.contains_key("x-api-key") && parts.headers.contains_key(http::header::AUTHORIZATION) {
            return Ok(Self::User(Box::new(user::authenticate(parts, state.as_ref()).await?)));
        }
        let credential = credential::authenticate::<P>(parts, state.as_ref()).await?;
        Ok(Self::Key(credential, std::marker::PhantomData))
    }
}

impl<P: Privilege> Describe for KeyOrUser<P> {
    fn describe(operation: &mut Operation) {
        operation.access(Access::KeyOrUser { privilege: P::KEY });
    }
}
