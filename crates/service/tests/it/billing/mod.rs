//! `/billing/…`.

mod life;
mod subscriptions;
