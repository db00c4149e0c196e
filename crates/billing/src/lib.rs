//! What workspaces pay for: the catalog of plans and taxes, and their subscriptions.
//!
//! This room alone writes the billing view of a workspace, in the transaction that changes what it says. It knows
//! nothing of login.

pub mod catalog;
pub mod facts;
pub mod payment_details;
mod providers;
pub mod subscriptions;
mod tables;

use spine::{Exclusive, Runner};
use tenancy::{OperatorKey, Tenancy};
use web::Routes;

use subscriptions::Passing;

pub use catalog::seed_first_plans;
pub use tables::TABLES;

/// What the routes of this room work with. Cheap to clone.
#[derive(Clone)]
pub struct Billing {
    pub tenancy: Tenancy,
}

impl Billing {
    pub fn new(tenancy: Tenancy) -> Self {
        Self { tenancy }
    }

    /// Adds the background work of this room.
    pub fn register(&self, runner: &Runner) {
        runner.add(Exclusive::new(&self.tenancy.db, Passing { db: self.tenancy.db.clone() }));
    }
}

impl AsRef<Tenancy> for Billing {
    fn as_ref(&self) -> &Tenancy {
        &self.tenancy
    }
}

impl AsRef<OperatorKey> for Billing {
    fn as_ref(&self) -> &OperatorKey {
        &self.tenancy.operator
    }
}

pub fn routes() -> Routes<Billing> {
    catalog::plans::http::routes()
        .merge(catalog::taxes::http::routes())
        .merge(payment_details::http::routes())
        .merge(subscriptions::http::routes())
}
