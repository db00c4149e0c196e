//! What a plan must look like, and what a partial change makes of one. Pure.

use std::collections::BTreeMap;

use kernel::{Currency, Error, Money, Problems, Result, validate::KEY_PATTERN};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Number;
use web::{Given, Patch, Validate};

use super::{Interval, Plan, Price, PriceId, Quota};

/// The body of `POST /account/payments/plan`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewPlan {
    #[schemars(regex(pattern = KEY_PATTERN))]
    pub key: String,
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    pub name: String,
    pub description: Option<String>,
    pub trial: Option<bool>,
    /// Required, and at least 1, for a plan with a trial.
    #[schemars(range(min = 0, max = MAX_TRIAL_DAYS))]
    pub trial_days: Option<u32>,
    /// At most one for each currency and interval; none for a free plan.
    #[schemars(length(max = 1000))]
    pub prices: Vec<NewPrice>,
    pub entitlements: Option<BTreeMap<String, bool>>,
    /// At most one for each metric.
    #[schemars(length(max = 1000))]
    pub quotas: Option<Vec<Quota>>,
}

/// The body of `PUT /account/payments/plan/{plan_id}`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlanChange {
    #[schemars(regex(pattern = KEY_PATTERN))]
    pub key: Given<String>,
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    pub name: Given<String>,
    pub description: Patch<String>,
    pub trial: Given<bool>,
    #[schemars(range(min = 0, max = MAX_TRIAL_DAYS))]
    pub trial_days: Patch<u32>,
    /// In place of the prices so far; one that stays the same keeps its id.
    #[schemars(length(max = 1000))]
    pub prices: Given<Vec<NewPrice>>,
    pub entitlements: Patch<BTreeMap<String, bool>>,
    #[schemars(length(max = 1000))]
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

/// Ten years.
const MAX_TRIAL_DAYS: u32 = 3_650;
/// The largest whole number that every JSON reader holds exactly.
const MAX_LIMIT: i64 = (1 << 53) - 1;
const TRIAL_DAYS: &str = "must be at least 1 for a plan with a trial";

impl Validate for NewPlan {
    fn validate(&self, problems: &mut Problems) {
        problems.key("key", &self.key);
        problems.text("name", &self.name);
        problems.optional_text("description", self.description.as_deref().unwrap_or_default());
        trial_days(problems, self.trial_days);
        let tried = self.trial != Some(true) || self.trial_days.is_some_and(|days| days >= 1);
        problems.check("trialDays", tried, TRIAL_DAYS);
        prices(problems, &self.prices);
        self.entitlements.iter().for_each(|entitlements| names(problems, entitlements));
        self.quotas.iter().for_each(|limits| quotas(problems, limits));
    }
}

impl Validate for PlanChange {
    fn validate(&self, problems: &mut Problems) {
        self.key.value().inspect(|key| problems.key("key", key));
        self.name.value().inspect(|name| problems.text("name", name));
        self.description.value().inspect(|text| problems.optional_text("description", text));
        trial_days(problems, self.trial_days.value().copied());
        self.prices.value().inspect(|offered| prices(problems, offered));
        self.entitlements.value().inspect(|entitlements| names(problems, entitlements));
        self.quotas.value().inspect(|limits| quotas(problems, limits));
    }
}

fn trial_days(problems: &mut Problems, days: Option<u32>) {
    let fits = days.is_none_or(|days| days <= MAX_TRIAL_DAYS);
    problems.check("trialDays", fits, "must not be more than 3650");
}

fn prices(problems: &mut Problems, offered: &[NewPrice]) {
    problems.list("prices", offered);
    for (index, price) in offered.iter().enumerate() {
        match price.money() {
            Ok(amount) => {
                problems.check(&format!("prices[{index}].amount"), amount.minor >= 0, "must not be negative");
            }
            Err(message) => problems.add(format!("prices[{index}].amount"), message),
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

fn names(problems: &mut Problems, entitlements: &BTreeMap<String, bool>) {
    problems.check(
        "entitlements",
        entitlements.len() <= kernel::validate::MAX_LIST,
        "must not have more than 1000 members",
    );
    for name in entitlements.keys() {
        problems.text(&format!("entitlements.{name}"), name);
    }
}

fn quotas(problems: &mut Problems, limits: &[Quota]) {
    problems.list("quotas", limits);
    for (index, quota) in limits.iter().enumerate() {
        problems.text(&format!("quotas[{index}].metric"), &quota.metric);
        let fits = (0..=MAX_LIMIT).contains(&quota.limit);
        problems.check(&format!("quotas[{index}].limit"), fits, "must be between 0 and 9007199254740991");
        quota.entitlement.iter().for_each(|name| problems.text(&format!("quotas[{index}].entitlement"), name));
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
            name: self.name.value().map_or(plan.name, |name| name.trim().to_owned()),
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

/// In the order in which they are made, so that lists show the free one first.
pub(super) fn first_plans() -> [NewPlan; 2] {
    let price = |currency: &str| NewPrice {
        amount: 29.into(),
        currency: currency.parse().expect("the first plans are in currencies that exist"),
        recurrence_interval: Interval::Month,
    };
    let plan = |key: &str, name: &str, description: &str| NewPlan {
        key: key.into(),
        name: name.into(),
        description: Some(description.into()),
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
