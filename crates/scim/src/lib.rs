//! SCIM 2.0 (RFC 7643, RFC 7644): a workspace's directory provisions its people. Users are the workspace's members and those
//! whom it has invited, groups are its teams.
//!
//! Guarantees: a SCIM token sees and changes its own workspace and nothing of a person beyond it; it makes nobody OWNER and
//! gives no role beyond what its maker held; whoever is deprovisioned is out in the same commit.

mod directory;
mod discovery;
pub mod facts;
pub mod filter;
mod groups;
mod http;
mod listing;
pub mod patch;
mod resource;
pub mod schema;
mod tables;
mod users;

use spine::Outbox;
use tenancy::Tenancy;
use web::Routes;

pub use groups::ScimGroupId;
pub use tables::TABLES;

/// What the routes of this room work with. Cheap to clone.
#[derive(Clone)]
pub struct Scim {
    pub(crate) tenancy: Tenancy,
}

impl Scim {
    pub fn new(tenancy: Tenancy) -> Self {
        Self { tenancy }
    }

    /// Registers what forgets users who are gone.
    pub fn register(&self, outbox: &mut Outbox) {
        outbox.consume(facts::CONSUMER, users::forget_gone);
    }
}

impl AsRef<Tenancy> for Scim {
    fn as_ref(&self) -> &Tenancy {
        &self.tenancy
    }
}

pub fn routes() -> Routes<Scim> {
    users::http::routes()
        .merge(groups::http::routes())
        .merge(listing::http::routes())
        .merge(discovery::routes())
        .merge(groups::roles_http::routes())
}
