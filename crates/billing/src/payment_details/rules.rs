//! What may be chosen, and how days of a trial count. Pure.

use std::time::Duration;

use kernel::{Key, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use web::Validate;

use crate::catalog::PriceOffer;

/// The body of `POST /account/tenant/{tenant_id}/paymentDetails`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanChoice {
    pub plan_key: Key,
    /// One of the plan's prices; required when it has any.
    pub price_offer: Option<PriceOffer>,
}

impl Validate for PlanChoice {}

/// A day that has begun counts as one.
pub(crate) fn days_left(trial_ends_at: Option<Timestamp>, now: Timestamp) -> u32 {
    const DAY: u128 = 24 * 3_600 * 1_000_000;
    let left = trial_ends_at.map_or(Duration::ZERO, |end| end.since(now));
    u32::try_from(left.as_micros().div_ceil(DAY)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_of_the_trial_that_has_begun_counts() {
        let now = Timestamp::from_seconds(1_000_000);
        let left = |seconds: i64| days_left(Some(Timestamp::from_seconds(1_000_000 + seconds)), now);
        assert_eq!([left(-5), left(0), left(1), left(86_400), left(86_401)], [0, 0, 1, 1, 2]);
        assert_eq!(days_left(None, now), 0);
    }
}
