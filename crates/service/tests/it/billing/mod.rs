//! `/billing/…`.

mod life;
mod races;
mod subscriptions;
