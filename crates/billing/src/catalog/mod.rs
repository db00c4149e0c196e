//! The catalog of an app: the plans that it sells and the taxes that are added to them.

pub mod plans;
pub mod taxes;

use tenancy::{
    apps,
    purge::{self, Purge},
};

pub use plans::{Interval, Plan, PlanId, Price, PriceId, find_by_key as find_plan_by_key, seed_first_plans};
pub use taxes::{Tax, TaxId};

/// What an app that is gone leaves behind.
pub(crate) static PURGE: Purge = Purge {
    name: "purge-app-catalog",
    after: &[apps::DELETED, purge::CONTINUED],
    statements: &[
        "DELETE FROM prices WHERE id IN (SELECT id FROM prices WHERE app_id = $1 LIMIT 500)",
        "DELETE FROM plans WHERE id IN (SELECT id FROM plans WHERE app_id = $1 LIMIT 500)",
        "DELETE FROM taxes WHERE id IN (SELECT id FROM taxes WHERE app_id = $1 LIMIT 500)",
    ],
};
