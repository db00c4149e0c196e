//! `/billing/…`.

mod life;
mod model;
mod races;
mod storm;
mod subscriptions;
mod year;
