//! The OpenFeature Remote Evaluation Protocol, so that every OpenFeature SDK works unchanged.
//!
//! The app comes from the base URL `{base_url}/cloud-views/ofrep/{app_id}`, from `x-app-id`, or from a key.

mod answers;
pub mod http;
