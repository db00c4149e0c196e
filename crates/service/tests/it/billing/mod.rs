//! `/billing/…`.

mod life;
mod model;
mod races;
mod subscriptions;
mod year;
