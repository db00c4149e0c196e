//! What the flows need to know of a request besides its body, and the rules for calls from an app's own pages.

use std::{convert::Infallible, net::IpAddr, sync::Arc};

use axum::extract::FromRequestParts;
use http::{HeaderMap, header, request::Parts};
use kernel::{Author, Authored, Code, Error, Result, text::NOT_BLANK, text_types};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::{App, apps::AppDirectory};
use web::{Describe, Operation, Origins as _, Scope};

use crate::{Identity, abuse::AttemptSource};

/// The request's headers and companion.
pub struct Request {
    pub(crate) scope: Arc<Scope>,
    pub(crate) headers: HeaderMap,
}

impl<S: Sync> FromRequestParts<S> for Request {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self { scope: Scope::of(&parts.extensions), headers: parts.headers.clone() })
    }
}

/// This room for one request: whatever changes is told with the request's address and id, and in the system's name until
/// somebody has proven who they are.
pub(crate) struct ForRequest(pub(crate) Identity);

impl FromRequestParts<Identity> for ForRequest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, identity: &Identity) -> Result<Self, Infallible> {
        Ok(Self(identity.by(&*Scope::of(&parts.extensions))))
    }
}

impl Describe for ForRequest {
    fn describe(_: &mut Operation) {}
}

impl Describe for Request {
    fn describe(_: &mut Operation) {}
}

impl Authored for Request {
    fn author(&self) -> Author {
        Authored::author(&*self.scope)
    }
}

impl Request {
    pub fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The client's address.
    pub fn client(&self) -> IpAddr {
        self.scope.client()
    }

    /// Where an attempt to sign in comes from: these calls bring no cookies.
    pub(crate) fn source(&self) -> AttemptSource {
        AttemptSource::address(self.client())
    }

    fn origin(&self) -> Option<&str> {
        self.headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok())
    }

    /// 403 unless a page of the app sent this. Its origin is the answer.
    pub(crate) fn require_origin(&self, apps: &AppDirectory, app: &App) -> Result<String> {
        match self.origin() {
            Some(origin) if apps.app_allows(app.id, origin) => Ok(origin.to_owned()),
            _ => Err(foreign_origin()),
        }
    }

    /// The same, but a request that names no origin (from a backend) passes.
    pub(crate) fn check_origin(&self, apps: &AppDirectory, app: &App) -> Result<()> {
        if self.headers.contains_key(header::ORIGIN) { self.require_origin(apps, app).map(|_| ()) } else { Ok(()) }
    }
}

/// For the documentation of routes that answer [`foreign_origin`].
pub(crate) const FOREIGN_ORIGIN: &str = "The request's Origin is missing or not among the app's allowed origins";

pub(crate) fn foreign_origin() -> Error {
    Error::new(
        Code::OriginNotAllowed,
        "This request must come from a page of the app: its Origin is not among the app's allowed origins.",
    )
}

/// The only `mode` there is: answers are JSON, with neither cookies nor redirects.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Mode {
    Sdk,
}

text_types! {
    /// A code that somebody types in.
    ShortCode {
        "minLength": 1,
        "maxLength": 64,
        "pattern": NOT_BLANK,
        "x-message": "must not be empty",
    }
}
