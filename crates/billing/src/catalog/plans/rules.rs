//! What a plan must look like, and what a partial change makes of one. Pure.

use std::{borrow::Cow, collections::BTreeMap};

use kernel::{Currency, Error, Key, Label, Money, Name, Problems, Result, Text, text::MAX_LIST};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Number;
use web::{Given, Patch, Validate};

use super::{Interval, Plan, Price, PriceId, PriceOffer, Quota};

/// The body of `POST /account/payments/plan`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewPlan {
    pub key: Key,
    pub name: Name,
    pub description: Option<Text>,
    pub trial: Option<bool>,
    /// Required, and at least 1, for a plan with a trial.
    #[schemars(range(max = MAX_TRIAL_DAYS))]
    pub trial_days: Option<u32>,
    /// At most one for each currency and interval; none for a free plan.
    pub prices: Vec<NewPrice>,
    #[schemars(with = "Option<EntitlementsSchema>")]
    pub entitlements: Option<BTreeMap<String, bool>>,
    /// At most one for each metric.
    pub quotas: Option<Vec<Quota>>,
}

/// The body of `PUT /account/payments/plan/{plan_id}`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlanChange {
    pub key: Given<Key>,
    pub name: Given<Name>,
    pub description: Patch<Text>,
    pub trial: Given<bool>,
    #[schemars(range(max = MAX_TRIAL_DAYS))]
    pub trial_days: Patch<u32>,
    /// In place of the prices so far; one that stays the same keeps its id.
    pub prices: Given<Vec<NewPrice>>,
    #[schemars(with = "Patch<EntitlementsSchema>")]
    pub entitlements: Patch<BTreeMap<String, bool>>,
    pub quotas: Patch<Vec<Quota>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Price")]
pub struct NewPrice {
    /// In major units, with at most as many decimals as the currency has.
    #[schemars(range(min = 0))]
    pub amount: Number,
    pub currency: Currency,
    pub recurrence_interval: Interval,
}

/// What a plan includes, by name.
pub(crate) enum EntitlementsSchema {}

impl JsonSchema for EntitlementsSchema {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Entitlements".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "additionalProperties": { "type": "boolean" },
            "propertyNames": generator.subschema_for::<Label>(),
            "maxProperties": MAX_LIST,
        })
    }
}

/// Ten years.
const MAX_TRIAL_DAYS: u32 = 3_650;
const TRIAL_DAYS: &str = "must be at least 1 for a plan with a trial";

impl Validate for NewPlan {
    fn validate(&self, problems: &mut Problems) {
        let tried = self.trial != Some(true) || self.trial_days.is_some_and(|days| days >= 1);
        problems.check("trialDays", tried, TRIAL_DAYS);
        prices(problems, &self.prices);
        self.quotas.iter().for_each(|limits| quotas(problems, limits));
    }
}

impl Validate for PlanChange {
    fn validate(&self, problems: &mut Problems) {
        self.prices.value().inspect(|offered| prices(problems, offered));
        self.quotas.value().inspect(|limits| quotas(problems, limits));
    }
}

fn prices(problems: &mut Problems, offered: &[NewPrice]) {
    for (index, price) in offered.iter().enumerate() {
        if let Err(message) = price.money() {
            problems.add(format!("prices[{index}].amount"), message);
        }
        let same = |other: &&NewPrice| {
            (other.currency, other.recurrence_interval) == (price.currency, price.recurrence_interval)
        };
        if offered.iter().take(index).any(|other| same(&other)) {
            let NewPrice { currency, recurrence_interval, .. } = price;
            let message = format!("is a second price in {currency} per {recurrence_interval}");
            problems.add(format!("prices[{index}]"), message);
        }
    }
}

fn quotas(problems: &mut Problems, limits: &[Quota]) {
    for (index, quota) in limits.iter().enumerate() {
        let repeated = limits.iter().take(index).any(|other| other.metric == quota.metric);
        problems.check(&format!("quotas[{index}].metric"), !repeated, "already has a quota");
    }
}

impl NewPrice {
    fn money(&self) -> Result<Money, String> {
        Money::from_major(&self.amount, self.currency)
    }
}

/// The prices to keep from now on: one that stays the same keeps its id, since people may be choosing it right now.
pub(super) fn priced(current: &[Price], offered: &[NewPrice], new_id: impl Fn() -> PriceId) -> Result<Vec<Price>> {
    let price = |new: &NewPrice| {
        let amount = new.money().map_err(|message| Error::invalid("prices", message))?;
        let interval = new.recurrence_interval;
        let kept = current.iter().find(|price| price.amount == amount && price.interval == interval);
        Ok(kept.copied().unwrap_or_else(|| Price { id: new_id(), amount, interval }))
    };
    offered.iter().map(price).collect()
}

impl PlanChange {
    pub(super) fn applied_to(&self, plan: Plan, new_id: impl Fn() -> PriceId) -> Result<Plan> {
        let prices = match self.prices.value() {
            Some(offered) => priced(&plan.prices, offered, new_id)?,
            None => plan.prices,
        };
        let changed = Plan {
            key: self.key.clone().or(plan.key),
            name: self.name.clone().or(plan.name),
            description: self.description.clone().apply(Some(plan.description)).unwrap_or_default(),
            trial: self.trial.or(plan.trial),
            trial_days: self.trial_days.apply(plan.trial_days),
            prices,
            entitlements: self.entitlements.clone().apply(Some(plan.entitlements)).unwrap_or_default(),
            quotas: self.quotas.clone().apply(Some(plan.quotas)).unwrap_or_default(),
            ..plan
        };
        if changed.trial && changed.trial_days.is_none_or(|days| days < 1) {
            return Err(Error::invalid("trialDays", TRIAL_DAYS));
        }
        Ok(changed)
    }
}

/// The price that was chosen, where a plan with prices needs a choice; none for a plan that has none.
pub fn chosen_price(plan: &Plan, offer: Option<PriceOffer>) -> Result<Option<Price>> {
    if offer.is_none() && !plan.prices.is_empty() {
        return Err(Error::invalid("priceOffer", "is required for a plan with prices"));
    }
    offered_price(plan, offer)
}

/// The price that was chosen, else the plan's first.
pub fn offered_price(plan: &Plan, offer: Option<PriceOffer>) -> Result<Option<Price>> {
    let Some(offer) = plan.choice(offer) else { return Ok(plan.prices.first().copied()) };
    match plan.price(offer) {
        Some(price) => Ok(Some(*price)),
        None => Err(Error::invalid("priceOffer", "must match the currency and interval of a price of the plan")),
    }
}

/// In the order in which they are made, so that lists show the free one first.
pub(super) fn first_plans() -> [NewPlan; 2] {
    let price = |currency: &str| NewPrice {
        amount: 29.into(),
        currency: currency.parse().expect("the first plans are in currencies that exist"),
        recurrence_interval: Interval::Month,
    };
    let plan = |key: &'static str, name: &'static str, description: &'static str| NewPlan {
        key: Key::from_static(key),
        name: Name::from_static(name),
        description: Some(Text::from_static(description)),
        trial: None,
        trial_days: None,
        prices: Vec::new(),
        entitlements: None,
        quotas: None,
    };
    let pro = plan("pro", "Pro", "Everything, after a trial of 14 days");
    [
        NewPlan { trial: Some(true), trial_days: Some(14), prices: vec![price("EUR"), price("USD")], ..pro },
        plan("free", "Free", "For getting started"),
    ]
}

#[cfg(test)]
mod tests;
