//! The catalog of an app: the plans that it sells and the taxes that are added to them.

pub mod plans;
pub mod taxes;

pub use plans::{
    Interval, Offers, Plan, PlanId, Price, PriceId, PriceOffer, find_by_key as find_plan_by_key, seed_first_plans,
};
pub use taxes::{Tax, TaxId};
