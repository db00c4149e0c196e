//! What a plan makes of a workspace's billing. Pure.

use std::time::Duration;

use kernel::{Error, Key, Result, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use tenancy::{App, workspaces::BillingView};
use web::Validate;

use crate::catalog::{Plan, Price, PriceOffer};

/// The body of `POST /account/tenant/{tenant_id}/paymentDetails`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanChoice {
    pub plan_key: Key,
    /// One of the plan's prices; required when it has any.
    pub price_offer: Option<PriceOffer>,
}

impl Validate for PlanChoice {}

/// The price that was chosen; none for a plan that has none.
pub(super) fn chosen_price(plan: &Plan, offer: Option<PriceOffer>) -> Result<Option<Price>> {
    let Some(offer) = offer else {
        let required = || Error::invalid("priceOffer", "is required for a plan with prices");
        return if plan.prices.is_empty() { Ok(None) } else { Err(required()) };
    };
    match plan.price(offer) {
        Some(price) => Ok(Some(*price)),
        None => Err(Error::invalid("priceOffer", "must match the currency and interval of a price of the plan")),
    }
}

/// What billing says about a workspace on this plan.
pub fn view_for_plan(app: &App, plan: Option<&Plan>, price: Option<&Price>, payments_enabled: bool) -> BillingView {
    let provider = app.profile.payprovider_enabled;
    let paid = plan.is_some_and(|plan| !plan.is_free());
    BillingView {
        plan_key: plan.map(|plan| plan.key.clone()),
        price: price.map(|price| (price.amount.currency, price.interval.to_string())),
        trial_ends_at: None,
        should_select_plan: plan.is_none(),
        should_setup_payments: paid && provider && !payments_enabled,
        payments_enabled,
        provider: provider.then(|| "payprovider".to_owned()),
    }
}

/// A day that has begun counts as one.
pub(super) fn days_left(trial_ends_at: Option<Timestamp>, now: Timestamp) -> u32 {
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
