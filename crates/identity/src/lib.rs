//! Who somebody is and how they prove it: credentials, login flows, second factors, passkeys, and the tokens that are
//! issued in the end.
//!
//! Guarantees: no token outlives the login it belongs to on this service's own routes; whatever may be used once is
//! used once, whoever races for it; known and unknown accounts are answered alike and at the same price.

pub mod abuse;
mod announcements;
pub mod authorize;
mod browser;
mod browser_sessions;
pub mod facts;
pub mod federation;
pub mod handover;
pub mod hosted;
pub mod login;
pub mod me;
pub mod mfa;
pub mod passkeys;
pub mod proof;
pub mod sessions;
mod tables;
pub mod tokens;

use std::sync::Arc;

use kernel::{AppId, Authored, Error, Result};
use tenancy::{App, OperatorKey, Tenancy};
use vault::passwords::Passwords;
use web::Routes;

use abuse::{Addresses, Gates, LoginLimits};
use browser::Request;
use federation::Federation;
pub use tables::TABLES;

/// What the routes of this room work with. Cheap to clone.
#[derive(Clone)]
pub struct Identity {
    pub tenancy: Tenancy,
    pub passwords: Passwords,
    /// Failures per client address.
    pub addresses: Addresses,
    pub(crate) gates: Gates,
    pub(crate) limits: LoginLimits,
    pub(crate) federation: Federation,
}

impl Identity {
    pub fn new(tenancy: Tenancy, limits: LoginLimits, federation: Federation) -> Result<Self> {
        let passwords = Passwords::start(tenancy.db.entropy().clone())?;
        let addresses = Addresses::new(tenancy.db.clock().clone(), limits);
        Ok(Self { tenancy, passwords, addresses, gates: Gates::default(), limits, federation })
    }

    /// The same, for changes in somebody's name.
    #[must_use]
    pub fn by(&self, who: &impl Authored) -> Self {
        Self { tenancy: self.tenancy.by(who), ..self.clone() }
    }

    /// The app that a request names; 404 when there is none.
    pub(crate) fn app(&self, request: &Request, id: AppId) -> Result<Arc<App>> {
        // From memory only: anybody may ask, and must not cost a query each time.
        let app = self.tenancy.apps.get(id).ok_or_else(|| Error::not_found("app"))?;
        request.scope.set_app(app.id);
        Ok(app)
    }
}

impl AsRef<Tenancy> for Identity {
    fn as_ref(&self) -> &Tenancy {
        &self.tenancy
    }
}

impl AsRef<OperatorKey> for Identity {
    fn as_ref(&self) -> &OperatorKey {
        &self.tenancy.operator
    }
}

pub fn routes() -> Routes<Identity> {
    tokens::http::routes()
        .merge(tokens::standard::routes())
        .merge(tokens::discovery::routes())
        .merge(tokens::direct::routes())
        .merge(login::http::routes())
        .merge(mfa::http::routes())
        .merge(passkeys::http::routes())
        .merge(hosted::routes())
        .merge(handover::http::routes())
        .merge(federation::http::routes())
        .merge(federation::identities::routes())
        .merge(me::routes())
}
