//! What is known about the request being served, shared by everything that touches it: its id, the client's address,
//! the app, workspace and person once a caller is known, and the route once it is matched.

use std::{
    convert::Infallible,
    fmt,
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, OnceLock},
};

use axum::extract::FromRequestParts;
use http::{Extensions, HeaderValue, request::Parts};
use kernel::{Actor, AppId, Author, Authored, TenantId, UserId};

use crate::{Describe, LimitClass, Operation, conventions::Policy, pages::PageSetting, routes::Route};

/// The request's companion, an `Arc` in its extensions.
pub struct Scope {
    request_id: HeaderValue,
    client: IpAddr,
    app: OnceLock<AppId>,
    tenant: OnceLock<TenantId>,
    user: OnceLock<UserId>,
    route: OnceLock<Arc<Route>>,
    page: OnceLock<PageSetting>,
    policy: Arc<Policy>,
}

impl Scope {
    pub(crate) fn new(request_id: HeaderValue, client: IpAddr, policy: Arc<Policy>) -> Self {
        Self {
            request_id,
            client,
            app: OnceLock::new(),
            tenant: OnceLock::new(),
            user: OnceLock::new(),
            route: OnceLock::new(),
            page: OnceLock::new(),
            policy,
        }
    }

    /// The scope of the request these extensions belong to.
    pub fn of(extensions: &Extensions) -> Arc<Self> {
        extensions.get::<Arc<Self>>().map_or_else(Self::detached, Arc::clone)
    }

    /// For a router that is called without the conventions around it.
    fn detached() -> Arc<Self> {
        let client = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        Arc::new(Self::new(HeaderValue::from_static("detached"), client, Policy::detached()))
    }

    pub fn request_id(&self) -> &str {
        self.request_id.to_str().unwrap_or_default()
    }

    /// The author of what this request changes, when it is `actor` who sent it.
    pub fn author(&self, actor: Actor) -> Author {
        Author { actor, address: Some(self.client), request: Some(self.request_id().to_owned()) }
    }

    pub(crate) fn request_id_header(&self) -> HeaderValue {
        self.request_id.clone()
    }

    /// The client's address, seen through trusted proxies.
    pub fn client(&self) -> IpAddr {
        self.client
    }

    /// Called by caller extractors as soon as the app is known; CORS and the log line follow it. The first one stays.
    pub fn set_app(&self, app: AppId) {
        let _ = self.app.set(app);
    }

    /// The same for a caller whom a key or a token of the app let in: an error once these have asked too much. Whoever only names
    /// the app takes nothing from its callers.
    pub fn caller_of(&self, app: AppId) -> kernel::Result<()> {
        self.set_app(app);
        self.policy.asked_by(app)
    }

    pub fn app(&self) -> Option<AppId> {
        self.app.get().copied()
    }

    /// Called by caller extractors when the caller acts inside one workspace; the log line names it.
    pub fn set_tenant(&self, tenant: TenantId) {
        let _ = self.tenant.set(tenant);
    }

    pub(crate) fn tenant(&self) -> Option<TenantId> {
        self.tenant.get().copied()
    }

    /// Called by caller extractors when a person is at work; the log line names them.
    pub fn set_user(&self, user: UserId) {
        let _ = self.user.set(user);
    }

    pub(crate) fn user(&self) -> Option<UserId> {
        self.user.get().copied()
    }

    /// Called by page handlers as soon as the app is known: failures are shown in its looks and words then. The first
    /// one stays.
    pub fn set_page(&self, setting: PageSetting) {
        let _ = self.page.set(setting);
    }

    pub(crate) fn page(&self) -> Option<&PageSetting> {
        self.page.get()
    }

    /// Called when a credential was refused; an error once this client has guessed too often.
    pub fn credential_failed(&self) -> kernel::Result<()> {
        self.policy.refused(LimitClass::Credential, self.client)
    }

    /// Called when a key or a token was refused; an error once this client has sent too many of them.
    pub fn key_refused(&self) -> kernel::Result<()> {
        self.policy.refused(LimitClass::Key, self.client)
    }

    pub(crate) fn set_route(&self, route: &Arc<Route>) {
        let _ = self.route.set(Arc::clone(route));
    }

    pub(crate) fn route(&self) -> Option<&Arc<Route>> {
        self.route.get()
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "request {}", self.request_id())
    }
}

/// Nobody has proven anything yet.
impl Authored for Scope {
    fn author(&self) -> Author {
        self.author(Actor::system())
    }
}

/// Whoever calls, as an argument of a handler that asks for no credential but makes changes.
#[derive(Clone, Debug)]
pub struct Anyone(pub Arc<Scope>);

impl Authored for Anyone {
    fn author(&self) -> Author {
        Authored::author(&*self.0)
    }
}

impl<S: Sync> FromRequestParts<S> for Anyone {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(Scope::of(&parts.extensions)))
    }
}

impl Describe for Anyone {
    fn describe(_: &mut Operation) {}
}

impl<S: Sync> FromRequestParts<S> for RequestId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(Scope::of(&parts.extensions).request_id().to_owned()))
    }
}

/// The request's id as an argument of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(pub String);

impl Describe for RequestId {
    fn describe(_: &mut Operation) {}
}

/// The client's address as an argument of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

impl<S: Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(Scope::of(&parts.extensions).client()))
    }
}

impl Describe for ClientAddress {
    fn describe(_: &mut Operation) {}
}
